//! What must be written, and where, to change a value to another one.

use crate::encode;
use debuginfo::location::{Piece, ValuePlace};
use debuginfo::value::{Value, ValueError, number, place};
use debuginfo::{Diagnostic, Machine, Register};

/// A place that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteTarget {
    /// Memory at this address.
    Memory(u64),
    /// The low bytes of a register; the others keep their value.
    Register(Register),
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Where to.
    pub target: WriteTarget,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Lists the writes that give `value` the bytes `new`, which are of its type (see [`encode`](super::encode())). Bits around
/// a bit field, or around a piece that is not whole bytes, are read and written back.
///
/// # Errors
/// The value has no place that could be written, or a part of it has none; a number does not fit a bit field; what is
/// to be written back cannot be read.
pub fn writes(value: &Value, new: &[u8], machine: &dyn Machine) -> Result<Vec<Write>, ValueError> {
    let Some(bits) = value.bits else {
        return place_writes(&value.place, new, machine);
    };
    let mut wide = [0; 16];
    let length = new.len().min(wide.len());
    wide[..length].copy_from_slice(&new[..length]);
    let signed = number::signedness(&value.ty).unwrap_or(false);
    let raw = u128::from_le_bytes(wide);
    let asked = number::signed(raw, length as u32 * 8);
    let negative = signed && asked < 0;
    let magnitude = if negative { asked.unsigned_abs() } else { raw };
    let text = if negative {
        asked.to_string()
    } else {
        magnitude.to_string()
    };
    let size = u32::try_from(bits.size).unwrap_or(u32::MAX);
    encode::check(&value.ty, &text, negative, magnitude, signed, size)?;
    let mut bytes = value.known_bytes()?.to_vec();
    // The current neighbours, not those at the time the value was read.
    if let Ok((now, _)) = place::read(&value.place, bytes.len() as u64, machine) {
        bytes = now;
    }
    place::copy_bits(&wide, 0, &mut bytes, bits.offset, bits.size);
    place_writes(&value.place, &bytes, machine)
}

fn not_writable(why: impl Into<Diagnostic>) -> ValueError {
    ValueError::NotWritable(why.into())
}

fn advised(why: &str, hint: &str) -> ValueError {
    not_writable(Diagnostic::new(why).with_hint(hint))
}

fn place_writes(
    place: &ValuePlace,
    bytes: &[u8],
    machine: &dyn Machine,
) -> Result<Vec<Write>, ValueError> {
    let one = |target| {
        Ok(vec![Write {
            target,
            bytes: bytes.to_vec(),
        }])
    };
    match place {
        ValuePlace::Memory(address) => one(WriteTarget::Memory(*address)),
        ValuePlace::Register(register) => {
            let is_vector = (Register::XMM0.0..Register::XMM0.0 + 16).contains(&register.0);
            match bytes.len() {
                0..=8 => one(WriteTarget::Register(*register)),
                9..=16 if is_vector => one(WriteTarget::Register(*register)),
                9..=16 if register.0 < 15 => Ok(vec![
                    Write {
                        target: WriteTarget::Register(*register),
                        bytes: bytes[..8].to_vec(),
                    },
                    Write {
                        target: WriteTarget::Register(Register(register.0 + 1)),
                        bytes: bytes[8..].to_vec(),
                    },
                ]),
                _ => Err(not_writable("it is larger than its register")),
            }
        }
        ValuePlace::Pieces(pieces) => piece_writes(pieces, bytes, machine),
        ValuePlace::Implicit(_) => Err(advised(
            "it has no place of its own: the compiler made it a constant here, or it is a bit of a container",
            "write what holds it",
        )),
        ValuePlace::ImplicitPointer { .. } => Err(advised(
            "the compiler removed the pointer",
            "write what it points to",
        )),
        ValuePlace::OptimizedOut => Err(advised(
            "the compiler removed it here",
            "stop where it is in memory or a register",
        )),
        ValuePlace::Unknown(why) => Err(ValueError::NotWritable(why.clone().into())),
    }
}

fn piece_writes(
    pieces: &[Piece],
    bytes: &[u8],
    machine: &dyn Machine,
) -> Result<Vec<Write>, ValueError> {
    let end = bytes.len() as u64 * 8;
    let mut at: u64 = 0;
    let mut found = Vec::new();
    for piece in pieces {
        if at >= end {
            break;
        }
        let bits = piece.size_bits.min(end - at);
        let last = piece.offset_bits.saturating_add(bits).div_ceil(8);
        if last > debuginfo::value::MAX_BYTES {
            return Err(not_writable("a piece of it is too far from its start"));
        }
        // The whole of the place up to the piece's end is written back, changed in the piece.
        let mut whole = match piece.offset_bits == 0 && bits % 8 == 0 {
            true => vec![0; (bits / 8) as usize],
            false => place::read(&piece.place, last, machine)?.0,
        };
        place::copy_bits(bytes, at, &mut whole, piece.offset_bits, bits);
        found.extend(place_writes(&piece.place, &whole, machine)?);
        at += bits;
    }
    match at < end {
        true => Err(not_writable("the compiler removed a part of it")),
        false => Ok(found),
    }
}
