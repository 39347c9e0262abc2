//! `printf`: a text with values, formatted like C's function of that name: `printf "%d of %s\n", n, name`.

use debuginfo::Certainty;
use debuginfo::types::{Type, TypeKind};
use debuginfo::value::Value;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, memory};
use crate::inspect::{self, Manner, View};
use crate::past::frames_for;
use crate::protocol::{Code, Failure};
use crate::quantity::count;

/// The `printf` verb.
pub struct Printf;

/// The arguments of `printf`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrintfArgs {
    /// The format, in double quotes, then the expressions, all with commas between. The quotes are optional.
    pub of: String,
}

/// The reply of `printf`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintfReply {
    /// The text.
    pub text: String,
    /// If some of the values may have changed since they were seen: the oldest event that showed one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<u64>,
}

/// A part of a format.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Directive),
}

/// `%-8.3lx`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Directive {
    flags: String,
    width: usize,
    precision: Option<usize>,
    /// The bytes of an integer, if they are written: 8 for `l`.
    bytes: Option<u64>,
    letter: char,
}

/// The widest field.
const WIDEST: usize = 10_000;
/// The longest text of `%s`.
const LONGEST: usize = 10_000;
/// The most names that a type has one after the other.
const MOST_NAMES: usize = 32;

impl Verb for Printf {
    const NAME: &'static str = "printf";
    const DOC: &'static str = "Print formatted values: printf \"%d of %s\\n\", n, name\n\nThe format is that of C: %d %i %u %x %o %c %s %p %f %e %g %%, with flags, width and precision, and the escapes \\n \\t \\a \\b \\e \\f \\r \\v \\\". The value's type sets its size, unless hh, h, l, ll, j, t or z does. logpoint writes such texts each time the program passes a place.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = PrintfArgs;
    type Reply = PrintfReply;

    fn run(call: &Call<'_>, args: PrintfArgs) -> Result<PrintfReply, Failure> {
        let (format, expressions) = taken_apart(&args.of)?;
        let parts = parts(&format)?;
        check(&parts, expressions.len())?;
        call.look(frames_for(&args.of), |view| {
            let mut expressions = expressions.iter();
            let mut text = String::new();
            let mut stale_since = None;
            for part in &parts {
                match part {
                    Part::Text(plain) => text += plain,
                    Part::Value(directive) => {
                        let expression = expressions.next().expect("they were counted");
                        let (written, certainty) = directive.written(view, expression)?;
                        text += &written;
                        stale_since = memory::oldest(stale_since, certainty);
                    }
                }
            }
            Ok(PrintfReply { text, stale_since })
        })
    }
}

impl Command for Printf {
    const WORDS: &'static [Word] = &[Word::new(
        "of",
        "\"FORMAT\", EXPRESSION..",
        Form::Expression,
        "The format and the expressions, with commas between",
    )];

    fn text(reply: &PrintfReply, _: &PrintfArgs) -> Text {
        let lines = reply.text.lines().map(str::to_owned);
        Text::lines(lines.chain(reply.stale_since.map(memory::stale)))
    }
}

fn wrong(message: impl Into<String>) -> Failure {
    let hint = "a comma stands before each value: printf \"%d of %s\\n\", n, name";
    Failure::bad_request(message).hint(hint)
}

fn check(parts: &[Part], given: usize) -> Result<(), Failure> {
    let wanted = parts.iter().filter(|part| matches!(part, Part::Value(_)));
    let wanted = wanted.count();
    match wanted == given {
        true => Ok(()),
        false => Err(wrong(format!(
            "the format has {}, and {given} {} given",
            count(wanted as u64, "value"),
            if given == 1 { "is" } else { "are" },
        ))),
    }
}

