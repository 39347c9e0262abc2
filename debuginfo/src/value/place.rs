//! Reads bytes from places: memory, registers, and pieces of both.

use super::padding::Used;
use super::seen::{Bytes, WORD};
use super::{Piece, ValuePlace};
use crate::extended::x87_number;
use crate::machine::{Certainty, Machine, Register, Unknown};

/// The number of st0 in DWARF's table (System V ABI, figure 3.36).
const X87_FIRST: u16 = 33;
/// Bytes of an 80-bit number in a register, and with its padding in memory.
const X87_BYTES: usize = 10;
const X87_IN_MEMORY: usize = 16;

/// Adds the padding that an 80-bit number has in memory.
fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(X87_IN_MEMORY, 0);
    bytes
}

/// Reads `size` bytes at `place`.
pub fn read(
    place: &ValuePlace,
    size: u64,
    machine: &dyn Machine,
) -> Result<(Vec<u8>, Certainty), Unknown> {
    let length = usize::try_from(size).map_err(|_| super::too_large(size))?;
    match place {
        ValuePlace::Memory(address) => {
            let mut bytes = vec![0; length];
            if length == 0 {
                return Ok((bytes, Certainty::Known));
            }
            let certainty = machine.memory(*address, &mut bytes)?;
            Ok((bytes, certainty))
        }
        ValuePlace::Register(register) => {
            first_bytes(register_bytes(*register, length, machine), length)
        }
        ValuePlace::Implicit(bytes) => match bytes.get(..length) {
            Some(bytes) => Ok((bytes.to_vec(), Certainty::Known)),
            None if (bytes.len(), length) == (X87_BYTES, X87_IN_MEMORY) => {
                Ok((padded(bytes.clone()), Certainty::Known))
            }
            None => Err(Unknown::because(
                "the debug information states fewer bytes than its type has",
            )),
        },
        ValuePlace::Pieces(pieces) => read_pieces(pieces, length, machine, None),
        ValuePlace::ImplicitPointer { .. } => Err(Unknown::because("synthetic pointer")),
        ValuePlace::OptimizedOut => Err(Unknown::because("optimized out")),
        ValuePlace::Unknown(why) => Err(why.clone()),
    }
}

/// Returns the first bytes of a register.
fn first_bytes(found: Bytes, length: usize) -> Bytes {
    let (mut bytes, certainty) = found?;
    if bytes.len() < length {
        return Err(Unknown::because("its register is smaller than its type"));
    }
    bytes.truncate(length);
    Ok((bytes, certainty))
}

/// Reads `size` bytes of the place of a piece.
pub(super) fn read_piece(piece: &Piece, size: u64, machine: &dyn Machine) -> Bytes {
    let Some(seen) = &piece.seen else {
        return read(&piece.place, size, machine);
    };
    let length = usize::try_from(size).map_err(|_| super::too_large(size))?;
    first_bytes(seen.bytes(length), length)
}

/// Returns whether it is one of st0 to st7.
pub(super) fn is_x87(register: Register) -> bool {
    (X87_FIRST..X87_FIRST + 8).contains(&register.0)
}

pub(super) fn register_bytes(register: Register, length: usize, machine: &dyn Machine) -> Bytes {
    let is_vector = (Register::XMM0.0..Register::XMM0.0 + 16).contains(&register.0);
    if is_vector && length <= 8 {
        let (bytes, certainty) = machine.vector_low(register)?;
        return Ok((bytes.to_vec(), certainty));
    }
    if is_vector {
        let (bytes, certainty) = machine.vector(register)?;
        return Ok((bytes.to_vec(), certainty));
    }
    if is_x87(register) {
        let number = register.0 - X87_FIRST;
        let why = || Unknown::because("it is on the x87 stack");
        let area = machine.extended().ok_or_else(why)?;
        let bytes = x87_number(&area, usize::from(number), length);
        return Ok((bytes.ok_or_else(why)?, Certainty::Known));
    }
    let (value, mut certainty) = machine.register(register)?;
    let mut bytes = value.to_le_bytes().to_vec();
    // A value of two words is in two consecutive registers: rax and rdx, in DWARF's numbering.
    if length > 8 && length <= 16 && register.0 < 15 {
        let (value, other) = machine.register(Register(register.0 + 1))?;
        bytes.extend(value.to_le_bytes());
        certainty = certainty.and(other);
    }
    Ok((bytes, certainty))
}

/// Like [`read`], for pieces of which those that hold only padding may be unknown. Padding that is not known is zero.
pub(super) fn read_used(
    pieces: &[Piece],
    size: u64,
    machine: &dyn Machine,
    used: &Used,
) -> Result<(Vec<u8>, Certainty), Unknown> {
    let length = usize::try_from(size).map_err(|_| super::too_large(size))?;
    read_pieces(pieces, length, machine, Some(used))
}

