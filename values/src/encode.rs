//! Text and numbers as the bytes of a type, for writing them.

use crate::floats;
use debuginfo::types::{FloatFormat, Type, TypeKind};
use debuginfo::value::{Value, ValueError, number};

/// Makes the bytes of a value of type `ty` from text: numbers in decimal, hexadecimal (`0x`), octal (`0o`) or binary
/// (`0b`), characters in quotes, `true` and `false`, floating-point numbers, names of enumerators (also several, joined
/// by `|`), addresses.
///
/// # Errors The text is not a value of the type, or the value does not fit it.
pub fn encode(ty: &Type, text: &str) -> Result<Vec<u8>, ValueError> {
    let text = text.trim();
    let stripped = ty.strip();
    let size = size_of(ty, &stripped)?;
    let not_a = |expected: &str| ValueError::NotA {
        text: text.to_owned(),
        ty: ty.name(),
        expected: expected.to_owned(),
    };
    match stripped.kind() {
        TypeKind::Float => {
            let number: f64 = match integer(text) {
                Some((negative, magnitude)) => {
                    let magnitude = magnitude as f64;
                    if negative { -magnitude } else { magnitude }
                }
                None => text.parse().map_err(|_| not_a("a number such as 1.5"))?,
            };
            let format = stripped.float_format().ok_or_else(|| wrong(ty))?;
            let bytes = float(number, format, size).ok_or_else(|| not_written(ty))?;
            let overflows =
                number.is_finite() && floats::parse(format, &bytes).is_some_and(f64::is_infinite);
            let largest = match format {
                FloatFormat::Half => "65504",
                _ => "3.4e+38",
            };
            match overflows {
                true => Err(range(ty, text, format!("numbers up to {largest}"))),
                false => Ok(bytes),
            }
        }
        TypeKind::Bool => match text {
            "true" | "1" => Ok(padded(&[1], size)),
            "false" | "0" => Ok(padded(&[0], size)),
            _ => Err(not_a("true or false")),
        },
        TypeKind::Enum => enumeration(ty, &stripped, text, size),
        TypeKind::Char { .. } | TypeKind::Integer { .. } if text.starts_with('\'') => {
            let c = character(text).ok_or_else(|| not_a("a character such as 'a'"))?;
            fit(ty, &stripped, text, false, u128::from(c), size)
        }
        TypeKind::Integer { .. } | TypeKind::Char { .. } => {
            let parsed = integer(text).ok_or_else(|| not_a("a number such as 42 or 0x2a"))?;
            fit(ty, &stripped, text, parsed.0, parsed.1, size)
        }
        TypeKind::Pointer => match text {
            "nullptr" | "NULL" | "null" => Ok(vec![0; size]),
            _ => {
                let parsed = integer(text).ok_or_else(|| not_a("an address such as 0x1000"))?;
                fit(ty, &stripped, text, parsed.0, parsed.1, size)
            }
        },
        _ => Err(wrong(ty)),
    }
}

/// Makes the bytes of a value of type `ty` from another value: of the same type unchanged, numbers converted.
///
/// # Errors The types do not fit, a number does not fit the type, or the value is unknown.
pub fn encode_value(ty: &Type, value: &Value) -> Result<Vec<u8>, ValueError> {
    let stripped = ty.strip();
    let size = size_of(ty, &stripped)?;
    let (to, from) = (stripped.kind(), value.kind());
    let is_integer = |kind| {
        matches!(
            kind,
            TypeKind::Integer { .. }
                | TypeKind::Char { .. }
                | TypeKind::Bool
                | TypeKind::Enum
                | TypeKind::Pointer
        )
    };
    if to == TypeKind::Float && (from == TypeKind::Float || is_integer(from)) {
        let format = stripped.float_format().ok_or_else(|| wrong(ty))?;
        if value.ty.float_format() == Some(format) && value.ty.size() == ty.size() {
            return Ok(value.known_bytes()?.to_vec());
        }
        return float(crate::float(value)?, format, size).ok_or_else(|| not_written(ty));
    }
    if to == TypeKind::Bool && is_integer(from) {
        return Ok(padded(&[u8::from(value.as_integer()? != 0)], size));
    }
    if is_integer(to) && from == TypeKind::Float {
        let number = crate::float(value)?;
        let is_whole = number.fract() == 0.0 && number.abs() < 2f64.powi(64);
        let text = format!("{number}");
        let whole = integer(&text).filter(|_| is_whole);
        let (negative, magnitude) = whole.ok_or_else(|| ValueError::NotA {
            text: text.clone(),
            ty: ty.name(),
            expected: "a whole number".to_owned(),
        })?;
        return fit(ty, &stripped, &text, negative, magnitude, size);
    }
    if is_integer(to) && is_integer(from) {
        let number = value.as_integer()?;
        let is_unsigned = number::signedness(&value.ty) == Some(false);
        let negative = number < 0 && !is_unsigned;
        let magnitude = if negative {
            number.unsigned_abs()
        } else {
            number as u128
        };
        let text = if negative {
            number.to_string()
        } else {
            magnitude.to_string()
        };
        return fit(ty, &stripped, &text, negative, magnitude, size);
    }
    let same = value.ty.strip() == stripped || value.ty.strip().name() == stripped.name();
    let bytes = value.known_bytes()?;
    match same && bytes.len() == size && value.bits.is_none() {
        true => Ok(bytes.to_vec()),
        false => Err(wrong(ty)),
    }
}

