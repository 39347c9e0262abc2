//! Floating-point numbers of every format: to text that reads back as the same number, and from and to doubles.

use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, X87DoubleExtended};
use rustc_apfloat::{Float, FloatConvert};

use crate::decimal;
use debuginfo::types::FloatFormat;

/// The number, rounded to a double; `None` if there are fewer bytes than the format has.
pub(super) fn parse(format: FloatFormat, bytes: &[u8]) -> Option<f64> {
    Some(match format {
        FloatFormat::Single => f64::from(f32::from_le_bytes(first(bytes)?)),
        FloatFormat::Double => f64::from_le_bytes(first(bytes)?),
        FloatFormat::Half => double(Half::from_bits(raw(bytes, 2)?)),
        FloatFormat::Brain => double(BFloat::from_bits(raw(bytes, 2)?)),
        FloatFormat::Extended => double(X87DoubleExtended::from_bits(raw(bytes, 10)?)),
        FloatFormat::Quad => double(Quad::from_bits(raw(bytes, 16)?)),
        FloatFormat::Decimal => decimal::parse(bytes)?,
    })
}

/// The number as text; `None` if there are fewer bytes than the format has.
pub(super) fn text(format: FloatFormat, bytes: &[u8]) -> Option<String> {
    Some(match format {
        FloatFormat::Single => {
            let number = f32::from_le_bytes(first(bytes)?);
            let nan = (number.to_bits() & 0x007f_ffff).into();
            shown(f64::from(number), nan, &format!("{number:e}"))
        }
        FloatFormat::Double => {
            let number = f64::from_le_bytes(first(bytes)?);
            let nan = u128::from(number.to_bits() & 0x000f_ffff_ffff_ffff);
            shown(number, nan, &format!("{number:e}"))
        }
        FloatFormat::Half => wide(Half::from_bits(raw(bytes, 2)?), 10),
        FloatFormat::Brain => wide(BFloat::from_bits(raw(bytes, 2)?), 7),
        FloatFormat::Extended => {
            let bits = raw(bytes, 10)?;
            // The processor refuses these (Intel SDM volume 1, 8.2.2): a normal number has its first bit set.
            if bits >> 64 & 0x7fff != 0 && bits >> 63 & 1 == 0 {
                return Some("<invalid float value>".to_owned());
            }
            wide(X87DoubleExtended::from_bits(bits), 64)
        }
        FloatFormat::Quad => wide(Quad::from_bits(raw(bytes, 16)?), 112),
        FloatFormat::Decimal => decimal::text(bytes)?,
    })
}

/// The bytes of a double in another format, rounded to it; `None` for formats without a conversion.
pub(super) fn bytes(number: f64, format: FloatFormat) -> Option<Vec<u8>> {
    let double = Double::from_bits(u128::from(number.to_bits()));
    let (bits, size): (u128, usize) = match format {
        FloatFormat::Single => return Some((number as f32).to_le_bytes().to_vec()),
        FloatFormat::Double => return Some(number.to_le_bytes().to_vec()),
        FloatFormat::Half => (converted::<Half>(double), 2),
        FloatFormat::Brain => (converted::<BFloat>(double), 2),
        FloatFormat::Extended => (converted::<X87DoubleExtended>(double), 16),
        FloatFormat::Quad => (converted::<Quad>(double), 16),
        FloatFormat::Decimal => return None,
    };
    Some(bits.to_le_bytes()[..size].to_vec())
}

fn converted<F: Float>(double: Double) -> u128
where
    Double: FloatConvert<F>,
{
    let converted: F = double.convert(&mut false).value;
    converted.to_bits()
}

fn first<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk::<N>().copied()
}

/// The first bytes as a number.
fn raw(bytes: &[u8], size: usize) -> Option<u128> {
    let mut wide = [0; 16];
    wide[..size].copy_from_slice(bytes.get(..size)?);
    Some(u128::from_le_bytes(wide))
}

fn double<F: Float + FloatConvert<Double>>(number: F) -> f64 {
    let double: Double = number.convert(&mut false).value;
    f64::from_bits(double.to_bits() as u64)
}

/// A number whose format no type of Rust has; `fraction` is the number of its stored bits after the exponent.
fn wide<F: Float + FloatConvert<Double>>(number: F, fraction: u32) -> String {
    let sign = if number.is_negative() { "-" } else { "" };
    if number.is_nan() {
        let payload = number.to_bits() & (u128::MAX >> (128 - fraction));
        return format!("{sign}nan({payload:#x})");
    }
    if number.is_infinite() {
        return format!("{sign}inf");
    }
    // In the short formats, which fit a double, whole numbers have more digits than needed to distinguish them.
    if fraction < 11 {
        let exact = double(number);
        if exact.fract() == 0.0 && exact.abs() < 1e5 {
            return format!("{exact:.0}");
        }
    }
    layout(&shortest(number))
}

/// The fewest digits that read back as the same number, as `1.25e-7`.
fn shortest<F: Float>(number: F) -> String {
    // One digit more than always distinguishes two numbers.
    let most = 2 + F::PRECISION * 59 / 196 + 1;
    let counts: Vec<usize> = (1..=most).collect();
    let same = |count: usize| {
        let text = format!("{number:.count$}");
        text.parse::<F>()
            .is_ok_and(|read| read.to_bits() == number.to_bits())
    };
    // With more digits it is never farther away.
    let too_few = counts.partition_point(|count| !same(*count));
    let count = counts.get(too_few).copied().unwrap_or(most);
    scientific(&format!("{number:.count$}"))
}

