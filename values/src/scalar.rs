//! The text of a value without parts: numbers, characters, enumerators, addresses of code.

use crate::render::Format;
use crate::{Wide, cast, fixed, floats, member_pointer, strings};
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
        TypeKind::Float if matches!(format, Format::Natural | Format::Float) => {
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
    let is_signed = number::signedness(ty).unwrap_or(false);
    let signed = number::signed(raw, bits);
    let decimal = match is_signed {
        true => signed.to_string(),
        false => raw.to_string(),
    };
    // A character in a bit field has fewer bits.
    let code = if is_signed { signed as u128 } else { raw };
    let (whole, width) = whole(value, ty, (code, bits));
    let digits = width.div_ceil(4) as usize;
    Ok(match format {
        Format::Hex => format!("{whole:#x}"),
        Format::Zeros => format!("0x{whole:0digits$x}"),
        Format::Octal if whole == 0 => "0".to_owned(),
        Format::Octal => format!("0{whole:o}"),
        Format::Binary => format!("{whole:#b}"),
        Format::Decimal => number::signed(whole, width).to_string(),
        Format::Unsigned => whole.to_string(),
        Format::Address if bits > 64 && !is_float(ty) => format!("{whole:#x}"),
        Format::Address => address(look, integer(value, code)? as u64),
        Format::Char => byte(integer(value, code)? as u8, is_signed || is_float(ty)),
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

/// The bits of a number as wide as its type, and their count. Those of a bit field are extended by its sign.
fn whole(value: &Value, ty: &Type, (code, bits): (u128, u32)) -> (u128, u32) {
    let size = ty.size().and_then(|size| u32::try_from(size).ok());
    let width = match (value.bits, size) {
        (Some(_), Some(size @ 1..=16)) => bits.max(size * 8),
        _ => bits,
    };
    (code & (u128::MAX >> (128 - width.clamp(1, 128))), width)
}

fn is_float(ty: &Type) -> bool {
    ty.kind() == TypeKind::Float
}

/// A number as an integer of 64 bits, a fraction cut off: what is shown as an address or a character. `code` are the
/// bits of an integer.
fn integer(value: &Value, code: u128) -> Result<u128, ValueError> {
    if !is_float(&value.ty.strip()) {
        return Ok(code);
    }
    match Wide::of(value) {
        Some(number) => Ok(number.to_integer(64, true)),
        None => Ok(cast::float(value)? as i64 as u128),
    }
}

/// A byte as a number and a character.
fn byte(byte: u8, is_signed: bool) -> String {
    let shown = character(u128::from(byte), 1);
    match is_signed {
        true => format!("{} {shown}", byte as i8),
        false => format!("{byte} {shown}"),
    }
}

/// An address with the symbol of the function or variable there.
fn address(look: &Look<'_>, address: u64) -> String {
    match symbol(look, address).or_else(|| variable(look, address)) {
        Some(symbol) => format!("{address:#x} <{symbol}>"),
        None => format!("{address:#x}"),
    }
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
    Some(inside(name, address.wrapping_sub(start)))
}

/// The variable's symbol that an address of data belongs to.
fn variable(look: &Look<'_>, address: u64) -> Option<String> {
    let mapped = look.space.at(address)?;
    let (name, start) = mapped.module.variable_symbol_at(mapped.svma(address))?;
    Some(inside(name, address.wrapping_sub(mapped.address(start))))
}

fn inside(name: String, offset: u64) -> String {
    match offset {
        0 => name,
        offset => format!("{name}+{offset}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use debuginfo::types::{BitRange, builtin};
    use debuginfo::{AddressSpace, Certainty, Machine, Register, Unknown};

    /// A machine that is not asked.
    struct Nothing;

    impl Machine for Nothing {
        fn memory(&self, _: u64, _: &mut [u8]) -> Result<Certainty, Unknown> {
            Err(Unknown::because("there is no memory"))
        }

        fn register(&self, _: Register) -> Result<(u64, Certainty), Unknown> {
            Err(Unknown::because("there is no thread"))
        }

        fn vector(&self, _: Register) -> Result<([u8; 16], Certainty), Unknown> {
            Err(Unknown::because("there is no thread"))
        }
    }

    fn constant(ty: &str, bytes: &[u8]) -> Value {
        let ty = builtin(ty).expect("it is a base type");
        Value::constant(ty, bytes.to_vec())
    }

    fn said(value: &Value, formats: &[(Format, &str)]) {
        let space = AddressSpace::default();
        let look = Look {
            space: &space,
            machine: &Nothing,
        };
        for (format, expected) in formats {
            let text = scalar(value, &value.ty, *format, &look).expect("it is a number");
            assert_eq!(text, *expected, "{format:?}");
        }
    }

    #[test]
    fn formats_show_the_bits_of_numbers() {
        let number = constant("int", &(-300_i32).to_le_bytes());
        said(
            &number,
            &[
                (Format::Hex, "0xfffffed4"),
                (Format::Zeros, "0xfffffed4"),
                (Format::Unsigned, "4294966996"),
                (Format::Address, "0xfffffffffffffed4"),
                (Format::Char, "-44 '\\324'"),
            ],
        );
        said(
            &constant("int", &10_i32.to_le_bytes()),
            &[(Format::Zeros, "0x0000000a"), (Format::Hex, "0xa")],
        );
    }

    #[test]
    fn floating_point_numbers_are_bits_except_as_characters_and_addresses() {
        let number = constant("double", &(-2.75_f64).to_le_bytes());
        said(
            &number,
            &[
                (Format::Natural, "-2.75"),
                (Format::Hex, "0xc006000000000000"),
                (Format::Decimal, "-4609997168567123968"),
                (Format::Address, "0xfffffffffffffffe"),
                (Format::Char, "-2 '\\376'"),
                (Format::Float, "-2.75"),
            ],
        );
    }

    #[test]
    fn bit_fields_are_as_wide_as_their_types() {
        let field = |ty: &str, bits: u64| Value {
            bits: Some(BitRange {
                offset: 0,
                size: bits,
            }),
            ..constant(ty, &[0b1_1101, 0, 0, 0])
        };
        said(
            &field("int", 5),
            &[
                (Format::Natural, "-3"),
                (Format::Hex, "0xfffffffd"),
                (Format::Zeros, "0xfffffffd"),
            ],
        );
        said(
            &field("unsigned int", 3),
            &[
                (Format::Natural, "5"),
                (Format::Decimal, "5"),
                (Format::Zeros, "0x00000005"),
            ],
        );
    }
}
