//! Makes the message of a logpoint's record, and the JSON of expressions and values, as text that is stored once.
//!
//! Every format and every word give a message: `?` stands for values that the words do not hold.

use std::fmt::{Arguments, Write};

use crate::control::{LogKind, LogPart, LogValue};
use crate::wire::WORD_LEN;

/// Stands for an unknown value.
const UNKNOWN: &str = "?";

/// Returns the message of `words` in the format `parts`, and its values as JSON, if it has any.
pub(super) fn render(parts: &[LogPart], words: &[u8]) -> (String, Option<String>) {
    let mut message = String::new();
    let mut values = Vec::new();
    for part in parts {
        match part {
            LogPart::Text(text) => message.push_str(text),
            LogPart::Value(value) => {
                let start = message.len();
                push_value(&mut message, value, words);
                values.push((value.expression.as_str(), start..message.len()));
            }
            LogPart::Named {
                expression,
                word: number,
                names,
            } => {
                let start = message.len();
                let bits = word(words, *number as usize);
                let named = names.iter().find(|(value, _)| Some(*value) == bits);
                message.push_str(named.map_or(UNKNOWN, |(_, name)| name));
                values.push((expression.as_str(), start..message.len()));
            }
        }
    }
    let values = values
        .into_iter()
        .map(|(expression, range)| (expression, &message[range]));
    let json = object(values);
    (message, json)
}

/// Returns an object in JSON, or `None` if it would be empty. The first value of a name counts.
pub(super) fn object<'a>(values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut json = String::new();
    for (name, value) in values {
        if names.contains(&name) {
            continue;
        }
        names.push(name);
        json.push(if json.is_empty() { '{' } else { ',' });
        push_string(&mut json, name);
        json.push(':');
        push_string(&mut json, value);
    }
    if json.is_empty() {
        return None;
    }
    json.push('}');
    Some(json)
}

fn push_string(json: &mut String, text: &str) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                json.push('\\');
                json.push(c);
            }
            '\n' => json.push_str("\\n"),
            '\t' => json.push_str("\\t"),
            '\r' => json.push_str("\\r"),
            c if c < ' ' => append(json, format_args!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
}

fn push_value(text: &mut String, value: &LogValue, words: &[u8]) {
    let first = value.word as usize;
    let Some(bits) = word(words, first) else {
        text.push_str(UNKNOWN);
        return;
    };
    match (value.kind, value.bytes) {
        (LogKind::Text, room) => push_text(text, bits, room as usize, words, first + 1),
        (LogKind::Signed | LogKind::Unsigned | LogKind::Hex, 16) => match word(words, first + 1) {
            Some(high) => push_wide(text, value.kind, u128::from(high) << 64 | u128::from(bits)),
            None => text.push_str(UNKNOWN),
        },
        (LogKind::Float, 4) => append(text, format_args!("{:?}", f32::from_bits(bits as u32))),
        (LogKind::CFloat, 4) => {
            let number = f32::from_bits(bits as u32);
            let rest = u64::from(number.to_bits() & 0x007f_ffff);
            push_c_float(text, f64::from(number), rest, &format!("{number:e}"));
        }
        (LogKind::CFloat, 8) => {
            let number = f64::from_bits(bits);
            push_c_float(
                text,
                number,
                bits & 0x000f_ffff_ffff_ffff,
                &format!("{number:e}"),
            );
        }
        (LogKind::Float, 8) => append(text, format_args!("{:?}", f64::from_bits(bits))),
        (_, bytes @ (1 | 2 | 4 | 8)) => push_narrow(text, value.kind, bits, bytes),
        _ => text.push_str(UNKNOWN),
    }
}

/// Appends a value of at most one word.
fn push_narrow(text: &mut String, kind: LogKind, bits: u64, bytes: u32) {
    let shift = u64::BITS - 8 * bytes;
    let number = bits << shift >> shift;
    match kind {
        LogKind::Signed => append(text, format_args!("{}", (bits as i64) << shift >> shift)),
        LogKind::Unsigned => append(text, format_args!("{number}")),
        LogKind::Hex | LogKind::Pointer => append(text, format_args!("{number:#x}")),
        LogKind::Bool => append(text, format_args!("{}", number != 0)),
        LogKind::Char => append(text, format_args!("'{}'", (bits as u8).escape_ascii())),
        LogKind::Float | LogKind::CFloat | LogKind::Text => text.push_str(UNKNOWN),
    }
}

