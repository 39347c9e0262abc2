//! Running up to an exact instruction.

use super::Replay;
use crate::error::{Context as _, Error, Result};
use crate::log::Entry;
use crate::ptrace;
use crate::translate::{Trap, layout};

/// The last instructions before a moment are stepped: so many that no block that ends before them reaches it.
const STEPPED: u64 = 112;
/// More than any block has instructions.
const BLOCK: u64 = 100;
/// A limit that is never reached.
const FAR: u64 = 1 << 40;

/// Why running has come to an end before its limit.
enum Halt {
    /// The counter would have gone over the limit.
    Limit,
    /// Before a system call or an instruction with results of its own.
    Asked,
    /// A fault.
    Fault(i32),
}

impl Replay {
    /// Goes to the moment after `goal` instructions, forwards or backwards.
    pub fn goto(&mut self, goal: u64) -> Result<()> {
        if goal > self.end() {
            return Err(Error::AfterEnd { end: self.end() });
        }
        self.return_to(goal)?;
        loop {
            let Some(entry) = self.entries.get(self.now.next) else {
                return Ok(());
            };
            let (at, last) = (entry.at(), matches!(entry, Entry::Exit { .. } | Entry::Lost { .. }));
            let asked = matches!(entry, Entry::SystemCall { tid, .. } if *tid == self.now.running) || matches!(entry, Entry::Chance { .. } | Entry::Return { .. });
            if at < self.now.count {
                return Err(self.diverged(&format!("it is past instruction {at}, where something was recorded")));
            }
            let instruction = matches!(entry, Entry::SystemCall { .. } | Entry::Chance { .. } | Entry::Return { .. });
            if self.now.count == goal && (at > goal || instruction || last) {
                return Ok(());
            }
            let stop = at.min(goal);
            if self.now.count < stop {
                self.run(stop, stop == at && asked)?;
                self.keep_some()?;
                continue;
            }
            self.apply()?;
        }
    }

    /// Runs until `stop` instructions are executed; `asked`: the instruction there traps by itself.
    fn run(&mut self, stop: u64, asked: bool) -> Result<()> {
        let mut stop_fast = if asked { stop + 1 } else { stop.saturating_sub(STEPPED) };
        // Long stretches are cut, for checkpoints.
        stop_fast = stop_fast.min(self.now.count + super::checkpoint::EVERY);
        if stop_fast > self.now.count + BLOCK || asked {
            match self.run_fast(stop_fast)? {
                Halt::Asked if asked && self.now.count == stop => return Ok(()),
                Halt::Asked => return Err(self.diverged("it asks for something that was not recorded")),
                Halt::Fault(signal) => {
                    if self.now.count == stop {
                        return Ok(());
                    }
                    return Err(self.diverged(&format!("signal {signal}, which was not recorded")));
                }
                Halt::Limit if asked && self.now.count + BLOCK > stop => {
                    return Err(self.diverged("it does not ask for what was recorded"));
                }
                Halt::Limit => {}
            }
        }
        if self.now.count + super::checkpoint::EVERY > stop && !asked || self.now.count + STEPPED + BLOCK > stop && !asked {
            if stop - self.now.count <= STEPPED + BLOCK {
                return self.step_to(stop);
            }
        }
        Ok(())
    }

    /// Sets the counter so that the process runs up to this limit.
    fn set_limit(&mut self, limit: u64) -> Result<()> {
        let pid = self.process.pid;
        let mut registers = ptrace::registers(pid).context("read registers")?;
        let place = self.translator.place(registers.rip);
        let place = place.ok_or_else(|| self.diverged("it is not where it should be"))?;
        self.limit = limit;
        let value = (self.now.count + u64::from(place.ahead)).wrapping_sub(limit);
        if place.swapped {
            return self.process.set_word(self.block() + u64::from(layout::SLOT_COUNTER), value);
        }
        registers.r15 = value;
        ptrace::set_registers(pid, &registers).context("set registers")
    }

    /// Takes over the counter; the process is stopped at this address.
    fn take_counter(&mut self, r15: u64, at: u64) -> Result<()> {
        let Some(place) = self.translator.place(at) else {
            return Ok(());
        };
        let value = match place.swapped {
            true => self.process.word(self.block() + u64::from(layout::SLOT_COUNTER))?,
            false => r15,
        };
        self.now.count = value.wrapping_add(self.limit).wrapping_sub(u64::from(place.ahead));
        Ok(())
    }

