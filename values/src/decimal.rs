//! IEEE's decimal floating-point numbers as x86-64 has them: sign, exponent and a binary coefficient.

/// A number, an infinity or a NaN.
enum Decimal {
    Finite {
        negative: bool,
        coefficient: u128,
        exponent: i32,
    },
    Infinite {
        negative: bool,
    },
    NaN,
}

/// The layout of one size of the format.
struct Layout {
    bits: u32,
    exponent_bits: u32,
    bias: i32,
    digits: u32,
}

const LAYOUTS: [Layout; 3] = [
    Layout {
        bits: 32,
        exponent_bits: 8,
        bias: 101,
        digits: 7,
    },
    Layout {
        bits: 64,
        exponent_bits: 10,
        bias: 398,
        digits: 16,
    },
    Layout {
        bits: 128,
        exponent_bits: 14,
        bias: 6176,
        digits: 34,
    },
];

fn read(bytes: &[u8]) -> Option<Decimal> {
    let layout = LAYOUTS
        .iter()
        .find(|layout| layout.bits as usize == bytes.len() * 8)?;
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    let raw = u128::from_le_bytes(wide);
    let field = |from_top: u32, bits: u32| {
        raw >> (layout.bits - from_top - bits) & (u128::MAX >> (128 - bits))
    };
    let negative = field(0, 1) == 1;
    Some(match (field(1, 2), field(1, 5)) {
        (_, 0b11110) => Decimal::Infinite { negative },
        (_, 0b11111) => Decimal::NaN,
        (first, _) => {
            // A coefficient that begins with the bits 100 leaves them out.
            let is_large = first == 0b11;
            let skipped = if is_large { 3 } else { 1 };
            let rest = layout.bits - skipped - layout.exponent_bits;
            let leading = if is_large { 0b100u128 << rest } else { 0 };
            let coefficient = leading | field(skipped + layout.exponent_bits, rest);
            let is_canonical = coefficient < 10u128.pow(layout.digits);
            Decimal::Finite {
                negative,
                coefficient: if is_canonical { coefficient } else { 0 },
                exponent: field(skipped, layout.exponent_bits) as i32 - layout.bias,
            }
        }
    })
}

/// The number in the standard's notation, with its own digits: `1.50`, `1E+3`.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let (negative, coefficient, exponent) = match read(bytes)? {
        Decimal::Infinite { negative: false } => return Some("Infinity".to_owned()),
        Decimal::Infinite { negative: true } => return Some("-Infinity".to_owned()),
        Decimal::NaN => return Some("NaN".to_owned()),
        Decimal::Finite {
            negative,
            coefficient,
            exponent,
        } => (negative, coefficient, exponent),
    };
    let sign = if negative { "-" } else { "" };
    let digits = coefficient.to_string();
    let before = digits.len() as i32 + exponent;
    if exponent > 0 || before < -5 {
        let (head, tail) = digits.split_at(1);
        let point = if tail.is_empty() { "" } else { "." };
        return Some(format!("{sign}{head}{point}{tail}E{:+}", before - 1));
    }
    Some(match usize::try_from(before) {
        _ if exponent == 0 => format!("{sign}{digits}"),
        Ok(before) if before > 0 => format!("{sign}{}.{}", &digits[..before], &digits[before..]),
        _ => {
            let zeros = "0".repeat(before.unsigned_abs() as usize);
            format!("{sign}0.{zeros}{digits}")
        }
    })
}

/// The number as a double, rounded.
pub(super) fn parse(bytes: &[u8]) -> Option<f64> {
    Some(match read(bytes)? {
        Decimal::Infinite { negative: false } => f64::INFINITY,
        Decimal::Infinite { negative: true } => f64::NEG_INFINITY,
        Decimal::NaN => f64::NAN,
        Decimal::Finite {
            negative,
            coefficient,
            exponent,
        } => {
            let sign = if negative { "-" } else { "" };
            format!("{sign}{coefficient}e{exponent}")
                .parse()
                .expect("digits and an exponent are a number")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{parse, text};

    #[test]
    fn numbers_are_as_compilers_write_them() {
        // gcc's encodings of 1.50DF, -0.001DF, 9999999DF, 1E+10DF and 1E-10DF.
        for (raw, expected) in [
            (0x3180_0096_u32, "1.50"),
            (0xb100_0001, "-0.001"),
            (0x6cb8_967f, "9999999"),
            (0x3780_0001, "1E+10"),
            (0x2d80_0001, "1E-10"),
            (0x7800_0000, "Infinity"),
            (0x7c00_0000, "NaN"),
        ] {
            let shown = text(&raw.to_le_bytes());
            assert_eq!(shown.as_deref(), Some(expected), "{raw:#x}");
        }
        assert_eq!(parse(&0x3180_0096_u32.to_le_bytes()), Some(1.5));
        assert_eq!(text(&[0; 3]), None);
    }
}
