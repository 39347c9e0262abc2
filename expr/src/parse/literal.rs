//! Numbers, characters and strings.

use crate::ast::{CharKind, Literal, Suffix};
use crate::parse::{ParseError, Parser};

impl Parser<'_> {
    /// Parses a number, which begins with a digit, or with a point and a digit.
    pub(super) fn number(&mut self) -> Result<Literal, ParseError> {
        let start = self.here();
        let rest = self.rest();
        let length = number_length(rest);
        let text: String = rest[..length]
            .chars()
            .filter(|c| !matches!(c, '_' | '\''))
            .collect();
        self.pos += length;
        let read = read_number(&text);
        read.map_err(|why| ParseError::new(start, why))
    }

    /// Parses a character or a string, if one begins here.
    pub(super) fn quoted(&mut self) -> Result<Option<Literal>, ParseError> {
        self.skip_blanks();
        const PREFIXES: [(&str, CharKind); 6] = [
            ("u8", CharKind::Utf8),
            ("u", CharKind::Utf16),
            ("U", CharKind::Utf32),
            ("L", CharKind::Wide),
            ("b", CharKind::Byte),
            ("", CharKind::Plain),
        ];
        let rest = self.rest();
        for (prefix, kind) in PREFIXES {
            let Some(body) = rest.strip_prefix(prefix) else {
                continue;
            };
            match body.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    self.pos += prefix.len();
                    return self.between(quote, kind).map(Some);
                }
                _ => continue,
            }
        }
        let raw = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'));
        match raw.filter(|raw| raw.trim_start_matches('#').starts_with('"')) {
            Some(raw) => {
                self.pos += rest.len() - raw.len();
                self.raw_text().map(Some)
            }
            None => Ok(None),
        }
    }

    /// Parses a raw Rust string, which has no escapes. Its `"`, preceded by any number of `#`, begins here.
    fn raw_text(&mut self) -> Result<Literal, ParseError> {
        let rest = self.rest();
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let end = format!("\"{}", &rest[..hashes]);
        let body = &rest[hashes + 1..];
        let Some(length) = body.find(&end) else {
            return Err(self.error(format!("the string has no end: expected {end}")));
        };
        self.pos += hashes + 1 + length + end.len();
        Ok(Literal::Text(body.as_bytes()[..length].to_vec()))
    }

    /// Parses the text between two quotes. The first one begins here.
    fn between(&mut self, quote: char, kind: CharKind) -> Result<Literal, ParseError> {
        let start = self.pos;
        self.pos += 1;
        let (mut bytes, mut codes, mut first) = (Vec::new(), 0, 0);
        loop {
            let Some(c) = self.rest().chars().next() else {
                let message = format!("the text in quotes has no end: expected {quote}");
                return Err(ParseError::new(start, message));
            };
            self.pos += c.len_utf8();
            if c == quote {
                break;
            }
            let code = match c {
                '\\' => self.escape(&mut bytes)?,
                c => {
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    u32::from(c)
                }
            };
            first = if codes == 0 { code } else { first };
            codes += 1;
        }
        match (quote, codes) {
            ('\'', 0) => {
                let message = "expected a character between the quotes";
                Err(ParseError::new(start, message))
            }
            ('\'', 1) => Ok(Literal::Char { code: first, kind }),
            _ => Ok(Literal::Text(bytes)),
        }
    }

    /// Parses the rest of an escape after its backslash. Appends it as bytes and returns it as a number.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<u32, ParseError> {
        let start = self.pos - 1;
        let wrong = |message: &str| ParseError::new(start, message);
        let Some(c) = self.rest().chars().next() else {
            return Err(wrong("the text in quotes has no end"));
        };
        self.pos += c.len_utf8();
        let plain = match c {
            'n' => Some(b'\n'),
            't' => Some(b'\t'),
            'r' => Some(b'\r'),
            'a' => Some(7),
            'b' => Some(8),
            'f' => Some(12),
            'v' => Some(11),
            'e' => Some(27),
            '\\' | '\'' | '"' | '?' => Some(c as u8),
            _ => None,
        };
        if let Some(byte) = plain {
            bytes.push(byte);
            return Ok(u32::from(byte));
        }
        let byte = match c {
            '0'..='7' => {
                self.pos -= 1;
                self.escape_digits(8, 3)
            }
            'x' => self.escape_digits(16, 2),
            _ => None,
        };
        if let Some(byte) = byte {
            let byte = u8::try_from(byte).map_err(|_| wrong("the number exceeds a byte"))?;
            bytes.push(byte);
            return Ok(u32::from(byte));
        }
        let code = match c {
            'u' if self.rest().starts_with('{') => {
                self.pos += 1;
                let code = self.escape_digits(16, 6);
                let closed = self.rest().starts_with('}');
                self.pos += usize::from(closed);
                code.filter(|_| closed)
            }
            'u' => self.escape_digits(16, 4),
            'U' => self.escape_digits(16, 8),
            _ => {
                let error = wrong("unknown escape");
                return Err(error.with_hint("a backslash itself is written as \\\\"));
            }
        };
        let code = code.filter(|code| *code <= 0x10_ffff);
        let code = code.ok_or_else(|| wrong("expected the hexadecimal number of a character"))?;
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(code)
    }

    fn escape_digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let digits = self.rest().chars().take(most);
        let digits: String = digits.take_while(|c| c.is_digit(radix)).collect();
        self.pos += digits.len();
        u32::from_str_radix(&digits, radix).ok()
    }
}

