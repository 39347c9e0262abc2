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
pub(super) const FAR: u64 = 1 << 40;

/// So many stops that nobody asked for are passed before they are taken out of the code.
const PASSED: u32 = 500;

pub(super) const NOWHERE: &str = "it goes to where no code is";

/// Why running has come to an end before its limit.
pub(super) enum Halt {
    /// The counter would have gone over the limit.
    Limit,
    /// Before a system call or an instruction with results of its own.
    Asked,
    /// A stop that was set.
    Stop,
    /// A fault.
    Fault(i32),
    /// It has gone to where no code is.
    Nowhere,
}

impl Replay {
    /// Goes to the moment after `goal` instructions, forwards or backwards.
    pub fn goto(&mut self, goal: u64) -> Result<()> {
        if goal > self.end() {
            return Err(Error::AfterEnd { end: self.end() });
        }
        self.return_to(goal)?;
        self.keep_near(goal)?;
        self.forward(goal)
    }

    /// Goes forwards. Stops of an earlier search are forgotten where they are in the way.
    pub(super) fn forward(&mut self, goal: u64) -> Result<()> {
        self.forward_while(goal, &mut |_| true)
    }

    /// As [`Self::forward`], while `goes_on` agrees; it is asked now and then.
    pub(super) fn forward_while(
        &mut self,
        goal: u64,
        goes_on: &mut dyn FnMut(&Replay) -> bool,
    ) -> Result<()> {
        let mut passed = 0;
        self.forward_with(goal, &mut |replay| {
            passed += 1;
            passed >= PASSED || !goes_on(replay)
        })?;
        if passed < PASSED {
            return Ok(());
        }
        self.set_stops(&[])?;
        self.forward_with(goal, &mut |replay| !goes_on(replay))
    }

    /// Goes forwards. At each stop that was set, `halt` is asked whether that is far enough.
    pub(super) fn forward_with(
        &mut self,
        goal: u64,
        halt: &mut dyn FnMut(&Replay) -> bool,
    ) -> Result<()> {
        loop {
            self.ask_overseer()?;
            let Some(entry) = self.recorded.entries.get(self.now.next) else {
                return Ok(());
            };
            let entry = &*entry;
            let (at, last) = (
                entry.at(),
                matches!(
                    entry,
                    Entry::Exit { .. } | Entry::Lost { .. } | Entry::Executed { .. }
                ),
            );
            let instruction = matches!(
                entry,
                Entry::SystemCall { .. }
                    | Entry::Chance { .. }
                    | Entry::Repeated { .. }
                    | Entry::Return { .. }
                    | Entry::Resumed { .. }
                    | Entry::Signal {
                        call_done: true,
                        ..
                    }
            );
            let asked = instruction
                && !matches!(
                    entry,
                    Entry::Resumed { .. } | Entry::Signal { .. } | Entry::Repeated { .. }
                )
                && !matches!(entry, Entry::SystemCall { tid, .. } if *tid != self.now.running);
            if at < self.now.count {
                return Err(self.diverged(&format!(
                    "it is past instruction {at}, where something was recorded"
                )));
            }
            // What happens at the end of a search is of the next one.
            let is_end_of_search =
                || (self.found.as_ref()).is_some_and(|found| found.ends_at(goal));
            if self.now.count == goal && (at > goal || instruction || last || is_end_of_search()) {
                return Ok(());
            }
            let stop = at.min(goal);
            if self.now.count < stop {
                let at_stop = self.run(stop, stop == at && asked)?;
                if (at_stop || self.found.is_some()) && halt(self) {
                    return Ok(());
                }
                self.keep_some()?;
                continue;
            }
            self.apply()?;
            self.move_notes();
        }
    }

    /// Runs until `stop` instructions are executed, or not so far; `asked`: the instruction there traps by itself. Returns whether
    /// it has come to a stop that was set.
    fn run(&mut self, stop: u64, asked: bool) -> Result<bool> {
        let at_stop = self.run_some(stop, asked)?;
        self.drain()?;
        self.settle_notes()?;
        Ok(at_stop)
    }

