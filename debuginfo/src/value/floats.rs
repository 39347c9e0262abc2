//! Floating-point numbers of 4, 8 and (x87) 10 bytes: to text that reads back as the same number, and from it.

/// The number, rounded for x87's extended format; `None` for other sizes.
pub(super) fn parse(bytes: &[u8]) -> Option<f64> {
    match bytes.len() {
        4 => Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
        8 => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        10 | 12 | 16 => Some(Extended::parse(bytes)?.round()),
        _ => None,
    }
}

/// The number as text; `None` for sizes that no format here has.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    match bytes.len() {
        4 => {
            let number = f32::from_le_bytes(bytes.try_into().ok()?);
            let nan = (number.to_bits() & 0x007f_ffff).into();
            Some(shown(f64::from(number), nan, &format!("{number:e}")))
        }
        8 => {
            let number = f64::from_le_bytes(bytes.try_into().ok()?);
            let nan = number.to_bits() & 0x000f_ffff_ffff_ffff;
            Some(shown(number, nan, &format!("{number:e}")))
        }
        10 | 12 | 16 => Some(Extended::parse(bytes)?.text()),
        _ => None,
    }
}

fn shown(number: f64, nan: u64, scientific: &str) -> String {
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

/// A number of x87's extended format: 64 bits of mantissa with the leading one.
struct Extended {
    negative: bool,
    exponent: u16,
    mantissa: u64,
}

const BIAS: i32 = 16383;
/// Digits that tell any two extended numbers apart.
const MAX_DIGITS: usize = 21;

impl Extended {
    fn parse(bytes: &[u8]) -> Option<Extended> {
        let mantissa = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
        let top = u16::from_le_bytes(bytes.get(8..10)?.try_into().ok()?);
        Some(Extended {
            negative: top & 0x8000 != 0,
            exponent: top & 0x7fff,
            mantissa,
        })
    }

    /// The power of two that the mantissa, as an integer, is multiplied by.
    fn scale(&self) -> i32 {
        i32::from(self.exponent.max(1)) - BIAS - 63
    }

    fn special(&self) -> Option<f64> {
        let magnitude = match (self.exponent, self.mantissa << 1) {
            (0x7fff, 0) => f64::INFINITY,
            (0x7fff, _) => f64::NAN,
            _ if self.mantissa == 0 => 0.0,
            _ => return None,
        };
        Some(if self.negative { -magnitude } else { magnitude })
    }

    fn round(&self) -> f64 {
        if let Some(special) = self.special() {
            return special;
        }
        let sign = if self.negative { -1.0 } else { 1.0 };
        // Two steps, each exact or at the end of the range, so that the power itself stays in range.
        let half = self.scale() / 2;
        let magnitude = self.mantissa as f64 * 2f64.powi(half) * 2f64.powi(self.scale() - half);
        sign * magnitude
    }

    fn text(&self) -> String {
        match self.special() {
            Some(special) => {
                let nan = self.mantissa & (u64::MAX >> 1);
                shown(special, nan | 1 << 63, &format!("{special:e}"))
            }
            None => layout(&self.shortest()),
        }
    }

    /// The shortest digits that no other extended number is nearer to.
    fn shortest(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let (digits, exponent) = self.digits();
        let most = MAX_DIGITS.min(digits.len());
        let with = |count: usize| {
            let (short, carried) = rounded(&digits[..count], digits.get(count).copied());
            (short, exponent + i32::from(carried))
        };
        // Rounded to more digits, it is never farther away.
        let counts: Vec<usize> = (1..=most).collect();
        let too_few = counts.partition_point(|count| {
            let (short, exponent) = with(*count);
            !self.is_nearest(&short, exponent)
        });
        let Some(count) = counts.get(too_few) else {
            return scientific(sign, &digits[..most], exponent);
        };
        let (short, exponent) = with(*count);
        let end = short.iter().rposition(|d| *d != 0).map_or(1, |at| at + 1);
        scientific(sign, &short[..end], exponent)
    }

    /// All digits of the exact value, and the exponent of the first.
    fn digits(&self) -> (Vec<u8>, i32) {
        let scale = self.scale();
        let mut number = Big::from(self.mantissa);
        if scale >= 0 {
            number.multiply_power(2, scale);
            let digits = number.digits();
            let exponent = digits.len() as i32 - 1;
            return (digits, exponent);
        }
        // m / 2^k = m * 5^k / 10^k.
        number.multiply_power(5, -scale);
        let digits = number.digits();
        let exponent = digits.len() as i32 - 1 + scale;
        (digits, exponent)
    }

    /// Tells whether the decimal number is nearer to this one than half the distance to its neighbours.
    fn is_nearest(&self, digits: &[u8], exponent: i32) -> bool {
        // Both sides are scaled to integers: |decimal - value| * 2 < 2^scale.
        let scale = self.scale();
        let last = exponent - (digits.len() as i32 - 1);
        let mut decimal = Big::from(0);
        for digit in digits {
            decimal.multiply(10);
            decimal.add(u32::from(*digit));
        }
        let mut value = Big::from(self.mantissa);
        let mut unit = Big::from(1);
        decimal.multiply_power(10, last);
        value.multiply_power(10, -last);
        unit.multiply_power(10, -last);
        value.multiply_power(2, scale);
        unit.multiply_power(2, scale);
        decimal.multiply_power(2, -scale);
        let mut difference = decimal.difference(&value);
        difference.multiply(2);
        difference.less(&unit)
    }
}

fn scientific(sign: &str, digits: &[u8], exponent: i32) -> String {
    let text: String = digits.iter().map(|d| char::from(b'0' + d)).collect();
    match text.len() {
        1 => format!("{sign}{text}e{exponent}"),
        _ => format!("{sign}{}.{}e{exponent}", &text[..1], &text[1..]),
    }
}

/// Digits rounded by the one that follows; whether that made them one digit longer.
fn rounded(digits: &[u8], next: Option<u8>) -> (Vec<u8>, bool) {
    let mut out = digits.to_vec();
    if next.is_none_or(|next| next < 5) {
        return (out, false);
    }
    for digit in out.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return (out, false);
        }
        *digit = 0;
    }
    out[0] = 1;
    (out, true)
}