fn read_pieces(
    pieces: &[Piece],
    length: usize,
    machine: &dyn Machine,
    used: Option<&Used>,
) -> Result<(Vec<u8>, Certainty), Unknown> {
    let mut out = vec![0; length];
    let mut at: u64 = 0;
    let end = (length as u64).saturating_mul(8);
    let mut certainty = Certainty::Known;
    let needs = |at: u64, bits: u64| used.is_none_or(|used| used.any(at, bits));
    for piece in pieces {
        if at >= end {
            break;
        }
        let bits = piece.size_bits.min(end - at);
        let (start, last) = (piece.offset_bits / 8, piece.offset_bits.checked_add(bits));
        let bytes = last.ok_or_else(|| super::too_large(u64::MAX))?.div_ceil(8);
        if bytes - start > super::MAX_BYTES {
            return Err(super::too_large(bytes));
        }
        // In memory, nothing before the piece is read.
        let (from, skipped) = match &piece.place {
            ValuePlace::Memory(address) => (Some(address.wrapping_add(start)), start),
            _ => (None, 0),
        };
        if bytes - skipped > super::MAX_BYTES {
            return Err(super::too_large(bytes));
        }
        let found = match from {
            Some(address) => read(&ValuePlace::Memory(address), bytes - skipped, machine),
            None => read_piece(piece, bytes, machine),
        };
        match found {
            Ok((read, trust)) => {
                certainty = certainty.and(trust);
                copy_bits(&read, piece.offset_bits - skipped * 8, &mut out, at, bits);
            }
            Err(why) if needs(at, bits) => return Err(why),
            Err(_) => {}
        }
        at += bits;
    }
    match at < end && needs(at, end - at) {
        true => Err(Unknown::because("a part of it was optimized out")),
        false => Ok((out, certainty)),
    }
}

/// For a value that cannot be read as a whole, returns the certainty of its readable pieces.
pub(crate) fn oldest(place: &ValuePlace, machine: &dyn Machine) -> Certainty {
    let ValuePlace::Pieces(pieces) = place else {
        return Certainty::Known;
    };
    let read = |piece: &Piece| {
        let end = piece
            .offset_bits
            .saturating_add(piece.size_bits)
            .div_ceil(8);
        let bytes = end.min(super::MAX_BYTES);
        let whole = read_piece(piece, bytes, machine);
        // Of a vector register, the low half may be known alone.
        let found = whole.or_else(|_| read_piece(piece, bytes.min(WORD as u64), machine));
        found.map(|(_, certainty)| certainty)
    };
    let known = pieces.iter().filter_map(|piece| read(piece).ok());
    known.fold(Certainty::Known, Certainty::and)
}

/// Copies bits. Both sides count from the lowest bit of their first byte.
pub fn copy_bits(from: &[u8], from_bit: u64, to: &mut [u8], to_bit: u64, count: u64) {
    if (from_bit | to_bit | count).is_multiple_of(8) {
        let whole = |bit: u64| usize::try_from(bit / 8).unwrap_or(usize::MAX);
        let (start, at, len) = (whole(from_bit), whole(to_bit), whole(count));
        let source = from.get(start..start.saturating_add(len));
        let target = to.get_mut(at..at.saturating_add(len));
        if let (Some(source), Some(target)) = (source, target) {
            target.copy_from_slice(source);
        }
        return;
    }
    for bit in 0..count {
        let place = |bit: u64| (usize::try_from(bit / 8).unwrap_or(usize::MAX), bit % 8);
        let ((source, shift), (target, at)) = (place(from_bit + bit), place(to_bit + bit));
        let value = from.get(source).map_or(0, |byte| byte >> shift & 1);
        if let Some(byte) = to.get_mut(target) {
            *byte = *byte & !(1 << at) | value << at;
        }
    }
}

/// Returns the place of `size` bytes that begin at byte `offset` of `place`.
pub fn part(place: &ValuePlace, offset: u64, size: u64) -> ValuePlace {
    let bits = |bytes: u64| bytes.saturating_mul(8);
    match place {
        ValuePlace::Memory(address) => ValuePlace::Memory(address.wrapping_add(offset)),
        ValuePlace::Register(_) if offset == 0 => place.clone(),
        ValuePlace::Register(_) => {
            ValuePlace::Pieces(vec![Piece::new(place.clone(), bits(offset), bits(size))])
        }
        ValuePlace::Implicit(bytes) => {
            let start = usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            let end = usize::try_from(offset.saturating_add(size)).unwrap_or(usize::MAX);
            ValuePlace::Implicit(bytes[start..end.clamp(start, bytes.len())].to_vec())
        }
        ValuePlace::Pieces(pieces) => {
            ValuePlace::Pieces(part_of_pieces(pieces, bits(offset), bits(size)))
        }
        ValuePlace::ImplicitPointer { .. } if offset == 0 => place.clone(),
        ValuePlace::ImplicitPointer { .. } => {
            ValuePlace::Unknown(Unknown::because("synthetic pointer"))
        }
        ValuePlace::OptimizedOut | ValuePlace::Unknown(_) => place.clone(),
    }
}

/// Returns the place of `size` bits that begin at bit `offset` of `pieces`, filled with zeros to whole bytes. `None` if
/// the pieces are too short.
pub(super) fn bits_of_pieces(pieces: &[Piece], offset: u64, size: u64) -> Option<ValuePlace> {
    let mut found = part_of_pieces(pieces, offset, size);
    let bits = found.iter().map(|piece| piece.size_bits).sum::<u64>();
    if bits != size {
        return None;
    }
    let rest = size.next_multiple_of(8) - size;
    found.push(Piece::new(ValuePlace::Implicit(vec![0]), 0, rest));
    Some(ValuePlace::Pieces(found))
}

fn part_of_pieces(pieces: &[Piece], offset: u64, size: u64) -> Vec<Piece> {
    let end = offset.saturating_add(size);
    let mut found = Vec::new();
    let mut at: u64 = 0;
    for piece in pieces {
        let next = at.saturating_add(piece.size_bits);
        let (from, to) = (at.max(offset), next.min(end));
        if from < to {
            found.push(Piece {
                offset_bits: piece.offset_bits.saturating_add(from - at),
                size_bits: to - from,
                ..piece.clone()
            });
        }
        at = next;
    }
    found
}