/// Splits the format from the expressions. Without quotes, which a shell removes, the format determines how many of the
/// last parts are expressions.
fn taken_apart(text: &str) -> Result<(String, Vec<String>), Failure> {
    let text = text.trim();
    let Some(inner) = text.strip_prefix('"') else {
        let pieces = at_commas(text);
        let wanted = directives(text);
        let at = pieces.len().saturating_sub(wanted).max(1);
        let format = pieces[..at].join(",");
        let expressions = pieces[at..].iter().map(|piece| piece.trim().to_owned());
        return Ok((unescaped(&format)?, expressions.collect()));
    };
    let mut is_escaped = false;
    let end = inner.char_indices().find(|(_, c)| {
        let ends = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        ends
    });
    let Some((end, _)) = end else {
        return Err(wrong("the quotes of the format are not closed"));
    };
    let rest = inner[end + 1..].trim();
    let expressions = match rest.strip_prefix(',') {
        Some(rest) => at_commas(rest),
        None if rest.is_empty() => Vec::new(),
        None => return Err(wrong("a comma separates the format from its arguments")),
    };
    let expressions: Vec<String> = expressions
        .iter()
        .map(|expression| expression.trim().to_owned())
        .collect();
    match expressions.iter().any(String::is_empty) {
        true => Err(wrong("an expression is missing between commas")),
        false => Ok((unescaped(&inner[..end])?, expressions)),
    }
}

fn directives(text: &str) -> usize {
    text.replace("%%", "").matches('%').count()
}

/// Splits at commas outside brackets and quotes.
fn at_commas(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let (mut depth, mut quote, mut is_escaped) = (0, None, false);
    for c in text.chars() {
        let last = pieces.last_mut().expect("there is one");
        match (quote, c) {
            (None, ',') if depth == 0 => {
                pieces.push(String::new());
                continue;
            }
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open && !is_escaped => quote = None,
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
        last.push(c);
    }
    pieces
}

/// Replaces escapes. Others than gdb's are mistakes.
fn unescaped(text: &str) -> Result<String, Failure> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(escape) = chars.next() else {
            out.push('\\');
            break;
        };
        let meant = escaped(escape);
        let unknown = || wrong(format!("\\{escape} is not an escape of a format"));
        out.push(meant.ok_or_else(unknown)?);
    }
    Ok(out)
}

/// The character that a letter after a backslash means.
pub(super) fn escaped(letter: char) -> Option<char> {
    Some(match letter {
        'a' => '\x07',
        'b' => '\x08',
        'e' => '\x1b',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '\\' | '"' | '\'' => letter,
        _ => return None,
    })
}

fn parts(format: &str) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        parts.push(Part::Text(rest[..at].to_owned()));
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('%') {
            parts.push(Part::Text("%".to_owned()));
            rest = behind;
            continue;
        }
        let (directive, behind) = Directive::read(rest)?;
        parts.push(Part::Value(directive));
        rest = behind;
    }
    parts.push(Part::Text(rest.to_owned()));
    Ok(parts)
}

