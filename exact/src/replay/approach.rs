//! The last instructions before a moment: they run in translations that change no flags and come back at the block that would go past
//! it, and in that block to a trap at the very instruction.

use super::Replay;
use super::run::{FAR, Halt, NOWHERE};
use crate::error::{Context as _, Result};
use crate::ptrace;
use crate::translate::Trap;

impl Replay {
    /// Runs until `stop` instructions are executed, which are few more. Returns whether it has come to a stop that was set, before.
    pub(super) fn approach(&mut self, stop: u64) -> Result<bool> {
        if self.now.count == stop {
            return Ok(false);
        }
        if self.found.is_some() {
            // What code notes is told once: it does not begin anew in other translations.
            return self.step_to(stop);
        }
        if !self.translator.is_exact() {
            let own = self.registers()?;
            self.translator.set_exact(true);
            self.enter_chosen(&own)?;
        }
        let rip = ptrace::registers(self.process.pid)
            .context("read registers")?
            .rip;
        if self.translator.place(rip).is_none() {
            return self.step_to(stop);
        }
        let mut halt = self.run_fast(stop)?;
        if matches!(halt, Halt::Limit) && self.now.count < stop {
            halt = match self.run_in_block(stop)? {
                Some(halt) => halt,
                None => return self.step_to(stop),
            };
        }
        let is_there = self.now.count == stop;
        match halt {
            // Where it has stopped because of many writes there is no trap.
            Halt::Stop if is_there && !self.has_many_writes() => {
                // It is before the trap again.
                let mut registers =
                    ptrace::registers(self.process.pid).context("read registers")?;
                registers.rip -= 1;
                ptrace::set_registers(self.process.pid, &registers).context("set registers")?;
            }
            Halt::Stop => return Ok(true),
            _ if is_there => {}
            Halt::Limit => return Err(self.diverged(&format!("it went past instruction {stop}"))),
            Halt::Asked => {
                return Err(self.asks());
            }
            Halt::Nowhere => return Err(self.diverged(NOWHERE)),
            Halt::Fault(signal) => {
                return Err(self.not_recorded(signal));
            }
        }
        let own = self.registers()?;
        self.enter(&own)?;
        Ok(false)
    }

    /// The process stands at the beginning of the block in which `stop` lies. `None`: it has no place where it could be stopped.
    fn run_in_block(&mut self, stop: u64) -> Result<Option<Halt>> {
        let head = ptrace::registers(self.process.pid)
            .context("read registers")?
            .rip;
        let Ok(number) = u8::try_from(stop - self.now.count) else {
            return Ok(None);
        };
        let Some(at) = self.translator.instruction_in(head, number) else {
            return Ok(None);
        };
        let far = self.now.count + FAR;
        match self.translator.trap(at) {
            None => {}
            // It stops there by itself.
            Some(Trap::SystemCall { .. } | Trap::Chance { .. } | Trap::Unsupported { .. }) => {
                return self.run_fast(far).map(Some);
            }
            Some(_) => return Ok(None),
        }
        let byte = self.process.put_trap(at)?;
        self.translator.set_goal(at, true);
        let halt = self.run_fast(far);
        self.translator.set_goal(at, false);
        self.process.write(at, &byte)?;
        halt.map(Some)
    }
}
