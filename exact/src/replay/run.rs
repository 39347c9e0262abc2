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
        if self.translator.is_exact() && self.now.count < stop {
            // Behind a stop that was come to on the last instructions before another moment.
            if self.approach(self.now.count + 1)? {
                return Ok(true);
            }
            if self.now.count == stop && !asked {
                return Ok(false);
            }
        }
        let mut stop_fast = if asked {
            stop + 1
        } else {
            stop.saturating_sub(STEPPED)
        };
        // Long stretches are cut, for checkpoints.
        let cut = stop_fast > self.now.count.saturating_add(self.checkpoints.every);
        stop_fast = stop_fast.min(self.now.count.saturating_add(self.checkpoints.every));
        if stop_fast > self.now.count + BLOCK || asked {
            match self.run_fast(stop_fast)? {
                Halt::Stop => return Ok(true),
                Halt::Asked if asked && self.now.count == stop => return Ok(false),
                Halt::Asked => {
                    return Err(self.asks());
                }
                Halt::Fault(_) | Halt::Nowhere if self.now.count == stop => return Ok(false),
                Halt::Nowhere => return Err(self.diverged(NOWHERE)),
                Halt::Fault(signal) => {
                    return Err(self.not_recorded(signal));
                }
                Halt::Limit if asked && !cut => {
                    return Err(
                        self.diverged("the program passed the place of the next recorded event")
                    );
                }
                // What is kept here must have the program's flags: to behind the block, see below.
                Halt::Limit if cut => return self.approach(stop.min(self.now.count + STEPPED)),
                Halt::Limit => {}
            }
        }
        if !asked && stop - self.now.count <= STEPPED + BLOCK {
            return self.approach(stop);
        }
        Ok(false)
    }

    /// Sets the counter so that the process runs up to this limit.
    fn set_limit(&mut self, limit: u64) -> Result<()> {
        self.drain()?;
        let pid = self.process.pid;
        let mut registers = ptrace::registers(pid).context("read registers")?;
        let place = self.translator.place(registers.rip);
        let place = place.ok_or_else(|| self.diverged(NOWHERE))?;
        self.limit = limit;
        let value = (self.now.count + u64::from(place.ahead)).wrapping_sub(limit);
        if place.swapped {
            return self
                .process
                .set_word(self.block() + u64::from(layout::SLOT_COUNTER), value);
        }
        registers.r15 = value;
        ptrace::set_registers(pid, &registers).context("set registers")
    }

    /// Takes over the counter; the process is stopped at this address.
    fn take_counter(&mut self, r15: u64, at: u64) -> Result<()> {
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
        Ok(value
            .wrapping_add(self.limit)
            .wrapping_sub(u64::from(place.ahead)))
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
                Some(Trap::Limit { head }) => {
                    // Back to where the block is counted. If its own instructions make its flags anew, the counting has changed
                    // them: they are right again before the last instruction of the block, and nobody looks before that.
                    let place = self.translator.place(at).expect("traps have places");
                    registers.r15 = registers.r15.wrapping_sub(u64::from(place.ahead));
                    registers.rip = head;
                    ptrace::set_registers(pid, &registers).context("set registers")?;
                    self.take_counter(registers.r15, registers.rip)?;
                    return Ok(Halt::Limit);
                }
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
            self.now.count = registers.r15.wrapping_add(self.limit);
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
            _ if self.translator.is_exact() => {}
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
        let mut flags = None;
        loop {
            let mut registers = self.process.registers_after_step(pid)?;
            let at = registers.rip;
            if let Some(place) = self.translator.place(at)
                && place.boundary
                && place.at == at
            {
                self.take_counter(registers.r15, at)?;
                // The counting of a block may change flags that the block makes anew; the program still has its own.
                match flags {
                    Some((count, own)) if count == self.now.count && own != registers.eflags => {
                        registers.eflags = own;
                        ptrace::set_registers(pid, &registers).context("set registers")?;
                    }
                    _ => flags = Some((self.now.count, registers.eflags)),
                }
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
