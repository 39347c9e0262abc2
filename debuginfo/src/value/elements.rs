//! Elements of arrays, by the index of the language and by position.

use super::inside::{bit_field, decided, part, pointer, wrong};
use super::{Look, Value, ValueError, ada};
use crate::machine::Unknown;
use crate::types::{BitRange, Language, Type, TypeKind};

pub(super) fn index(value: &Value, index: i64, look: &Look<'_>) -> Result<Value, ValueError> {
    let value = value.unreferenced(look)?;
    let ty = value.ty.strip();
    match ty.kind() {
        TypeKind::Array => {
            let position = ty.position_of(index);
            let position = position.ok_or_else(|| missing(&ty, index))?;
            if has_bounds(&ty) && !is_inside(&ty, position) {
                return Err(missing(&ty, index));
            }
            at(&value, &ty, position, look)
        }
        TypeKind::Pointer => {
            let target = ty.target().ok_or_else(|| wrong(&ty, "points to nothing"))?;
            let size = match target.strip().kind() {
                TypeKind::Void => 1,
                _ => target
                    .size()
                    .ok_or_else(|| wrong(&target, "has no size that is known"))?,
            };
            let base = pointer(&value)?;
            let offset = index.wrapping_mul(size as i64);
            let address = base.wrapping_add_signed(offset);
            let found = Value::at(target, address, look.machine).reached_by(value.certainty);
            Ok(decided(found, look, None))
        }
        _ => match ada::array(&value, look) {
            Some(array) => self::index(&array?, index, look),
            None => Err(wrong(&value.ty, "has no elements")),
        },
    }
}

/// Returns the element at a position, counted from 0.
pub(super) fn nth(value: &Value, position: u64, look: &Look<'_>) -> Result<Value, ValueError> {
    let ty = value.ty.strip();
    // Avoids copying the array for each of its elements.
    if ty.kind() != TypeKind::Array {
        let referred = value.unreferenced(look)?;
        return match referred.ty.strip().kind() {
            TypeKind::Array => nth(&referred, position, look),
            _ => Err(wrong(&referred.ty, "has no elements")),
        };
    }
    let position = i64::try_from(position);
    let position = position.map_err(|_| missing(&ty, i64::MAX))?;
    at(value, &ty, position, look)
}

/// Returns whether arrays of the language end at their declared bounds.
fn has_bounds(ty: &Type) -> bool {
    matches!(ty.language(), Language::Fortran | Language::Ada)
}

fn is_inside(ty: &Type, position: i64) -> bool {
    let count = ty.count();
    u64::try_from(position).is_ok_and(|position| count.is_none_or(|count| position < count))
}

fn missing(ty: &Type, index: i64) -> ValueError {
    if ty.indexes().is_some() {
        let why = format!("no element has the number {index} as its index");
        return ValueError::Unknown(Unknown::because(why));
    }
    let lower = ty.lower_bound();
    let last = ty
        .count()
        .map(|count| i128::from(lower) + i128::from(count) - 1);
    let unknown = Unknown::because(format!("there is no element {index}"));
    ValueError::Unknown(match last {
        Some(last) if has_bounds(ty) => {
            unknown.with_hint(format!("its indexes are {lower} to {last}"))
        }
        _ => unknown,
    })
}

/// Returns the element at `position` strides from the first one.
fn at(value: &Value, ty: &Type, position: i64, look: &Look<'_>) -> Result<Value, ValueError> {
    let element = ty.element().ok_or_else(|| wrong(ty, "has no elements"))?;
    let unmeasured = || match &value.bytes {
        Err(why) => ValueError::Unknown(why.clone()),
        Ok(_) => wrong(&element, "has no size that is known"),
    };
    let stride = ty.stride().ok_or_else(unmeasured)?;
    let distance = position.checked_mul(stride);
    let distance = distance.ok_or_else(|| missing(ty, position))?;
    if ty.packed_bits().is_some() {
        return packed(value, ty, &element, distance, look);
    }
    let bytes = distance.div_euclid(8);
    let found = match (u64::try_from(bytes), value.address()) {
        (Err(_), Some(address)) => {
            let address = address.wrapping_add_signed(bytes);
            Value::at(element, address, look.machine).reached_by(value.reached)
        }
        (Err(_), None) => return Err(missing(ty, position)),
        (Ok(_), None) if !is_inside(ty, position) => return Err(missing(ty, position)),
        (Ok(bytes), _) => part(value, &element, bytes, look),
    };
    Ok(decided(found, look, None))
}

/// Returns an element that has fewer bits than its type, or that begins inside a byte.
fn packed(
    value: &Value,
    ty: &Type,
    element: &Type,
    distance: i64,
    look: &Look<'_>,
) -> Result<Value, ValueError> {
    let kind = element.strip().kind();
    let outside = || ValueError::Unknown(Unknown::because("there is no such element"));
    let size = match kind {
        TypeKind::Array => element
            .stride()
            .and_then(|stride| element.count()?.checked_mul(u64::try_from(stride).ok()?)),
        _ => ty.packed_bits(),
    };
    let start = value.bits.map_or(0, |bits| bits.offset);
    let offset = u64::try_from(distance)
        .ok()
        .and_then(|distance| distance.checked_add(start));
    let bits = BitRange {
        offset: offset.ok_or_else(outside)?,
        size: size.ok_or_else(outside)?,
    };
    let has_parts = matches!(
        kind,
        TypeKind::Struct | TypeKind::Class | TypeKind::Union | TypeKind::Float
    );
    if has_parts && bits.offset.is_multiple_of(8) {
        return Ok(part(value, element, bits.offset / 8, look));
    }
    if has_parts {
        let why = Unknown::because("it begins inside a byte");
        return Ok(Value::unknown(element.clone(), why));
    }
    Ok(bit_field(value, element, bits, look))
}