/// `12.5E+3`, `0.00125` and `100` with one digit before the point and an exponent.
fn scientific(text: &str) -> String {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let mut exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0');
    if digits.is_empty() {
        return format!("{sign}0e0");
    }
    exponent += whole.len() as i32 - 1 - leading as i32;
    let (head, tail) = digits.split_at(1);
    match tail {
        "" => format!("{sign}{head}e{exponent}"),
        _ => format!("{sign}{head}.{tail}e{exponent}"),
    }
}

fn shown(number: f64, nan: u128, scientific: &str) -> String {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    if number.is_nan() {
        return format!("{sign}nan({nan:#x})");
    }
    if number.is_infinite() {
        return format!("{sign}inf");
    }
    layout(scientific)
}

/// Digits and exponent (`1.25e-7`) as people write them: `1.25e-07`, `0.5`, `100`.
fn layout(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    // The limits of C's `%.17g`.
    if !(-4..17).contains(&exponent) {
        let mark = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{mantissa}e{mark}{:02}", exponent.abs());
    }
    let Ok(before) = usize::try_from(exponent + 1) else {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("{sign}0.{zeros}{digits}");
    };
    if before == 0 {
        return format!("{sign}0.{digits}");
    }
    match digits.len() <= before {
        true => format!("{sign}{digits}{}", "0".repeat(before - digits.len())),
        false => format!("{sign}{}.{}", &digits[..before], &digits[before..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(format: FloatFormat, text: &str) -> String {
        let bits = match format {
            FloatFormat::Half => text.parse::<Half>().unwrap().to_bits(),
            FloatFormat::Brain => text.parse::<BFloat>().unwrap().to_bits(),
            FloatFormat::Extended => text.parse::<X87DoubleExtended>().unwrap().to_bits(),
            FloatFormat::Quad => text.parse::<Quad>().unwrap().to_bits(),
            other => panic!("{other:?} is read by the standard library"),
        };
        super::text(format, &bits.to_le_bytes()).unwrap()
    }

    #[test]
    fn floats_are_as_short_as_they_can_be() {
        let text64 = |n: f64| text(FloatFormat::Double, &n.to_le_bytes()).unwrap();
        assert_eq!(text64(0.1), "0.1");
        assert_eq!(text64(100.0), "100");
        assert_eq!(text64(-2.5e-7), "-2.5e-07");
        assert_eq!(text64(1e300), "1e+300");
        assert_eq!(text64(0.0), "0");
        assert_eq!(text64(-0.0), "-0");
        assert_eq!(text64(f64::NEG_INFINITY), "-inf");
        let single = text(FloatFormat::Single, &1.1f32.to_le_bytes());
        assert_eq!(single.unwrap(), "1.1");
    }

    #[test]
    fn other_formats_have_their_own_shortest_text() {
        let third = "0.66666666666666666666666666666666666666666";
        for (format, written, expected) in [
            (FloatFormat::Extended, "0.1", "0.1"),
            (FloatFormat::Extended, "1.5", "1.5"),
            (FloatFormat::Extended, "-0.0", "-0"),
            (FloatFormat::Extended, "1e4000", "1e+4000"),
            (FloatFormat::Extended, third, "0.6666666666666666667"),
            (
                FloatFormat::Quad,
                third,
                "0.6666666666666666666666666666666666",
            ),
            (FloatFormat::Quad, "123456789", "123456789"),
            (FloatFormat::Quad, "1e-4950", "1e-4950"),
            (FloatFormat::Half, "1.001", "1.001"),
            (FloatFormat::Half, "65504", "65504"),
            (FloatFormat::Brain, "0.1", "0.1"),
        ] {
            assert_eq!(text_of(format, written), expected, "{format:?} {written}");
        }
    }

    #[test]
    fn what_is_no_number_says_so_in_every_format() {
        for (format, inf, nan) in [
            (FloatFormat::Half, 0x7c00, 0x7e01),
            (FloatFormat::Brain, 0x7f80, 0x7fc1),
            (FloatFormat::Quad, 0x7fff << 112, (0xfffe | 1) << 111 | 1),
            (
                FloatFormat::Extended,
                0x7fff_8000 << 48,
                0x7fff_c000 << 48 | 1,
            ),
        ] {
            let text = |bits: u128| text(format, &bits.to_le_bytes()).unwrap();
            assert_eq!(text(inf), "inf", "{format:?}");
            assert!(text(nan).starts_with("nan(0x"), "{format:?}: {}", text(nan));
        }
    }

    #[test]
    fn doubles_survive_the_wider_formats() {
        for number in [0.0, 1.0, -1.5, 0.1, 1e300, 5e-324, -2.2e-308, f64::INFINITY] {
            for format in [FloatFormat::Extended, FloatFormat::Quad] {
                let bytes = bytes(number, format).unwrap();
                assert_eq!(parse(format, &bytes), Some(number), "{number}");
            }
        }
    }
}
