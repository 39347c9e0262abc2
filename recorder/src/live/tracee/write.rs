//! Writes the registers of stopped threads for the user.

use std::io;

use debuginfo::{Extended, Register};
use exact::abi::{SSE, set_in_use, set_x87_result};

use super::{
    Tracee,
    machine::{XMM_OFFSET, field},
    threads::Trap,
};
use crate::live::{
    breakpoints::Breakpoints,
    error::{LiveError, LiveResult},
    journal::{Journal, WrittenPlace},
    model::Tid,
};

impl Tracee {
    /// # Errors
    /// The thread is running, or there is none.
    pub fn check_stopped(&self, tid: Tid) -> LiveResult<()> {
        let thread = self.threads.get(&tid).ok_or(LiveError::NoThread(tid))?;
        match thread.stop() {
            Some(_) => Ok(()),
            None => Err(LiveError::Running(tid)),
        }
    }

    /// Writes a register of a stopped thread, and records that. Returns the old bytes.
    pub fn write_register(
        &mut self,
        breakpoints: &Breakpoints,
        journal: &Journal,
        tid: Tid,
        target: &str,
        register: Register,
        bytes: &[u8],
    ) -> LiveResult<Vec<u8>> {
        self.check_stopped(tid)?;
        let vector = register.0.checked_sub(Register::XMM0.0);
        let old = match vector.filter(|index| *index < 16) {
            Some(index) => self.write_vector(tid, index.into(), bytes)?,
            None => self.write_general(breakpoints, tid, register, bytes)?,
        };
        let place = WrittenPlace::Register(register.name().unwrap_or_default());
        journal.write(tid, target, place, Some(old.clone()), bytes.to_vec());
        Ok(old)
    }

    fn write_vector(&self, tid: Tid, index: usize, bytes: &[u8]) -> LiveResult<Vec<u8>> {
        let stopped = self.stopped(tid)?;
        let mut state = stopped.extended_state().map_err(not_written)?;
        let at = XMM_OFFSET + index * 16;
        let place = state
            .get_mut(at..at + bytes.len().min(16))
            .ok_or(LiveError::Ended)?;
        let old = place.to_vec();
        place.copy_from_slice(&bytes[..old.len()]);
        set_in_use(&mut state, SSE);
        stopped.set_extended_state(&state).map_err(not_written)?;
        Ok(old)
    }

    /// Makes a number the only one on the x87 stack of a stopped thread, and records that.
    pub fn write_x87_result(
        &self,
        journal: &Journal,
        tid: Tid,
        target: &str,
        number: [u8; 10],
    ) -> LiveResult<()> {
        self.check_stopped(tid)?;
        let stopped = self.stopped(tid)?;
        let mut state = stopped.extended_state().map_err(not_written)?;
        let old = Extended::X87(0).read(&state);
        set_x87_result(&mut state, number);
        stopped.set_extended_state(&state).map_err(not_written)?;
        let place = WrittenPlace::Register("st0".to_owned());
        journal.write(tid, target, place, old, number.to_vec());
        Ok(())
    }

    fn write_general(
        &mut self,
        breakpoints: &Breakpoints,
        tid: Tid,
        register: Register,
        bytes: &[u8],
    ) -> LiveResult<Vec<u8>> {
        let mut registers = self.registers(tid)?;
        let stands_at = registers.rip;
        registers.rip = breakpoints.original_pc(self, stands_at);
        let field = field(&mut registers, register).filter(|_| !register.is_segment());
        let Some(field) = field else {
            let name = register.name().unwrap_or_default();
            let message = format!("there is no register {name} that can be written");
            return Err(LiveError::Evaluate(message.into()));
        };
        let mut word = field.to_le_bytes();
        let len = bytes.len().min(8);
        let old = word[..len].to_vec();
        word[..len].copy_from_slice(&bytes[..len]);
        *field = u64::from_le_bytes(word);
        let is_pc = register == Register::RIP;
        if !is_pc {
            // The thread stays in the slot or copy where it really is.
            registers.rip = stands_at;
        }
        let stopped = self.stopped(tid)?;
        stopped.set_registers(&registers).map_err(not_written)?;
        if is_pc && let Some(halt) = self.halt_mut(tid) {
            // The thread has not been at its new place yet: a trap there is still to be hit.
            halt.trap = Trap::Ahead;
        }
        Ok(old)
    }
}

fn not_written(source: io::Error) -> LiveError {
    LiveError::System {
        action: "write the register",
        source,
    }
}
