//! A thread of a program that is run again, as a machine that can be unwound.

use debuginfo::{Certainty, Machine, Register, Unknown};
use exact::{Registers as General, Replay};
use store::control::REGISTER_NAMES;

/// Where rip and rsp are among the registers.
const RIP: usize = 16;
const RSP: usize = 19;

/// A thread at the present moment of a replay.
pub(super) struct Thread<'r> {
    replay: &'r Replay,
    general: [u64; 27],
}

impl<'r> Thread<'r> {
    /// Reads the registers of a thread; `None` if it is not there.
    pub fn new(replay: &'r Replay, tid: i32) -> Option<Thread<'r>> {
        let registers = match replay.thread() == tid {
            true => replay.registers().ok()?,
            false => replay.registers_of(tid)?,
        };
        Some(Thread {
            replay,
            general: General::from(&registers).0,
        })
    }

    pub fn rip(&self) -> u64 {
        self.general[RIP]
    }

    pub fn rsp(&self) -> u64 {
        self.general[RSP]
    }

    /// Reads a word of memory.
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.replay.read(address, &mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
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
        let value = index.map(|index| self.general[index]);
        let value = value.ok_or_else(|| Unknown::because("the register is not read"))?;
        Ok((value, Certainty::Known))
    }

    fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
        Err(Unknown::because("the register is not read"))
    }
}