/// Appends a number as C's `%g` would, with as many digits as identify it; `rest` are its bits after the exponent,
/// `scientific` its digits as in `1.25e-7`.
fn push_c_float(text: &mut String, number: f64, rest: u64, scientific: &str) {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    if number.is_nan() {
        return append(text, format_args!("{sign}nan({rest:#x})"));
    }
    if number.is_infinite() {
        return append(text, format_args!("{sign}inf"));
    }
    let scientific = scientific.trim_start_matches('-');
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = mantissa.replace('.', "");
    text.push_str(sign);
    match exponent {
        -4..0 => {
            let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
            append(text, format_args!("0.{zeros}{digits}"));
        }
        0..17 if digits.len() <= exponent as usize + 1 => {
            let zeros = "0".repeat(exponent as usize + 1 - digits.len());
            append(text, format_args!("{digits}{zeros}"));
        }
        0..17 => {
            let (whole, part) = digits.split_at(exponent as usize + 1);
            append(text, format_args!("{whole}.{part}"));
        }
        _ => {
            let mark = if exponent < 0 { '-' } else { '+' };
            append(text, format_args!("{mantissa}e{mark}{:02}", exponent.abs()));
        }
    }
}

fn push_wide(text: &mut String, kind: LogKind, number: u128) {
    match kind {
        LogKind::Signed => append(text, format_args!("{}", number as i128)),
        LogKind::Hex => append(text, format_args!("{number:#x}")),
        _ => append(text, format_args!("{number}")),
    }
}

/// Appends the text of `len` bytes that begins at word `first` and was cut to `room` bytes.
fn push_text(text: &mut String, len: u64, room: usize, words: &[u8], first: usize) {
    let shown = usize::try_from(len).unwrap_or(usize::MAX).min(room);
    let bytes = words.get(first * WORD_LEN..).unwrap_or_default();
    match bytes.get(..shown) {
        Some(bytes) if len != u64::MAX => {
            text.push_str(&String::from_utf8_lossy(bytes));
            if len > shown as u64 {
                text.push_str("...");
            }
        }
        _ => text.push_str(UNKNOWN),
    }
}

fn word(words: &[u8], index: usize) -> Option<u64> {
    let bytes = words.get(index.checked_mul(WORD_LEN)?..)?;
    bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
}

