//! Values as numbers with a fraction, and as values of other types.

use debuginfo::Unknown;
use debuginfo::types::{FloatFormat, Type, TypeKind};
use debuginfo::value::inside::wrong;
use debuginfo::value::{Look, Value, ValueError};

use crate::{Wide, encode, fixed, floats};

/// Returns a floating-point number, or an integer as one. Long doubles are rounded.
///
/// # Errors It is of another type, or unknown.
pub fn float(value: &Value) -> Result<f64, ValueError> {
    match value.kind() {
        TypeKind::Float => {}
        TypeKind::Fixed { .. } => return fixed::float(value),
        _ => return value.as_integer().map(|number| number as f64),
    }
    let bytes = value.known_bytes()?;
    let format = value.ty.float_format();
    let number = format.and_then(|format| floats::parse(format, bytes));
    number.ok_or_else(|| ValueError::WrongType {
        ty: value.ty.name(),
        what: "is not a floating-point number of a known format",
        hint: None,
    })
}

/// Returns a value as one of another type: numbers are converted, other values in memory are reinterpreted.
///
/// # Errors The types do not allow it, or the value is unknown.
pub fn cast(value: &Value, ty: &Type, look: &Look<'_>) -> Result<Value, ValueError> {
    let (from, to) = (value.kind(), ty.strip().kind());
    let is_number = |kind| {
        matches!(
            kind,
            TypeKind::Integer { .. }
                | TypeKind::Bool
                | TypeKind::Char { .. }
                | TypeKind::Enum
                | TypeKind::Pointer
                | TypeKind::Float
                | TypeKind::Fixed { .. }
        )
    };
    if from == TypeKind::Array && to == TypeKind::Pointer {
        let address = value.address();
        let why = || Unknown::because("the array is not in memory");
        return Ok(Value::constant(
            ty.clone(),
            address.ok_or_else(why)?.to_le_bytes().to_vec(),
        ));
    }
    if matches!(from, TypeKind::Reference | TypeKind::RvalueReference) && is_number(to) {
        return cast(&value.unreferenced(look)?, ty, look);
    }
    if !is_number(from) || !is_number(to) {
        // Another interpretation of the same bytes.
        let same = ty.size().is_some() && ty.size() == value.ty.size();
        return match value.address() {
            Some(address) => {
                Ok(Value::at(ty.clone(), address, look.machine).reached_by(value.reached))
            }
            None if same && value.bits.is_none() => Ok(Value {
                ty: ty.clone(),
                ..value.clone()
            }),
            None => Err(wrong(&value.ty, "cannot be converted to that type")),
        };
    }
    let size = ty
        .size()
        .and_then(|s| usize::try_from(s).ok())
        .filter(|s| *s <= 16);
    let size = size.ok_or_else(|| wrong(ty, "has no size that is known"))?;
    let has_fraction = |kind| matches!(kind, TypeKind::Float | TypeKind::Fixed { .. });
    let bytes = match (from, to) {
        (_, TypeKind::Fixed { .. }) => {
            return Err(ValueError::WrongType {
                ty: ty.name(),
                what: "cannot be converted to",
                hint: Some("write the number itself"),
            });
        }
        (TypeKind::Float, TypeKind::Float) if ty.float_format() == value.ty.float_format() => {
            value.known_bytes()?.to_vec()
        }
        (TypeKind::Float, TypeKind::Integer { signed }) if Wide::of(value).is_some() => {
            let number = Wide::of(value).map(|number| number.to_integer(size as u8 * 8, signed));
            number.unwrap_or_default().to_le_bytes()[..size].to_vec()
        }
        (_, TypeKind::Float) => {
            let format = ty.float_format().unwrap_or(FloatFormat::Decimal);
            encode::float(float(value)?, format, size)
                .ok_or_else(|| wrong(ty, "is a format that nothing is converted to"))?
        }
        (from, TypeKind::Bool) if has_fraction(from) => {
            vec![u8::from(float(value)? != 0.0); 1]
        }
        (from, _) if has_fraction(from) => (float(value)? as i128).to_le_bytes()[..size].to_vec(),
        (_, TypeKind::Bool) => {
            let mut bytes = vec![0; size];
            bytes[0] = u8::from(value.as_integer()? != 0);
            bytes
        }
        _ => value.as_integer()?.to_le_bytes()[..size].to_vec(),
    };
    Ok(Value {
        certainty: value.certainty,
        ..Value::constant(ty.clone(), bytes)
    })
}