/// An unsigned integer of any size, the low words first.
struct Big(Vec<u32>);

impl Big {
    fn from(number: u64) -> Big {
        Big(vec![number as u32, (number >> 32) as u32])
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0;
        for word in &mut self.0 {
            let product = u64::from(*word) * u64::from(factor) + carry;
            *word = product as u32;
            carry = product >> 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Multiplies by `base` as many times as `count` says; not at all if it is negative.
    fn multiply_power(&mut self, base: u32, count: i32) {
        let mut left = count.max(0) as u32;
        // As many at a time as a word can hold.
        let at_once = u32::MAX.ilog(base);
        while left > 0 {
            let now = left.min(at_once);
            self.multiply(base.pow(now));
            left -= now;
        }
    }

    fn add(&mut self, number: u32) {
        let mut carry = u64::from(number);
        for word in &mut self.0 {
            let sum = u64::from(*word) + carry;
            *word = sum as u32;
            carry = sum >> 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn word(&self, at: usize) -> u32 {
        self.0.get(at).copied().unwrap_or(0)
    }

    fn less(&self, other: &Big) -> bool {
        for at in (0..self.0.len().max(other.0.len())).rev() {
            if self.word(at) != other.word(at) {
                return self.word(at) < other.word(at);
            }
        }
        false
    }

    fn difference(&self, other: &Big) -> Big {
        let (large, small) = if self.less(other) {
            (other, self)
        } else {
            (self, other)
        };
        let mut borrow = 0;
        let mut words = Vec::with_capacity(large.0.len());
        for at in 0..large.0.len() {
            let value = i64::from(large.word(at)) - i64::from(small.word(at)) - borrow;
            borrow = i64::from(value < 0);
            words.push(value as u32);
        }
        Big(words)
    }

    fn digits(mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while !self.0.is_empty() {
            let mut rest = 0;
            for word in self.0.iter_mut().rev() {
                let value = rest << 32 | u64::from(*word);
                *word = (value / 1_000_000_000) as u32;
                rest = value % 1_000_000_000;
            }
            for _ in 0..9 {
                out.push((rest % 10) as u8);
                rest /= 10;
            }
            while self.0.last() == Some(&0) {
                self.0.pop();
            }
        }
        while out.len() > 1 && out.last() == Some(&0) {
            out.pop();
        }
        out.reverse();
        out
    }
}

/// The bytes of a number as x87's extended format, in 16 bytes; exact, since every double fits.
pub(super) fn extended(number: f64) -> [u8; 16] {
    let bits = number.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (exponent, mantissa) = match exponent {
        0x7ff => (0x7fff, 1 << 63 | fraction << 11),
        0 if fraction == 0 => (0, 0),
        0 => {
            let shift = fraction.leading_zeros();
            (BIAS - 1022 - (shift as i32 - 11), fraction << shift)
        }
        exponent => (exponent - 1023 + BIAS, 1 << 63 | fraction << 11),
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&u64::to_le_bytes(mantissa));
    let top = exponent as u16 | u16::from(number.is_sign_negative()) << 15;
    bytes[8..10].copy_from_slice(&top.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_as_short_as_they_can_be() {
        let text64 = |n: f64| text(&n.to_le_bytes()).unwrap();
        assert_eq!(text64(0.1), "0.1");
        assert_eq!(text64(100.0), "100");
        assert_eq!(text64(-2.5e-7), "-2.5e-07");
        assert_eq!(text64(1e300), "1e+300");
        assert_eq!(text64(0.0), "0");
        assert_eq!(text64(-0.0), "-0");
        assert_eq!(text64(f64::NEG_INFINITY), "-inf");
        assert_eq!(text(&1.1f32.to_le_bytes()).unwrap(), "1.1");
    }

    #[test]
    fn doubles_survive_the_extended_format() {
        for number in [0.0, 1.0, -1.5, 0.1, 1e300, 5e-324, -2.2e-308, f64::INFINITY] {
            assert_eq!(parse(&extended(number)), Some(number), "{number}");
        }
    }

    #[test]
    fn extended_numbers_have_their_own_shortest_text() {
        let mut tenth = [0; 16];
        // 0.1L: one bit more than the double has.
        tenth[..8].copy_from_slice(&0xcccc_cccc_cccc_cccd_u64.to_le_bytes());
        tenth[8..10].copy_from_slice(&0x3ffb_u16.to_le_bytes());
        assert_eq!(text(&tenth).unwrap(), "0.1");
        assert_eq!(text(&extended(1.5)).unwrap(), "1.5");
        assert_eq!(text(&extended(0.0)).unwrap(), "0");
        assert_eq!(text(&extended(1e100)).unwrap().parse(), Ok(1e100));
    }
}