fn append(text: &mut String, what: Arguments<'_>) {
    text.write_fmt(what)
        .expect("a string takes whatever is written to it");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(word: u32, kind: LogKind, bytes: u32) -> LogPart {
        LogPart::Value(LogValue {
            expression: format!("{kind:?}{bytes}"),
            word,
            kind,
            bytes,
        })
    }

    fn message(parts: &[LogPart], words: &[u64]) -> (String, Option<String>) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        render(parts, &bytes)
    }

    fn shown(kind: LogKind, bytes: u32, words: &[u64]) -> String {
        message(&[value(0, kind, bytes)], words).0
    }

    #[test]
    fn numbers_take_the_low_bytes_of_their_word() {
        let bits = 0xfedc_ba98_8765_83ff;
        assert_eq!(shown(LogKind::Signed, 1, &[bits]), "-1");
        assert_eq!(shown(LogKind::Signed, 2, &[bits]), "-31745");
        assert_eq!(shown(LogKind::Signed, 4, &[bits]), "-2023390209");
        assert_eq!(shown(LogKind::Signed, 8, &[u64::MAX]), "-1");
        assert_eq!(shown(LogKind::Unsigned, 1, &[bits]), "255");
        assert_eq!(shown(LogKind::Hex, 4, &[bits]), "0x876583ff");
        assert_eq!(shown(LogKind::Pointer, 8, &[bits]), "0xfedcba98876583ff");
        assert_eq!(
            shown(LogKind::Signed, 16, &[5, u64::MAX]),
            "-18446744073709551611"
        );
        assert_eq!(
            shown(LogKind::Unsigned, 16, &[0, 1]),
            "18446744073709551616"
        );
    }

    #[test]
    fn floats_chars_and_bools_look_as_in_arguments() {
        assert_eq!(shown(LogKind::Float, 8, &[2.5f64.to_bits()]), "2.5");
        assert_eq!(
            shown(LogKind::Float, 4, &[u64::from(1f32.to_bits()) | 7 << 32]),
            "1.0"
        );
        assert_eq!(shown(LogKind::Char, 1, &[0x6161]), "'a'");
        assert_eq!(shown(LogKind::Char, 1, &[10]), r"'\n'");
        assert_eq!(shown(LogKind::Bool, 1, &[0x100]), "false");
        assert_eq!(shown(LogKind::Bool, 1, &[2]), "true");
    }

    #[test]
    fn floats_of_c_look_as_in_debuggers() {
        let double = |number: f64| shown(LogKind::CFloat, 8, &[number.to_bits()]);
        assert_eq!(double(1.0), "1");
        assert_eq!(double(-2.5), "-2.5");
        assert_eq!(double(0.1), "0.1");
        assert_eq!(double(-0.0), "-0");
        assert_eq!(double(1e-5), "1e-05");
        assert_eq!(double(0.00012), "0.00012");
        assert_eq!(double(1e16), "10000000000000000");
        assert_eq!(double(1.25e17), "1.25e+17");
        assert_eq!(double(f64::NEG_INFINITY), "-inf");
        let single = u64::from(0.1f32.to_bits()) | 1 << 40;
        assert_eq!(shown(LogKind::CFloat, 4, &[single]), "0.1");
        let nan = f64::NAN.to_bits() & !(1 << 63);
        assert_eq!(shown(LogKind::CFloat, 8, &[nan]), "nan(0x8000000000000)");
    }

    #[test]
    fn names_stand_for_numbers() {
        let part = LogPart::Named {
            expression: "c".into(),
            word: 1,
            names: vec![(0, "red".into()), (7, "blue".into())],
        };
        let (text, json) = message(std::slice::from_ref(&part), &[1, 7]);
        assert_eq!(
            (text.as_str(), json.as_deref()),
            ("blue", Some(r#"{"c":"blue"}"#))
        );
        assert_eq!(message(&[part], &[7, 1]).0, "?");
    }

    #[test]
    fn texts_are_as_long_as_they_say_and_as_there_is_room() {
        let hello = u64::from_le_bytes(*b"hello wo");
        assert_eq!(shown(LogKind::Text, 8, &[5, hello]), "hello");
        assert_eq!(shown(LogKind::Text, 8, &[0, hello]), "");
        assert_eq!(shown(LogKind::Text, 8, &[8, hello]), "hello wo");
        assert_eq!(shown(LogKind::Text, 7, &[11, hello]), "hello w...");
        assert_eq!(shown(LogKind::Text, 8, &[u64::MAX, hello]), "?");
        assert_eq!(shown(LogKind::Text, 8, &[2, 0xffff]), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn what_the_words_do_not_hold_is_not_known() {
        assert_eq!(shown(LogKind::Signed, 4, &[]), "?");
        assert_eq!(shown(LogKind::Signed, 16, &[1]), "?");
        assert_eq!(shown(LogKind::Signed, 3, &[1]), "?");
        assert_eq!(shown(LogKind::Float, 16, &[1, 2]), "?");
        assert_eq!(shown(LogKind::Text, 64, &[20, 1]), "?");
        assert_eq!(message(&[value(u32::MAX, LogKind::Text, 8)], &[1]).0, "?");
    }

    #[test]
    fn values_are_json_with_one_entry_per_expression() {
        let (message, json) = message(
            &[
                LogPart::Text("n=".into()),
                value(0, LogKind::Signed, 4),
                LogPart::Text(" again ".into()),
                value(0, LogKind::Signed, 4),
                LogPart::Text(" c=".into()),
                value(1, LogKind::Char, 1),
            ],
            &[7, u64::from(b'"')],
        );
        assert_eq!(message, r#"n=7 again 7 c='\"'"#);
        assert_eq!(json.unwrap(), r#"{"Signed4":"7","Char1":"'\\\"'"}"#);
        assert_eq!(object([]), None);
        let odd = object([("a\"\\", "\n\t\u{1}\u{e9}")]).unwrap();
        assert_eq!(odd, "{\"a\\\"\\\\\":\"\\n\\t\\u0001\u{e9}\"}");
    }

    proptest! {
        #[test]
        fn no_format_and_no_words_make_it_panic(
            word in prop::sample::select(vec![0, 1, 2, 63, 64, u32::MAX]),
            bytes in prop::sample::select(vec![0, 1, 2, 3, 4, 8, 9, 16, 64, u32::MAX]),
            words in prop::collection::vec(any::<u64>(), 0..4),
        ) {
            use LogKind::*;
            for kind in [Signed, Unsigned, Hex, Float, CFloat, Pointer, Char, Bool, Text] {
                let (text, json) = message(&[value(word, kind, bytes)], &words);
                prop_assert!(kind == Text || !text.is_empty());
                prop_assert!(json.is_some());
            }
        }
    }
}
