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

/// Returns whether [`cast`] converts values of type `from` to type `to`, if they are known. `has_place` is set for those that
/// lie in memory.
#[must_use]
pub fn can_cast(from: &Type, to: &Type, has_place: bool) -> bool {
    let (own, wanted) = (from.strip().kind(), to.strip().kind());
    let is_array = own == TypeKind::Array && wanted == TypeKind::Pointer;
    let has_same_size = || from.size().is_some() && from.size() == to.size();
    wanted == TypeKind::Void
        || is_number(own) && is_number(wanted)
        || is_array
        || has_place
        || has_same_size()
}

fn is_number(kind: TypeKind) -> bool {
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
}

/// Returns a value as one of another type: numbers are converted, other values in memory are reinterpreted. As `void`, any
/// value is nothing.
///
/// # Errors The types do not allow it, or the value is unknown.
pub fn cast(value: &Value, ty: &Type, look: &Look<'_>) -> Result<Value, ValueError> {
    let (from, to) = (value.kind(), ty.strip().kind());
    if to == TypeKind::Void {
        return Ok(Value::constant(ty.clone(), Vec::new()));
    }
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

#[cfg(test)]
mod tests {
    use super::can_cast;
    use debuginfo::types::{Type, builtin};

    fn ty(name: &str) -> Type {
        builtin(name).expect("a type of C")
    }

    #[test]
    fn the_types_tell_what_can_be_converted() {
        let (int, double, void) = (ty("int"), ty("double"), ty("void"));
        let texts = ty("char").array(4);
        for (from, to, has_place, expected) in [
            (&int, &double, false, true),
            (&int, &void, false, true),
            (&texts, &void, false, true),
            (&void, &void, false, true),
            (&void, &int, false, false),
            (&int, &texts, false, true),
            (&double, &texts, false, false),
            (&double, &texts, true, true),
            (&texts, &ty("char").pointer(), false, true),
        ] {
            assert_eq!(can_cast(from, to, has_place), expected, "{from:?} {to:?}");
        }
    }
}