fn size_of(ty: &Type, stripped: &Type) -> Result<usize, ValueError> {
    let size = stripped
        .size()
        .filter(|size| *size <= debuginfo::value::MAX_BYTES);
    size.and_then(|size| usize::try_from(size).ok())
        .ok_or_else(|| wrong(ty))
}

fn wrong(ty: &Type) -> ValueError {
    ValueError::WrongType {
        ty: ty.name(),
        what: "cannot be written as a whole",
        hint: Some("write its members"),
    }
}

fn range(ty: &Type, text: &str, range: String) -> ValueError {
    ValueError::Range {
        text: text.to_owned(),
        ty: ty.name(),
        range,
    }
}

fn padded(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out.resize(size, 0);
    out
}

fn not_written(ty: &Type) -> ValueError {
    ValueError::NotWritable(format!("no number is converted to {}", ty.name()).into())
}

/// The bytes of a floating-point number; `None` for formats without a conversion.
pub(super) fn float(number: f64, format: FloatFormat, size: usize) -> Option<Vec<u8>> {
    let mut bytes = floats::bytes(number, format)?;
    bytes.resize(size, 0);
    Some(bytes)
}

/// Sign and magnitude.
fn integer(text: &str) -> Option<(bool, u128)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.replace('_', "");
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        _ => (10, &lower[..]),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    Some((negative, u128::from_str_radix(digits, radix).ok()?))
}

/// The bytes of an integer, if it fits. Bit patterns in the range of the unsigned type are not accepted as signed
/// numbers.
fn fit(
    ty: &Type,
    stripped: &Type,
    text: &str,
    negative: bool,
    magnitude: u128,
    size: usize,
) -> Result<Vec<u8>, ValueError> {
    if size == 0 || size > 16 {
        return Err(wrong(ty));
    }
    let signed = number::signedness(stripped).unwrap_or(false);
    let bits = size as u32 * 8;
    check(ty, text, negative, magnitude, signed, bits)?;
    let value = if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    };
    Ok(value.to_le_bytes()[..size].to_vec())
}

/// Returns whether an integer fits this many bits.
pub(super) fn check(
    ty: &Type,
    text: &str,
    negative: bool,
    magnitude: u128,
    signed: bool,
    bits: u32,
) -> Result<(), ValueError> {
    let bits = bits.clamp(1, 128);
    let most = u128::MAX >> (128 - bits);
    let (above, below) = match signed {
        true => (most >> 1, (most >> 1) + 1),
        false => (most, 0),
    };
    let fits = magnitude <= if negative { below } else { above };
    match fits {
        true => Ok(()),
        false if below == 0 => Err(range(ty, text, format!("0 to {above}"))),
        false => Err(range(ty, text, format!("-{below} to {above}"))),
    }
}

fn enumeration(ty: &Type, stripped: &Type, text: &str, size: usize) -> Result<Vec<u8>, ValueError> {
    if let Some((negative, magnitude)) = integer(text) {
        return fit(ty, stripped, text, negative, magnitude, size);
    }
    let mut value: i128 = 0;
    for part in text.trim_matches(['(', ')']).split('|') {
        let name = part.trim();
        let name = name.rsplit_once("::").map_or(name, |(_, last)| last);
        let found = stripped.enumerators().iter().find(|e| e.name == name);
        let Some(found) = found else {
            let all: Vec<&str> = stripped
                .enumerators()
                .iter()
                .map(|e| e.name.as_str())
                .collect();
            return Err(ValueError::NotA {
                text: text.to_owned(),
                ty: ty.name(),
                expected: match all.len() {
                    1..=12 => format!("one of {}", all.join(", ")),
                    _ => "the name of an enumerator or a number".to_owned(),
                },
            });
        };
        value |= found.value;
    }
    let bytes = value.to_le_bytes();
    Ok(bytes[..size.min(bytes.len())].to_vec())
}

/// The character in quotes.
fn character(text: &str) -> Option<u32> {
    let inside = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let Some(escape) = inside.strip_prefix('\\') else {
        let mut chars = inside.chars();
        let c = chars.next()?;
        return chars.next().is_none().then_some(u32::from(c));
    };
    let simple = match escape {
        "n" => '\n',
        "t" => '\t',
        "r" => '\r',
        "a" => '\u{7}',
        "b" => '\u{8}',
        "v" => '\u{b}',
        "f" => '\u{c}',
        "e" => '\u{1b}',
        "\\" => '\\',
        "'" => '\'',
        "\"" => '"',
        _ => {
            if let Some(digits) = escape.strip_prefix('x') {
                return u32::from_str_radix(digits, 16).ok().filter(|c| *c < 256);
            }
            let octal = u32::from_str_radix(escape, 8).ok();
            return octal.filter(|c| *c < 256 && escape.len() <= 3);
        }
    };
    Some(u32::from(simple))
}