    fn run_some(&mut self, stop: u64, asked: bool) -> Result<bool> {
        let limit = match asked {
            true => stop + 1,
            // What code notes is told once: the last instructions are stepped.
            false if self.found.is_some() => stop.saturating_sub(STEPPED),
            false => stop,
        };
        // Long stretches are cut, for checkpoints. It stops before the block that would go past the limit.
        let longest = self.checkpoints.every.saturating_add(BLOCK);
        let cut = limit > self.now.count.saturating_add(longest);
        let limit = limit.min(self.now.count.saturating_add(longest));
        if limit > self.now.count && (asked || self.is_in_code(stop)?) {
            let halt = self.run_fast(limit)?;
            let is_there = self.now.count == stop;
            match halt {
                Halt::Stop if is_there && !asked && !self.has_many_writes() => {
                    return self.back_to_stop().map(|()| false);
                }
                Halt::Stop => return Ok(true),
                Halt::Asked | Halt::Fault(_) | Halt::Nowhere if is_there => return Ok(false),
                Halt::Asked => return Err(self.asks()),
                Halt::Nowhere => return Err(self.diverged(NOWHERE)),
                Halt::Fault(signal) => return Err(self.not_recorded(signal)),
                Halt::Limit if asked && !cut => {
                    return Err(
                        self.diverged("the program passed the place of the next recorded event")
                    );
                }
                Halt::Limit if cut => return Ok(false),
                Halt::Limit => {}
            }
        }
        match asked {
            true => Ok(false),
            false => self.approach(stop),
        }
    }

    /// Whether the process stands in translated code: else it is where no code of the program is, and has a fault. Within a block, of
    /// which all is counted already, it goes on in a new one if the block reaches beyond `stop`.
    fn is_in_code(&mut self, stop: u64) -> Result<bool> {
        let registers = ptrace::registers(self.process.pid).context("read registers")?;
        let Some(place) = self.translator.place(registers.rip) else {
            return Ok(false);
        };
        if self.now.count + u64::from(place.ahead) > stop && self.found.is_none() {
            let own = self.registers()?;
            self.enter(&own)?;
        }
        Ok(true)
    }

    /// The process has come to a stop that was set, and is to be before it again.
    fn back_to_stop(&self) -> Result<()> {
        let pid = self.process.pid;
        let mut registers = ptrace::registers(pid).context("read registers")?;
        registers.rip -= 1;
        ptrace::set_registers(pid, &registers).context("set registers")
    }

    /// Takes over the counter; the process is stopped at this address.
    pub(super) fn take_counter(&mut self, r15: u64, at: u64) -> Result<()> {
        self.now.count = self.counter(r15, at)?;
        Ok(())
    }

    /// How many instructions are executed when the process is stopped at this address.
    pub(super) fn counter(&self, r15: u64, at: u64) -> Result<u64> {
        let Some(place) = self.translator.place(at) else {
            return Ok(self.now.count);
        };
        let value = match place.swapped {
            true => self
                .process
                .word(self.block() + u64::from(layout::SLOT_COUNTER))?,
            false => r15,
        };
        Ok(self.limit.count(value).wrapping_sub(u64::from(place.ahead)))
    }

    pub(super) fn run_fast(&mut self, limit: u64) -> Result<Halt> {
        let pid = self.process.pid;
        self.set_limit(limit)?;
        loop {
            let signal = self.run_on()?;
            let mut registers = ptrace::registers(pid).context("read registers")?;
            let at = registers.rip - 1;
            let trap = if signal == libc::SIGTRAP {
                self.translator.trap(at)
            } else {
                None
            };
            match trap {
                Some(Trap::Goal) => {
                    registers.rip = at;
                    ptrace::set_registers(pid, &registers).context("set registers")?;
                    self.take_counter(registers.r15, at)?;
                    return Ok(Halt::Limit);
                }
                Some(Trap::SystemCall { .. } | Trap::Chance { .. } | Trap::Unsupported { .. }) => {
                    registers.rip = at;
                    ptrace::set_registers(pid, &registers).context("set registers")?;
                    self.take_counter(registers.r15, at)?;
                    return Ok(Halt::Asked);
                }
                Some(Trap::Stop { .. }) => {
                    // It goes on behind the trap.
                    self.take_counter(registers.r15, at)?;
                    return Ok(Halt::Stop);
                }
                Some(trap @ (Trap::Before { .. } | Trap::After { .. })) => {
                    self.noted_trap(at, trap, registers.r15)?
                }
                Some(trap) if !self.pass(at, trap)? => return Ok(Halt::Nowhere),
                Some(_) => {}
                None if signal == libc::SIGTRAP && self.noted_write(false)? => {
                    if self.has_many_writes() {
                        self.take_counter(registers.r15, registers.rip)?;
                        return Ok(Halt::Stop);
                    }
                    self.ask_overseer()?;
                }
                None if signal == libc::SIGSEGV && self.is_at_limit()? => {
                    if self.limit.is_at_least(limit) {
                        return Ok(Halt::Limit);
                    }
                    self.set_limit(limit)?;
                }
                None if signal == libc::SIGSEGV && self.emptied()? => {
                    if self.found_enough() {
                        let registers = ptrace::registers(pid).context("read registers")?;
                        self.take_counter(registers.r15, registers.rip)?;
                        return Ok(Halt::Stop);
                    }
                }
                None => {
                    self.take_counter(registers.r15, registers.rip)?;
                    return Ok(Halt::Fault(signal));
                }
            }
        }
    }

