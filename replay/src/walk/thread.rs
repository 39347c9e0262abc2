//! A thread of a program that is run again, as a machine for unwinding.

use std::cell::OnceCell;

use debuginfo::{Certainty, Machine, Register, Unknown};
use exact::{Registers as General, Replay};
use store::control::REGISTER_NAMES;

use crate::every::{VECTORS, vectors_of};

/// Where rip and rsp are among the registers.
const RIP: usize = 16;
const RSP: usize = 19;

/// A thread at the present moment of a replay.
pub(super) struct Thread<'r> {
    replay: &'r Replay,
    tid: i32,
    general: [u64; 27],
    /// Read on demand.
    vectors: OnceCell<Option<[[u8; 16]; VECTORS]>>,
    /// The number of hits, for expressions.
    pub hit_count: Option<u64>,
    /// See [`Machine::calls_to_come`].
    pub calls_to_come: usize,
}

impl<'r> Thread<'r> {
    /// Reads the registers of a thread; `None` if it does not exist.
    pub fn new(replay: &'r Replay, tid: i32) -> Option<Thread<'r>> {
        let registers = match replay.thread() == tid {
            true => replay.registers().ok()?,
            false => replay.registers_of(tid)?,
        };
        Some(Thread {
            replay,
            tid,
            general: General::from(&registers).0,
            vectors: OnceCell::new(),
            hit_count: None,
            calls_to_come: 0,
        })
    }

    pub fn rip(&self) -> u64 {
        self.general[RIP]
    }

    pub fn rsp(&self) -> u64 {
        self.general[RSP]
    }

    fn vectors(&self) -> Option<[[u8; 16]; VECTORS]> {
        match self.replay.thread() == self.tid {
            true => Some(vectors_of(&self.replay.extended().ok()?)),
            false => self.replay.extended_of(self.tid).map(vectors_of),
        }
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

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        let vectors = self.vectors.get_or_init(|| self.vectors()).as_ref();
        let index = usize::from(register.0.wrapping_sub(Register::XMM0.0));
        let vector = vectors.and_then(|vectors| vectors.get(index));
        let vector = vector.ok_or_else(|| Unknown::because("the register is not read"))?;
        Ok((*vector, Certainty::Known))
    }

    fn calls_to_come(&self) -> usize {
        self.calls_to_come
    }

    fn hit_count(&self) -> Option<u64> {
        self.hit_count
    }
}