impl Directive {
    fn read(text: &str) -> Result<(Directive, &str), Failure> {
        let behind_flags = text.trim_start_matches(['-', '+', ' ', '#', '0']);
        let flags = text[..text.len() - behind_flags.len()].to_owned();
        let (width, rest) = number(behind_flags)?;
        let (precision, rest) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (precision, rest) = number(rest)?;
                (Some(precision.unwrap_or(0)), rest)
            }
            None => (None, rest),
        };
        let (bytes, rest) = length(rest);
        let letter = rest.chars().next();
        let known = letter.filter(|letter| "diuxXocspfFeEgG".contains(*letter));
        let Some(letter) = known else {
            let message = match letter {
                Some(letter) => format!("%{letter} is not known"),
                None => "the format ends within a %".to_owned(),
            };
            return Err(wrong(message));
        };
        let directive = Directive {
            flags,
            width: width.unwrap_or(0),
            precision,
            bytes,
            letter,
        };
        Ok((directive, &rest[1..]))
    }

    /// The value as text, and how far it may be trusted.
    fn written(&self, view: &View<'_>, expression: &str) -> Result<(String, Certainty), Failure> {
        let value = inspect::value_of(view, expression)?;
        let mut certainty = value.certainty;
        let failed = |why: String| {
            Failure::new(
                Code::EvalFailed,
                format!("%{} cannot show {expression}: {why}", self.letter),
            )
        };
        let text = match self.letter {
            's' => {
                let (text, of_text) = self.text(view, expression, &value)?;
                certainty = of_text;
                text
            }
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
                let number = values::float(&value).map_err(|error| failed(error.to_string()))?;
                self.float(number)
            }
            'p' => {
                let (address, of_address) = inspect::dated_address(view, expression)?;
                certainty = of_address;
                match address {
                    0 => "(nil)".to_owned(),
                    address => format!("{address:#x}"),
                }
            }
            'c' => {
                let number = integer(&value).map_err(failed)?;
                let is_wide = self.is_long() || wide_character(&value.ty).is_some();
                let wide = || char::from_u32(number as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                let character = if is_wide {
                    wide()
                } else {
                    char::from(number as u8)
                };
                character.to_string()
            }
            _ => {
                let number = integer(&value).map_err(failed)?;
                let own = value.ty.size().unwrap_or(8);
                self.integer(number, own)
            }
        };
        Ok((self.padded(text), certainty))
    }

    /// The text of `%s`: the text of a pointer to or an array of characters, or else the value as shown, without
    /// quotes.
    fn text(
        &self,
        view: &View<'_>,
        expression: &str,
        value: &Value,
    ) -> Result<(String, Certainty), Failure> {
        let is_text = matches!(value.kind(), TypeKind::Pointer | TypeKind::Array);
        let address = match is_text {
            true => inspect::dated_address(view, expression).ok(),
            false => None,
        };
        let (text, certainty) = match address {
            Some((address, certainty)) => {
                let width = self.character(value);
                let most = match value.kind() {
                    TypeKind::Array => value.ty.size().unwrap_or(0) as usize / width,
                    _ => LONGEST,
                };
                let read = values::text_at(view.machine, address, width, most.min(LONGEST));
                let read = read.map_err(|unknown| {
                    let message = format!("%s cannot show {expression}: {unknown}");
                    memory::dated(Failure::new(Code::EvalFailed, message), certainty)
                })?;
                (decoded(&read.bytes, width), certainty.and(read.certainty))
            }
            None => as_printed(view, expression)?,
        };
        let text = match self.precision {
            Some(most) => text.chars().take(most).collect(),
            None => text,
        };
        Ok((text, certainty))
    }

    /// Returns whether an `l` is written.
    fn is_long(&self) -> bool {
        self.bytes == Some(8)
    }

    /// The bytes of a character of a text: 1, 2 or 4. With `%ls`, any 4 bytes are one.
    fn character(&self, value: &Value) -> usize {
        let ty = value.ty.strip();
        let element = match ty.kind() {
            TypeKind::Pointer => ty.target(),
            _ => ty.element(),
        };
        let Some(element) = element else { return 1 };
        match wide_character(&element) {
            Some(bytes) => bytes,
            None if self.is_long() && element.size() == Some(4) => 4,
            None => 1,
        }
    }

    /// Writes an integer of so many bytes, or of as many as the directive says.
    fn integer(&self, number: i128, own: u64) -> String {
        let bytes = self.bytes.unwrap_or(own);
        let unused = 64 - ((8 * bytes.min(8)) as u32).clamp(8, 64);
        let raw = (number as u64) & (u64::MAX >> unused);
        let number = match self.bytes {
            // Cut to its length, as C does.
            Some(_) => i128::from((raw << unused) as i64 >> unused),
            None => number,
        };
        let is_alternate = self.flags.contains('#') && raw != 0;
        let (sign, digits) = match self.letter {
            'd' | 'i' if number < 0 => ("-", number.unsigned_abs().to_string()),
            'd' | 'i' if self.flags.contains('+') => ("+", number.to_string()),
            'd' | 'i' if self.flags.contains(' ') => (" ", number.to_string()),
            'd' | 'i' => ("", number.to_string()),
            'x' => (if is_alternate { "0x" } else { "" }, format!("{raw:x}")),
            'X' => (if is_alternate { "0X" } else { "" }, format!("{raw:X}")),
            'o' => (if is_alternate { "0" } else { "" }, format!("{raw:o}")),
            _ => ("", raw.to_string()),
        };
        let is_filled = self.flags.contains('0') && !self.flags.contains('-');
        let least = match self.precision {
            Some(precision) => precision,
            None if is_filled => self.width.saturating_sub(sign.len()),
            None => 0,
        };
        format!("{sign}{digits:0>least$}")
    }

    fn float(&self, number: f64) -> String {
        let precision = self.precision.unwrap_or(6);
        let sign = if self.flags.contains('+') && !number.is_sign_negative() {
            "+"
        } else {
            ""
        };
        if !number.is_finite() {
            return format!("{sign}{number}").to_lowercase();
        }
        let text = match self.letter.to_ascii_lowercase() {
            'f' => format!("{number:.precision$}"),
            'e' => exponential(number, precision),
            _ => general(number, precision.max(1)),
        };
        let text = format!("{sign}{text}");
        let text = match self.flags.contains('0') && !self.flags.contains('-') {
            true => {
                let digits = text.trim_start_matches(['-', '+']);
                let sign = &text[..text.len() - digits.len()];
                let least = self.width.saturating_sub(sign.len());
                format!("{sign}{digits:0>least$}")
            }
            false => text,
        };
        match self.letter.is_ascii_uppercase() {
            true => text.to_uppercase(),
            false => text,
        }
    }

    fn padded(&self, text: String) -> String {
        let width = self.width;
        match self.flags.contains('-') {
            true => format!("{text:<width$}"),
            false => format!("{text:>width$}"),
        }
    }
}