    fn wait(&self) -> Result<i32> {
        loop {
            if let Some((_, status)) = ptrace::wait(self.process.pid, false).context("wait for the replay")? {
                if !libc::WIFSTOPPED(status) {
                    return Err(self.diverged("the process has ended"));
                }
                return Ok(libc::WSTOPSIG(status));
            }
        }
    }

    fn run_fast(&mut self, limit: u64) -> Result<Halt> {
        let pid = self.process.pid;
        self.set_limit(limit)?;
        loop {
            ptrace::cont(pid, 0).context("resume the replay")?;
            let signal = self.wait()?;
            let mut registers = ptrace::registers(pid).context("read registers")?;
            let at = registers.rip - 1;
            let trap = if signal == libc::SIGTRAP { self.translator.trap(at) } else { None };
            match trap {
                Some(Trap::Limit { pc }) => {
                    let place = self.translator.place(at).expect("traps have places");
                    registers.r15 = registers.r15.wrapping_sub(u64::from(place.ahead));
                    registers.rip = self.translated_at(pc)?.expect("it has been translated");
                    ptrace::set_registers(pid, &registers).context("set registers")?;
                    self.take_counter(registers.r15, registers.rip)?;
                    return Ok(Halt::Limit);
                }
                Some(Trap::SystemCall { .. } | Trap::Chance { .. }) => {
                    registers.rip = at;
                    ptrace::set_registers(pid, &registers).context("set registers")?;
                    self.take_counter(registers.r15, at)?;
                    return Ok(Halt::Asked);
                }
                Some(trap) => self.pass(at, trap)?,
                None => {
                    self.take_counter(registers.r15, registers.rip)?;
                    return Ok(Halt::Fault(signal));
                }
            }
        }
    }

    /// Goes on behind a trap that only asks for a translation.
    fn pass(&mut self, at: u64, trap: Trap) -> Result<()> {
        let pid = self.process.pid;
        let mut registers = ptrace::registers(pid).context("read registers")?;
        let target = match trap {
            Trap::Exit { target, .. } => target,
            Trap::Miss => {
                let target = registers.rax;
                registers.rax = self.process.word(self.block() + u64::from(layout::SLOT_RAX))?;
                registers.rcx = self.process.word(self.block() + u64::from(layout::SLOT_RCX))?;
                target
            }
            _ => return Err(self.diverged("it comes to a place where nothing was recorded")),
        };
        let (resets, translated) = (self.translator.resets(), self.translated_at(target)?);
        let Some(body) = translated else {
            return Err(self.diverged("it goes to where no code is"));
        };
        match trap {
            _ if self.translator.resets() != resets => {}
            Trap::Exit { distance_at, .. } => self.translator.link(at, distance_at, body),
            _ => self.translator.check(target, body),
        }
        self.process.flush(&mut self.translator)?;
        registers.rip = body;
        ptrace::set_registers(pid, &registers).context("set registers")
    }

    /// Steps until `stop` instructions are executed.
    fn step_to(&mut self, stop: u64) -> Result<()> {
        let pid = self.process.pid;
        self.set_limit(self.now.count + FAR)?;
        loop {
            let registers = ptrace::registers(pid).context("read registers")?;
            let at = registers.rip;
            if let Some(place) = self.translator.place(at)
                && place.boundary
                && place.at == at
            {
                self.take_counter(registers.r15, at)?;
                if self.now.count == stop {
                    return Ok(());
                }
                if self.now.count > stop {
                    return Err(self.diverged(&format!("it went past instruction {stop}")));
                }
            }
            match self.translator.trap(at) {
                Some(trap @ (Trap::Exit { .. } | Trap::Miss)) => {
                    self.pass(at, trap)?;
                    continue;
                }
                Some(_) => return Err(self.diverged("it asks for something that was not recorded")),
                None => {}
            }
            ptrace::step(pid, 0).context("step the replay")?;
            let signal = self.wait()?;
            if signal != libc::SIGTRAP {
                return Err(self.diverged(&format!("signal {signal}, which was not recorded")));
            }
        }
    }
}
