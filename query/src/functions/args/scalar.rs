//! Single values in registers, as text.

use std::fmt::Write;

use store::control::ValueKind;

/// Returns permissions as programs write them.
pub fn octal(mode: u32) -> String {
    match mode {
        0 => "0".to_owned(),
        mode => format!("0{mode:o}"),
    }
}
/// Appends a value whose first eight bytes are `registers[0]`.
pub fn write_int(text: &mut String, kind: &ValueKind, registers: &[u64]) {
    let bits = registers[0];
    match kind {
        ValueKind::Void => {}
        ValueKind::Bool => append(text, format_args!("{}", bits as u8 != 0)),
        ValueKind::Char => write_char(text, bits as u8),
        ValueKind::Unicode { bytes } => write_unicode(text, bits, *bytes),
        ValueKind::Int { bytes: 16, signed } => match (registers.get(1), signed) {
            (Some(&high), true) => append(text, format_args!("{}", wide(bits, high) as i128)),
            (Some(&high), false) => append(text, format_args!("{}", wide(bits, high))),
            (None, _) => text.push('?'),
        },
        ValueKind::Int { bytes, signed } => write_number(text, bits, *bytes, *signed),
        ValueKind::Enum {
            bytes,
            signed,
            names,
        } => values::write_enumerators(text, narrow(bits, *bytes, *signed), names),
        ValueKind::Struct { bytes } if *bytes > 8 => {
            append(text, format_args!("{{{bits:#x}, ..}}"));
        }
        ValueKind::Struct { .. } => append(text, format_args!("{{{bits:#x}}}")),
        ValueKind::Pointer | ValueKind::Float { .. } | ValueKind::Unknown => {
            write_hex(text, bits);
        }
    }
}

/// Appends the low `bytes` of `bits` as a number.
pub fn write_number(text: &mut String, bits: u64, bytes: u8, signed: bool) {
    let shift = 64 - 8 * u32::from(bytes.clamp(1, 8));
    let mut digits = itoa::Buffer::new();
    text.push_str(match signed {
        true => digits.format((bits as i64) << shift >> shift),
        false => digits.format(bits << shift >> shift),
    });
}

/// Appends bits in hexadecimal, as `{:#x}` does.
pub fn write_hex(text: &mut String, bits: u64) {
    let len = (64 - bits.leading_zeros()).div_ceil(4).max(1);
    text.push_str("0x");
    for place in (0..len).rev() {
        let digit = (bits >> (4 * place)) as u32 & 0xf;
        text.extend(char::from_digit(digit, 16));
    }
}

/// Appends a value in the low half of an xmm register, if that was recorded.
pub fn write_sse(text: &mut String, kind: &ValueKind, bits: Option<u64>) {
    let Some(bits) = bits else {
        text.push('?');
        return;
    };
    match kind {
        ValueKind::Float { bytes: 4 } => {
            append(text, format_args!("{:?}", f32::from_bits(bits as u32)));
        }
        ValueKind::Float { bytes: 8 } => append(text, format_args!("{:?}", f64::from_bits(bits))),
        ValueKind::Float { .. } => text.push('?'),
        ValueKind::Struct { bytes } if *bytes > 8 => {
            append(text, format_args!("{{{bits:#x}, ..}}"));
        }
        ValueKind::Struct { .. } => append(text, format_args!("{{{bits:#x}}}")),
        _ => append(text, format_args!("{bits:#x}")),
    }
}

fn write_char(text: &mut String, byte: u8) {
    append(text, format_args!("'{}'", byte.escape_ascii()));
}

/// Appends a character; what is none, or only a part of one, as a number.
fn write_unicode(text: &mut String, bits: u64, bytes: u8) {
    let code = narrow(bits, bytes, false);
    match u32::try_from(code).ok().and_then(char::from_u32) {
        Some(character) => append(text, format_args!("'{}'", character.escape_debug())),
        None => append(text, format_args!("{code}")),
    }
}

/// Returns the low `bytes` of `bits` as a number.
pub fn narrow(bits: u64, bytes: u8, signed: bool) -> i128 {
    let shift = 64 - 8 * u32::from(bytes.clamp(1, 8));
    match signed {
        true => i128::from((bits as i64) << shift >> shift),
        false => i128::from(bits << shift >> shift),
    }
}

fn wide(low: u64, high: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

pub fn append(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what)
        .expect("a string takes whatever is written to it");
}
