//! Converts the bytes of a value to numbers.

use super::{Value, ValueError};
use crate::types::{Type, TypeKind};

/// Returns the bits of a value as an unsigned number, and their count.
pub fn raw(value: &Value) -> Result<(u128, u32), ValueError> {
    let bytes = value.known_bytes()?;
    let wrong = |what| ValueError::WrongType {
        ty: value.ty.name(),
        what,
        hint: None,
    };
    let mut wide = [0; 16];
    if let Some(bits) = value.bits {
        let size = u32::try_from(bits.size).ok().filter(|size| *size <= 128);
        let size = size.ok_or_else(|| wrong("has too many bits"))?;
        super::place::copy_bits(bytes, bits.offset, &mut wide, 0, bits.size);
        return Ok((u128::from_le_bytes(wide), size));
    }
    if bytes.is_empty() || bytes.len() > wide.len() {
        return Err(wrong("is not a number"));
    }
    wide[..bytes.len()].copy_from_slice(bytes);
    Ok((u128::from_le_bytes(wide), bytes.len() as u32 * 8))
}

/// Returns the low `bits` of `raw` as a signed number.
pub fn signed(raw: u128, bits: u32) -> i128 {
    let unused = 128 - bits.clamp(1, 128);
    (raw << unused) as i128 >> unused
}

/// Returns whether integers of this type are signed, or `None` if they are not integers.
pub fn signedness(ty: &Type) -> Option<bool> {
    let ty = ty.strip();
    match ty.kind() {
        TypeKind::Integer { signed } => Some(signed),
        TypeKind::Char { signed } => Some(signed),
        TypeKind::Enum => {
            let negative = || ty.enumerators().iter().any(|e| e.value < 0);
            let target = ty.target().map(|t| t.strip().kind());
            match target {
                Some(TypeKind::Integer { signed } | TypeKind::Char { signed }) => Some(signed),
                Some(TypeKind::Bool) => Some(false),
                _ => Some(negative()),
            }
        }
        TypeKind::Bool
        | TypeKind::Pointer
        | TypeKind::Reference
        | TypeKind::RvalueReference
        | TypeKind::MemberPointer => Some(false),
        _ => None,
    }
}

pub(crate) fn integer(value: &Value) -> Result<i128, ValueError> {
    let signedness = signedness(&value.ty).ok_or_else(|| ValueError::WrongType {
        ty: value.ty.name(),
        what: "is not an integer",
        hint: None,
    })?;
    let (raw, bits) = raw(value)?;
    Ok(match signedness {
        true => signed(raw, bits),
        // Only unsigned 128-bit numbers can exceed the range. They keep their bits.
        false => raw as i128,
    })
}

pub(crate) fn address(value: &Value) -> Result<u64, ValueError> {
    match value.kind() {
        TypeKind::Pointer | TypeKind::Reference | TypeKind::RvalueReference => {
            let (raw, bits) = raw(value)?;
            // Fat pointers are structures. A pointer of another size is damage.
            u64::try_from(raw)
                .ok()
                .filter(|_| bits == 64)
                .ok_or_else(|| ValueError::WrongType {
                    ty: value.ty.name(),
                    what: "is not a pointer of 8 bytes",
                    hint: None,
                })
        }
        _ => Err(ValueError::WrongType {
            ty: value.ty.name(),
            what: "is not a pointer",
            hint: None,
        }),
    }
}
