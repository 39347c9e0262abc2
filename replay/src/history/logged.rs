//! Values at logged writes, of which there may be millions: only the written bytes are read if they suffice.

use std::cell::Cell;

use debuginfo::{Certainty, Machine, Register, Unknown};

use super::{Sight, Tracked, outside};
use crate::timeline::Timeline;

/// The bytes that a write has left at an address; nothing else is known.
struct Left<'b> {
    address: u64,
    bytes: &'b [u8],
    /// Some of them were read.
    is_used: Cell<bool>,
    /// Bytes outside these were requested.
    lacks: Cell<bool>,
}

impl Left<'_> {
    fn inside(&self, address: u64, len: usize) -> Option<&[u8]> {
        let offset = usize::try_from(address.checked_sub(self.address)?).ok()?;
        self.bytes.get(offset..offset.checked_add(len)?)
    }

    /// Returns whether some bytes of a range are among its own.
    fn overlaps(&self, address: u64, len: usize) -> bool {
        let end = self.address.saturating_add(self.bytes.len() as u64);
        address < end && self.address < address.saturating_add(len as u64)
    }
}

impl Machine for Left<'_> {
    fn memory(&self, address: u64, bytes: &mut [u8]) -> Result<Certainty, Unknown> {
        let overlaps = self.overlaps(address, bytes.len());
        self.is_used.set(self.is_used.get() || overlaps);
        match self.inside(address, bytes.len()) {
            Some(found) => {
                bytes.copy_from_slice(found);
                Ok(Certainty::Known)
            }
            None => {
                self.lacks.set(true);
                Err(Unknown::because("it was not written"))
            }
        }
    }

    fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
        self.lacks.set(true);
        Err(Unknown::because("it was not written"))
    }

    fn vector(&self, register: Register) -> Result<([u8; 16], Certainty), Unknown> {
        self.register(register).map(|_| ([0; 16], Certainty::Known))
    }
}

impl Tracked {
    /// Evaluates the expression where the program has just written `bytes` at `address`. `None`: more must be read.
    pub(super) fn sight_logged(
        &self,
        timeline: &Timeline,
        seq: u64,
        (address, bytes): (u64, &[u8]),
    ) -> Option<Sight> {
        let space = timeline.modules.space(seq);
        let machine = Left {
            address,
            bytes,
            is_used: Cell::new(false),
            lacks: Cell::new(false),
        };
        let sight = self.seen(&outside(&space, &machine), None);
        match (machine.lacks.get(), machine.is_used.get()) {
            (false, true) => Some(sight),
            // The rest of the expression is unknown at this event, or constant and was known before.
            (true, false) => Some(Sight::Unknown),
            _ => None,
        }
    }
}
