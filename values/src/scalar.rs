//! The text of a value without parts: numbers, characters, enumerators, addresses of code.

use crate::render::Format;
use crate::{fixed, floats, member_pointer, strings};
use debuginfo::types::{Enumerator, FloatFormat, Language, Type, TypeKind};
use debuginfo::value::{Look, Value, ValueError, number};

/// A floating-point number as Rust's Debug writes it.
fn rust_float(format: FloatFormat, bytes: &[u8]) -> Option<String> {
    match (format, bytes) {
        (FloatFormat::Single, _) => {
            let bytes = bytes.try_into().ok()?;
            Some(format!("{:?}", f32::from_le_bytes(bytes)))
        }
        (FloatFormat::Double, _) => {
            let bytes = bytes.try_into().ok()?;
            Some(format!("{:?}", f64::from_le_bytes(bytes)))
        }
        _ => floats::text(format, bytes),
    }
}

fn unsupported() -> String {
    "<unknown: this format of numbers is not supported>".to_owned()
}

/// The bits of a number as a floating-point number of `size` bytes.
fn as_float(size: Option<u64>, bits: u128) -> Option<String> {
    let format = match size? {
        4 => FloatFormat::Single,
        8 => FloatFormat::Double,
        16 => FloatFormat::Extended,
        _ => return None,
    };
    floats::text(format, &bits.to_le_bytes())
}

/// Numbers, characters and the like.
pub(super) fn scalar(
    value: &Value,
    ty: &Type,
    format: Format,
    look: &Look<'_>,
) -> Result<String, ValueError> {
    let unformatted = matches!(format, Format::Natural | Format::Decimal | Format::Float);
    match ty.kind() {
        _ if ty.plain_name() == Some("()") => return Ok("()".to_owned()),
        TypeKind::Float if unformatted => {
            let bytes = value.known_bytes()?;
            let text = ty.float_format().and_then(|format| match ty.language() {
                Language::Rust => rust_float(format, bytes),
                _ => floats::text(format, bytes),
            });
            return Ok(text.unwrap_or_else(unsupported));
        }
        TypeKind::Complex if unformatted => {
            let bytes = value.known_bytes()?;
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            let text = |half| {
                let text = ty
                    .float_format()
                    .and_then(|format| floats::text(format, half));
                text.unwrap_or_else(unsupported)
            };
            return Ok(format!("{} + {}i", text(real), text(imaginary)));
        }
        TypeKind::Fixed { .. } if unformatted => return fixed::text(value),
        TypeKind::Void | TypeKind::Function => return Ok(address_text(value, look)),
        TypeKind::Unspecified if value.known_bytes()?.is_empty() => {
            return Ok("<unknown: a type without a description>".to_owned());
        }
        _ => {}
    }
    let (raw, bits) = number::raw(value)?;
    let signed = number::signed(raw, bits);
    let is_signed = number::signedness(ty).unwrap_or(false);
    let decimal = match is_signed {
        true => signed.to_string(),
        false => raw.to_string(),
    };
    // A character in a bit field has fewer bits.
    let code = if is_signed { signed as u128 } else { raw };
    Ok(match format {
        Format::Hex => format!("{raw:#x}"),
        Format::Octal if raw == 0 => "0".to_owned(),
        Format::Octal => format!("0{raw:o}"),
        Format::Binary => format!("{raw:#b}"),
        Format::Decimal => signed.to_string(),
        Format::Unsigned => raw.to_string(),
        Format::Address => match symbol(look, raw as u64) {
            Some(symbol) => format!("{raw:#x} <{symbol}>"),
            None => format!("{raw:#x}"),
        },
        Format::Char => format!("{decimal} {}", character(code, 1)),
        Format::Float => as_float(ty.size(), code).unwrap_or(decimal),
        Format::Natural => match ty.kind() {
            TypeKind::Bool => match raw {
                0 => "false".to_owned(),
                1 => "true".to_owned(),
                other => other.to_string(),
            },
            TypeKind::Char { .. } => {
                let size = ty.size().unwrap_or(1);
                let prefix = match (ty.plain_name(), size) {
                    (Some("wchar_t"), _) => "L",
                    (_, 2) => "u",
                    (_, 4) => "U",
                    _ => "",
                };
                let character = character(code, size);
                match ty.language() {
                    Language::Rust => character,
                    _ => format!("{decimal} {prefix}{character}"),
                }
            }
            TypeKind::Enum => enumerator(ty, raw, bits, &decimal),
            TypeKind::MemberPointer => member_pointer::text(ty, raw, look),
            TypeKind::Unspecified => format!("{raw:#x}"),
            _ => decimal,
        },
    })
}

fn address_text(value: &Value, look: &Look<'_>) -> String {
    match value.address() {
        Some(address) if value.kind() == TypeKind::Function => match symbol(look, address) {
            Some(symbol) => format!("{{{}}} {address:#x} <{symbol}>", value.ty.name()),
            None => format!("{{{}}} {address:#x}", value.ty.name()),
        },
        _ => "void".to_owned(),
    }
}

/// A character in quotes.
fn character(raw: u128, size: u64) -> String {
    match size {
        1 => strings::quoted(&[raw as u8], '\''),
        _ => {
            let c = u32::try_from(raw & 0xffff_ffff)
                .ok()
                .and_then(char::from_u32);
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            strings::quoted(c.to_string().as_bytes(), '\'')
        }
    }
}

/// The enumerator with this value, or the flags that make it up, or the number.
fn enumerator(ty: &Type, raw: u128, bits: u32, decimal: &str) -> String {
    let mask = u128::MAX >> (128 - bits.clamp(1, 128));
    // A bit field may be too narrow for some of them.
    let fits = |e: &&Enumerator| {
        let low = e.value as u128 & mask;
        low as i128 == e.value || number::signed(low, bits) == e.value
    };
    let all = ty.enumerators();
    let all: Vec<_> = all.iter().filter(fits).collect();
    let own = ty.own_name().unwrap_or_default();
    let name = |name: &str| match (ty.language(), ty.is_scoped_enum()) {
        (Language::Cpp, true) => format!("{own}::{name}"),
        // The names are next to the enumeration.
        (Language::Cpp, false) => match own.rsplit_once("::") {
            Some((scope, _)) => format!("{scope}::{name}"),
            None => name.to_owned(),
        },
        _ => name.to_owned(),
    };
    if let Some(found) = all.iter().find(|e| e.value as u128 & mask == raw) {
        return name(&found.name);
    }
    // Flags are one bit each; with others, a sum of them would only look like one.
    let mut seen = 0;
    let is_flags = all.iter().all(|e| {
        let value = e.value as u128 & mask;
        let disjoint = seen & value == 0;
        seen |= value;
        disjoint && value.count_ones() <= 1
    });
    let set: Vec<_> = all
        .iter()
        .filter(|e| e.value != 0 && raw & (e.value as u128 & mask) == e.value as u128 & mask)
        .collect();
    if !is_flags || set.is_empty() {
        return decimal.to_owned();
    }
    let rest = set.iter().fold(raw, |rest, e| rest & !(e.value as u128));
    let mut names: Vec<String> = set.iter().map(|e| name(&e.name)).collect();
    if rest != 0 {
        names.push(format!("unknown: {rest:#x}"));
    }
    format!("({})", names.join(" | "))
}

/// The symbol that an address of code belongs to.
pub(super) fn symbol(look: &Look<'_>, address: u64) -> Option<String> {
    let (name, start) = look.space.symbol_at(address)?;
    Some(match address.wrapping_sub(start) {
        0 => name,
        offset => format!("{name}+{offset}"),
    })
}