/// Returns how many bytes belong to the number at the start of `text`: digits, letters, separators, one point, and the
/// sign of an exponent.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let hex = at(0) == b'0' && at(1).eq_ignore_ascii_case(&b'x');
    let (mut length, mut point) = (0, false);
    loop {
        let (c, next) = (at(length), at(length + 1));
        let before = match length {
            0 => 0,
            _ => at(length - 1).to_ascii_lowercase(),
        };
        let exponent = if hex { b'p' } else { b'e' };
        let signed = before == exponent && next.is_ascii_digit();
        let taken = match c {
            b'.' => {
                // `1..3` is a range, `1.max` a member.
                let ends = next == b'.' || next.is_ascii_alphabetic() || next == b'_';
                let taken = !point && !ends;
                point = true;
                taken
            }
            b'+' | b'-' => signed,
            b'\'' => before.is_ascii_hexdigit() && next.is_ascii_hexdigit(),
            c => c.is_ascii_alphanumeric() || c == b'_',
        };
        if !taken {
            return length;
        }
        length += 1;
    }
}

fn read_number(text: &str) -> Result<Literal, String> {
    let lower = text.to_ascii_lowercase();
    let prefixed = |prefix: &str| lower.strip_prefix(prefix);
    if let Some(digits) = prefixed("0x") {
        if digits.contains(['.', 'p']) {
            return hex_float(digits).ok_or_else(|| format!("\"{text}\" is not a number"));
        }
        return integer(text, digits, 16);
    }
    if let Some(digits) = prefixed("0b") {
        return integer(text, digits, 2);
    }
    if let Some(digits) = prefixed("0o") {
        return integer(text, digits, 8);
    }
    let digits = lower.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &lower[digits..];
    if rest.starts_with(['.', 'e']) || matches!(rest, "f" | "f32" | "f64") {
        return float(text, &lower);
    }
    match lower.starts_with('0') && digits > 1 {
        true => integer(text, &lower, 8),
        false => integer(text, &lower, 10),
    }
}

fn float(text: &str, lower: &str) -> Result<Literal, String> {
    let (digits, single) = if let Some(digits) = lower.strip_suffix("f32") {
        (digits, true)
    } else if let Some(digits) = lower.strip_suffix("f64") {
        (digits, false)
    } else if let Some(digits) = lower.strip_suffix('f') {
        (digits, true)
    } else {
        (lower.strip_suffix('l').unwrap_or(lower), false)
    };
    let value: f64 = digits
        .parse()
        .map_err(|_| format!("\"{text}\" is not a number"))?;
    let value = if single {
        f64::from(value as f32)
    } else {
        value
    };
    match value.is_finite() {
        true => Ok(Literal::Float { value, single }),
        false => Err(format!("{text} is too large for a floating-point number")),
    }
}

/// Parses C's `0x1.8p3`, without the prefix.
fn hex_float(digits: &str) -> Option<Literal> {
    let (mantissa, exponent) = digits.split_once('p')?;
    let single = exponent.ends_with('f');
    let exponent: i32 = exponent.trim_end_matches(['f', 'l']).parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let number = u64::from_str_radix(&all, 16).ok()?;
    let shift = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    let value = number as f64 * 2f64.powi(exponent.checked_sub(shift)?);
    let value = if single {
        f64::from(value as f32)
    } else {
        value
    };
    value
        .is_finite()
        .then_some(Literal::Float { value, single })
}

/// Parses an integer. `text` is the whole literal, `digits` the part after the prefix.
fn integer(text: &str, digits: &str, radix: u32) -> Result<Literal, String> {
    let end = digits.find(|c: char| !c.is_digit(radix));
    let (digits, suffix) = digits.split_at(end.unwrap_or(digits.len()));
    if digits.is_empty() {
        return Err(format!("\"{text}\" has no digits"));
    }
    let Some(suffix) = read_suffix(suffix) else {
        let kind = match radix {
            2 => "binary ",
            8 => "octal ",
            16 => "hexadecimal ",
            _ => "",
        };
        return Err(format!("\"{suffix}\" does not belong to the {kind}number"));
    };
    let value = u128::from_str_radix(digits, radix)
        .map_err(|_| format!("{text} is too large: numbers have at most 128 bits"))?;
    let bits = match suffix {
        Suffix::Sized { signed, bits } => u32::from(bits) - u32::from(signed),
        Suffix::None => 128,
        _ => 64,
    };
    if bits < 128 && value >> bits != 0 {
        return Err(format!("{text} is too large for its type"));
    }
    Ok(Literal::Integer {
        value,
        decimal: radix == 10,
        suffix,
    })
}

fn read_suffix(text: &str) -> Option<Suffix> {
    Some(match text {
        "" => Suffix::None,
        "u" => Suffix::Unsigned,
        "l" | "ll" | "n" => Suffix::Long,
        "ul" | "lu" | "ull" | "llu" | "uz" | "zu" => Suffix::UnsignedLong,
        "isize" => Suffix::Sized {
            signed: true,
            bits: 64,
        },
        "usize" => Suffix::Sized {
            signed: false,
            bits: 64,
        },
        sized => {
            let signed = sized.starts_with('i');
            let bits = sized.strip_prefix(['i', 'u'])?.parse().ok()?;
            [8, 16, 32, 64, 128]
                .contains(&bits)
                .then_some(Suffix::Sized { signed, bits })?
        }
    })
}
