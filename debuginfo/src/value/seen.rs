//! What registers held when a value was read. Its parts may be read later, by code that sees the registers of another frame.

use std::sync::Arc;

use super::place::{is_x87, register_bytes};
use super::{Piece, ValuePlace};
use crate::machine::{Certainty, Machine, Register, Unknown};

/// Bytes of a general register, and of the half of a vector register that may be known alone.
pub(super) const WORD: usize = 8;

/// Bytes that were read, or why they are unknown.
pub(super) type Bytes = Result<(Vec<u8>, Certainty), Unknown>;

/// What a register held when a value was read.
#[derive(Debug, Clone)]
pub(crate) struct SeenRegister {
    /// Its low bytes.
    low: Bytes,
    /// As many bytes as the value has there, if they are more.
    whole: Bytes,
}

impl SeenRegister {
    fn read(register: Register, length: usize, machine: &dyn Machine) -> SeenRegister {
        let low = register_bytes(register, WORD, machine);
        let whole = match length > WORD {
            true => register_bytes(register, length, machine),
            false => low.clone(),
        };
        SeenRegister { low, whole }
    }

    /// Returns its bytes for a read of `length` of them.
    pub(super) fn bytes(&self, length: usize) -> Bytes {
        let found = if length > WORD {
            &self.whole
        } else {
            &self.low
        };
        found.clone()
    }
}

/// Notes what the registers among the pieces hold. Those of a piece that was read before stay as they were.
fn see_registers(pieces: &mut [Piece], machine: &dyn Machine) {
    for piece in pieces {
        if let (ValuePlace::Register(register), None) = (&piece.place, &piece.seen) {
            let bits = piece.offset_bits.saturating_add(piece.size_bits);
            let length = usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX);
            piece.seen = see(*register, length, machine).map(Arc::new);
        }
    }
}

/// Returns the value's place with what its registers hold.
pub(super) fn with_registers(mut place: ValuePlace, machine: &dyn Machine) -> ValuePlace {
    if let ValuePlace::Pieces(pieces) = &mut place {
        see_registers(pieces, machine);
    }
    place
}

/// Returns `None` for an x87 register that can be read: how many bytes are wanted decides in which format they are.
fn see(register: Register, length: usize, machine: &dyn Machine) -> Option<SeenRegister> {
    let is_read_again = is_x87(register) && machine.extended().is_some();
    (!is_read_again).then(|| SeenRegister::read(register, length, machine))
}
