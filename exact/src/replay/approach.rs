//! The last instructions before a moment: the process stands at the beginning of the block in which it lies, and runs to a trap at the
//! very instruction.

use super::Replay;
use super::run::{FAR, Halt};
use crate::error::{Context as _, Result};
use crate::ptrace;
use crate::translate::Trap;

impl Replay {
    /// Runs until `stop` instructions are executed, which are few more. Returns whether it has come to a stop that was set, before.
    pub(super) fn approach(&mut self, stop: u64) -> Result<bool> {
        if self.now.count == stop {
            return Ok(false);
        }
        // What code notes is told once: a part of a block is not executed anew.
        if self.found.is_some() {
            return self.step_to(stop);
        }
        match self.run_in_block(stop)? {
            Some(Halt::Stop) => Ok(true),
            Some(Halt::Limit | Halt::Asked | Halt::Fault(_) | Halt::Nowhere)
                if self.now.count == stop =>
            {
                let own = self.registers()?;
                self.enter(&own)?;
                Ok(false)
            }
            Some(Halt::Fault(signal)) => Err(self.not_recorded(signal)),
            Some(_) => Err(self.diverged(&format!("it went past instruction {stop}"))),
            None => self.step_to(stop),
        }
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
