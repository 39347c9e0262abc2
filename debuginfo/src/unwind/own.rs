//! The registers of the innermost frame as its variables have them: without what they held before the frame existed.

use crate::machine::{Certainty, Machine, Register, Unknown};

/// A frame's machine, whose registers are unknown if they were last seen before the frame existed.
pub(crate) struct OwnRegisters<'m>(pub &'m dyn Machine);

impl OwnRegisters<'_> {
    fn own<T>(&self, seen: (T, Certainty)) -> Result<(T, Certainty), Unknown> {
        match seen.1 {
            Certainty::Stale { as_of } if self.0.is_before_frame(as_of) => Err(Unknown::because(
                "unknown: not seen since its function was called",
            )),
            _ => Ok(seen),
        }
    }
}

impl Machine for OwnRegisters<'_> {
    fn behind(&self) -> Option<&dyn Machine> {
        Some(self.0)
    }

    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        self.0.memory(address, bytes)
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        let seen = self.0.register(register)?;
        match register {
            // They belong to the thread.
            Register::FS_BASE | Register::GS_BASE => Ok(seen),
            _ => self.own(seen),
        }
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        self.own(self.0.vector(register)?)
    }

    fn vector_low(&self, register: Register) -> Result<([u8; 8], Certainty), Unknown> {
        self.own(self.0.vector_low(register)?)
    }
}
