//! Instructions that save state in memory: they are executed for what else they do, and what they saved is what was recorded.

use libc::user_regs_struct;

use super::Replay;
use crate::error::{Context as _, Result};
use crate::log::{Bytes, Registers};
use crate::ptrace;
use crate::translate::Trap;

impl Replay {
    /// An instruction with results of its own, before which the process is.
    pub(super) fn chance(&mut self, registers: &Registers, writes: &[Bytes]) -> Result<()> {
        if !writes.is_empty() {
            let address = self.registers()?.rip;
            let before = self.before_kernel(writes);
            // It is told once, by the entry.
            let told = self.records_end()?;
            self.execute()?;
            self.set_records_end(told)?;
            if self.write(writes).is_err() {
                return Err(self.diverged("there is no memory where state was saved"));
            }
            self.found_saved(address, writes, &before);
        }
        self.now.count += 1;
        self.enter(&user_regs_struct::from(registers))
    }

    /// Executes its translation.
    pub(super) fn execute(&mut self) -> Result<()> {
        let (pid, own) = (self.process.pid, self.registers()?);
        self.lift_limit();
        self.enter(&own)?;
        let mut is_there = false;
        loop {
            let mut registers = self.process.registers_after_step(pid)?;
            let at = registers.rip;
            if is_there && self.translator.place(at).map(|place| place.pc) != Some(own.rip) {
                return Ok(());
            }
            match self.translator.trap(at) {
                Some(trap @ (Trap::Chance { .. } | Trap::Stop { .. })) => {
                    is_there |= matches!(trap, Trap::Chance { .. });
                    registers.rip = at + 1;
                    ptrace::set_registers(pid, &registers).context("set registers")?;
                }
                Some(_) => return Err(self.asks()),
                None => {}
            }
            let signal = self.step_on()?;
            if signal == libc::SIGSEGV && self.emptied()? {
                continue;
            }
            if signal != libc::SIGTRAP {
                return Err(self.not_recorded(signal));
            }
        }
    }
}