/// The value as `print` shows it, without quotes, and how far it may be trusted.
fn as_printed(view: &View<'_>, expression: &str) -> Result<(String, Certainty), Failure> {
    let shown = inspect::evaluate(view, expression, Manner::of_one(true), None)?.shown;
    let (certainty, age) = match shown.stale_since {
        Some(as_of) => {
            let age = format!(" <stale: as of event {as_of}>");
            (Certainty::Stale { as_of }, age)
        }
        None => (Certainty::Known, String::new()),
    };
    let text = shown.text();
    // The age is told once, after the whole text.
    let plain = text.strip_suffix(&age).unwrap_or(&text);
    let inner = plain.strip_prefix('"').and_then(|s| s.strip_suffix('"'));
    Ok((inner.unwrap_or(plain).to_owned(), certainty))
}

/// `1.5e+00`: the exponent has at least two digits.
fn exponential(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// The shorter of the two forms, without trailing zeros.
fn general(number: f64, precision: usize) -> String {
    let scientific = exponential(number, precision - 1);
    let exponent = scientific
        .rsplit_once('e')
        .map_or(0, |(_, exponent)| exponent.parse::<i64>().unwrap_or(0));
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if number == 0.0 || (-4..precision as i64).contains(&exponent) {
        let decimals = (precision as i64 - 1 - exponent).max(0) as usize;
        return trimmed(&format!("{number:.decimals$}"));
    }
    let (digits, exponent) = scientific.split_once('e').expect("it was written so");
    format!("{}e{exponent}", trimmed(digits))
}

/// Returns the bytes of a type of characters of more than one byte: 2 or 4. In C, such types are only names of integers.
fn wide_character(ty: &Type) -> Option<usize> {
    let mut ty = ty.clone();
    for _ in 0..MOST_NAMES {
        let is_named = matches!(ty.plain_name(), Some("wchar_t" | "char16_t" | "char32_t"));
        if is_named || matches!(ty.kind(), TypeKind::Char { .. }) {
            let bytes = ty.size()? as usize;
            return matches!(bytes, 2 | 4).then_some(bytes);
        }
        ty = match ty.kind() {
            TypeKind::Typedef | TypeKind::Qualified => ty.target()?,
            _ => return None,
        };
    }
    None
}

/// A text of characters of 1, 2 or 4 bytes; invalid ones are replaced.
fn decoded(bytes: &[u8], width: usize) -> String {
    match width {
        2 => {
            let units = bytes.chunks_exact(2);
            let units = units.map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
            String::from_utf16_lossy(&units.collect::<Vec<u16>>())
        }
        4 => {
            let units = bytes.chunks_exact(4);
            let units = units.map(|u| u32::from_le_bytes([u[0], u[1], u[2], u[3]]));
            let characters = units.map(char::from_u32);
            characters
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn integer(value: &Value) -> Result<i128, String> {
    value
        .as_integer()
        .or_else(|error| match value.as_address() {
            Ok(address) => Ok(i128::from(address)),
            Err(_) => Err(error),
        })
        .map_err(|error| error.to_string())
}

/// Reads the length before a letter, and returns how many bytes it means.
fn length(text: &str) -> (Option<u64>, &str) {
    let lengths = [
        ("hh", 1),
        ("h", 2),
        ("ll", 8),
        ("l", 8),
        ("z", 8),
        ("j", 8),
        ("t", 8),
        ("q", 8),
    ];
    let mut found = lengths.iter().filter_map(|(name, bytes)| {
        let rest = text.strip_prefix(name)?;
        Some((Some(*bytes), rest))
    });
    found
        .next()
        .unwrap_or_else(|| (None, text.trim_start_matches('L')))
}

fn number(text: &str) -> Result<(Option<usize>, &str), Failure> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    match digits.parse::<usize>() {
        _ if digits.is_empty() => Ok((None, rest)),
        Ok(number) if number <= WIDEST => Ok((Some(number), rest)),
        _ => Err(wrong(format!("{digits} is wider than {WIDEST}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_told_from_the_expressions() {
        let apart = |text: &str| taken_apart(text).unwrap();
        let of = |format: &str, list: &[&str]| {
            let list = list.iter().map(|&text| text.to_owned()).collect();
            (format.to_owned(), list)
        };
        assert_eq!(
            apart(r#""a=%d, b=%s\n", a, f(b, c)"#),
            of("a=%d, b=%s\n", &["a", "f(b, c)"])
        );
        assert_eq!(apart(r#""\"%d\"", a"#), of("\"%d\"", &["a"]));
        assert_eq!(apart("a=%d, b=%d, a, b"), of("a=%d, b=%d", &["a", "b"]));
        assert_eq!(apart("\"plain\""), of("plain", &[]));
        assert_eq!(apart(r#""\t\e\\n\"""#), of("\t\x1b\\n\"", &[]));
        for wrong in ["\"open", "\"a\" b", "\"%d\", , a", r#""\x41""#, r#""\q""#] {
            assert!(taken_apart(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn missing_values_are_counted_and_the_comma_is_named() {
        let refused = |text: &str| {
            let (format, values) = taken_apart(text).unwrap();
            check(&parts(&format).unwrap(), values.len()).unwrap_err()
        };
        let one = refused("c=%d counter");
        assert_eq!(one.message, "the format has 1 value, and 0 are given");
        assert!(
            one.hint
                .unwrap()
                .starts_with("a comma stands before each value")
        );
        let two = refused("\"%d %d\", counter");
        assert_eq!(two.message, "the format has 2 values, and 1 is given");
    }

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        let directive = |text: &str| Directive::read(text).unwrap().0;
        let int = |text: &str, number: i128| {
            let directive = directive(text);
            directive.padded(directive.integer(number, 4))
        };
        assert_eq!(int("5d", 42), "   42");
        assert_eq!(int("-5d|", 42), "42   ");
        assert_eq!(int("05d", -42), "-0042");
        assert_eq!(int("+d", 42), "+42");
        assert_eq!(int("x", -1), "ffffffff");
        assert_eq!(int("lx", -1), "ffffffffffffffff");
        assert_eq!(int("#x", 255), "0xff");
        assert_eq!(int("u", -1), "4294967295");
        assert_eq!(int(".3d", 7), "007");
        assert_eq!(int("lu", -1), "18446744073709551615");
        assert_eq!(int("ld", -1), "-1");
        assert_eq!(int("hhd", 300), "44");
        assert_eq!(int("hd", 70_000), "4464");
        assert_eq!(int("hx", -1), "ffff");
        assert_eq!(int("llx", 255), "ff");
        let float = |text: &str, number: f64| {
            let directive = directive(text);
            directive.padded(directive.float(number))
        };
        assert_eq!(float("f", 1.5), "1.500000");
        assert_eq!(float("8.2f", 3.146), "    3.15");
        assert_eq!(float("e", 12345.678), "1.234568e+04");
        assert_eq!(float("g", 0.0001), "0.0001");
        assert_eq!(float("g", 1e10), "1e+10");
        assert_eq!(float("g", 100000.0), "100000");
        assert_eq!(float("g", 0.0), "0");
        assert!(Directive::read("q").is_err());
        assert!(Directive::read("").is_err());
    }
}