    /// Goes on behind a trap that only asks for a translation. Returns whether there is one: else it stands where no code is.
    fn pass(&mut self, at: u64, trap: Trap) -> Result<bool> {
        let pid = self.process.pid;
        let mut registers = ptrace::registers(pid).context("read registers")?;
        let target = match trap {
            Trap::Exit { target, .. } | Trap::Moved { target } => target,
            Trap::Miss => {
                let target = registers.rax;
                registers.rax = self
                    .process
                    .word(self.block() + u64::from(layout::SLOT_RAX))?;
                registers.rcx = self
                    .process
                    .word(self.block() + u64::from(layout::SLOT_RCX))?;
                target
            }
            _ => return Err(self.diverged("it comes to a place where nothing was recorded")),
        };
        let (resets, translated) = (self.translator.resets(), self.translated_at(target)?);
        let Some(body) = translated else {
            self.now.count = self.limit.count(registers.r15);
            registers.r15 = self
                .process
                .word(self.block() + u64::from(layout::SLOT_R15))?;
            registers.rip = target;
            ptrace::set_registers(pid, &registers).context("set registers")?;
            return Ok(false);
        };
        match trap {
            _ if self.translator.resets() != resets => {}
            Trap::Exit { distance_at, .. } => self.translator.link(at, distance_at, body),
            Trap::Moved { .. } => self.translator.lead(at, body),
            _ => self.translator.check(target, body),
        }
        self.process.flush(&mut self.translator)?;
        registers.rip = body;
        ptrace::set_registers(pid, &registers).context("set registers")?;
        Ok(true)
    }

    /// Executes an instruction that repeats, before which the process stands, up to its end; returns the signal that it has stopped with.
    /// Steps would be as many as its repetitions.
    pub(super) fn run_over(&mut self, end: u64) -> Result<i32> {
        let pid = self.process.pid;
        let displaced = self.process.put_trap(end)?;
        let signal = loop {
            let signal = self.run_on()?;
            if signal != libc::SIGTRAP {
                break signal;
            }
            let mut registers = ptrace::registers(pid).context("read registers")?;
            if registers.rip == end + 1 {
                registers.rip = end;
                ptrace::set_registers(pid, &registers).context("set registers")?;
                break signal;
            }
            self.noted_write(false)?;
        };
        self.process.write(end, &displaced)?;
        Ok(signal)
    }

    /// Steps until `stop` instructions are executed.
    pub(super) fn step_to(&mut self, stop: u64) -> Result<bool> {
        let pid = self.process.pid;
        self.set_limit(self.now.count + FAR)?;
        loop {
            let mut registers = self.process.registers_after_step(pid)?;
            let at = registers.rip;
            if let Some(place) = self.translator.place(at)
                && place.boundary
                && place.at == at
            {
                self.take_counter(registers.r15, at)?;
                if self.now.count == stop {
                    return Ok(false);
                }
                if self.now.count > stop {
                    return Err(self.diverged(&format!("it went past instruction {stop}")));
                }
            }
            match self.translator.trap(at) {
                Some(trap @ (Trap::Exit { .. } | Trap::Moved { .. } | Trap::Miss)) => {
                    if self.pass(at, trap)? {
                        continue;
                    }
                    return match self.now.count == stop {
                        true => Ok(false),
                        false => Err(self.diverged(NOWHERE)),
                    };
                }
                Some(Trap::Stop { .. }) => {
                    registers.rip = at + 1;
                    ptrace::set_registers(pid, &registers).context("set registers")?;
                    return Ok(true);
                }
                Some(trap @ (Trap::Before { .. } | Trap::After { .. })) => {
                    registers.rip = at + 1;
                    ptrace::set_registers(pid, &registers).context("set registers")?;
                    self.noted_trap(at, trap, registers.r15)?;
                    continue;
                }
                Some(_) => return Err(self.asks()),
                None => {}
            }
            let pushes_flags = self.process.pushes_flags(at);
            let repeated = self.process.end_of_repeated(at);
            let signal = match repeated {
                Some(end) => self.run_over(end)?,
                None => self.step_on()?,
            };
            if pushes_flags && signal == libc::SIGTRAP {
                self.process.hide_step(pid)?;
            }
            if repeated.is_none() && signal == libc::SIGTRAP {
                self.noted_write(true)?;
            }
            if signal == libc::SIGSEGV && self.emptied()? {
                continue;
            }
            if signal != libc::SIGTRAP {
                return Err(self.not_recorded(signal));
            }
        }
    }
}
