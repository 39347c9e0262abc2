//! The running thread of a program that is run again, as expressions see it.

use debuginfo::{Certainty, Machine, Register, Unknown};
use exact::{Registers, Replay, abi::vectors};
use store::control::REGISTER_NAMES;

/// Where rip is among the registers.
const RIP: usize = 16;

/// The running thread at the present moment.
pub(super) struct Thread<'r> {
    replay: &'r Replay,
    general: Registers,
    /// The number of hits of the probe that is evaluated.
    pub hit_count: Option<u64>,
    /// See [`Machine::calls_to_come`].
    pub calls_to_come: usize,
}

impl<'r> Thread<'r> {
    /// Reads its registers; `None`: they cannot be read.
    pub fn running(replay: &'r Replay) -> Option<Thread<'r>> {
        Some(Thread {
            replay,
            general: Registers::from(&replay.registers().ok()?),
            hit_count: None,
            calls_to_come: 0,
        })
    }

    /// Returns the address of its next instruction.
    pub fn address(&self) -> u64 {
        self.general.0[RIP]
    }
}

impl Machine for Thread<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        match self.replay.read(address, bytes) == bytes.len() {
            true => Ok(Certainty::Known),
            false => Err(Unknown::because("there is no readable memory")),
        }
    }

    fn register(&self, register: Register) -> Result<(u64, Certainty), Unknown> {
        let is_it = |name: &&str| Register::by_name(name) == Some(register);
        let index = REGISTER_NAMES.iter().position(is_it);
        let value = index.map(|index| self.general.0[index]);
        let value = value.ok_or_else(|| Unknown::because("the register is not read"))?;
        Ok((value, Certainty::Known))
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        let extended = self.replay.extended().ok();
        let index = usize::from(register.0.wrapping_sub(Register::XMM0.0));
        let vector = extended.and_then(|extended| vectors(&extended).get(index).copied());
        let vector = vector.ok_or_else(|| Unknown::because("the register is not read"))?;
        Ok((vector, Certainty::Known))
    }

    fn hit_count(&self) -> Option<u64> {
        self.hit_count
    }

    fn calls_to_come(&self) -> usize {
        self.calls_to_come
    }
}
