//! `printf`: a text with values, formatted like C's function of that name: `printf "%d of %s\n", n, name`.

use debuginfo::types::TypeKind;
use debuginfo::value::Value;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word};
use crate::inspect::{self, Manner, View};
use crate::past::frames_for;
use crate::protocol::{Code, Failure};

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
}

/// A part of a format.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Directive),
}

/// `%-8.3lx`, without its length.
#[derive(Debug, Default, PartialEq, Eq)]
struct Directive {
    flags: String,
    width: usize,
    precision: Option<usize>,
    letter: char,
}

/// The widest field.
const WIDEST: usize = 10_000;
/// The longest text of `%s`.
const LONGEST: usize = 10_000;

impl Verb for Printf {
    const NAME: &'static str = "printf";
    const DOC: &'static str = "Print formatted values: printf \"%d of %s\\n\", n, name\n\nThe format is that of C: %d %i %u %x %o %c %s %p %f %e %g %%, with flags, width and precision. The value's type sets its size; l, h and z are accepted and ignored. logpoint writes such texts each time the program passes a place.";
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
            for part in &parts {
                match part {
                    Part::Text(plain) => text += plain,
                    Part::Value(directive) => {
                        let expression = expressions.next().expect("they were counted");
                        text += &directive.written(view, expression)?;
                    }
                }
            }
            Ok(PrintfReply { text })
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
        Text::lines(reply.text.lines().map(str::to_owned))
    }
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::bad_request(message).hint("write printf \"%d of %s\\n\", n, name")
}

fn check(parts: &[Part], given: usize) -> Result<(), Failure> {
    let wanted = parts.iter().filter(|part| matches!(part, Part::Value(_)));
    let wanted = wanted.count();
    match wanted == given {
        true => Ok(()),
        false => Err(wrong(format!(
            "the format has {wanted} values, and {given} are given"
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
        return Ok((unescaped(&format), expressions.collect()));
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
        false => Ok((unescaped(&inner[..end]), expressions)),
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

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
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
        let rest = rest.trim_start_matches(['h', 'l', 'z', 'j', 't', 'L', 'q']);
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
            letter,
        };
        Ok((directive, &rest[1..]))
    }

    fn written(&self, view: &View<'_>, expression: &str) -> Result<String, Failure> {
        let value = inspect::value_of(view, expression)?;
        let failed = |why: String| {
            Failure::new(
                Code::EvalFailed,
                format!("%{} cannot show {expression}: {why}", self.letter),
            )
        };
        let text = match self.letter {
            's' => self.text(view, expression, &value)?,
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
                let number = values::float(&value).map_err(|error| failed(error.to_string()))?;
                self.float(number)
            }
            'p' => {
                let address = inspect::evaluate_address(view, expression)?;
                format!("{address:#x}")
            }
            'c' => {
                let number = integer(&value).map_err(failed)?;
                char::from(number as u8).to_string()
            }
            _ => {
                let number = integer(&value).map_err(failed)?;
                self.integer(number, value.ty.size().unwrap_or(8))
            }
        };
        Ok(self.padded(text))
    }

    /// The text of `%s`: the text of a pointer to or an array of characters, or else the value as shown, without
    /// quotes.
    fn text(&self, view: &View<'_>, expression: &str, value: &Value) -> Result<String, Failure> {
        let is_text = matches!(value.kind(), TypeKind::Pointer | TypeKind::Array);
        let address = match is_text {
            true => inspect::evaluate_address(view, expression).ok(),
            false => None,
        };
        let text = match address {
            Some(address) => {
                let most = match value.kind() {
                    TypeKind::Array => value.ty.size().unwrap_or(0) as usize,
                    _ => LONGEST,
                };
                let read = values::text_at(view.machine, address, 1, most.min(LONGEST));
                let read = read.map_err(|unknown| {
                    let message = format!("%s cannot show {expression}: {unknown}");
                    Failure::new(Code::EvalFailed, message)
                })?;
                String::from_utf8_lossy(&read.bytes).into_owned()
            }
            None => {
                let manner = Manner::of_one(true);
                let shown = inspect::evaluate(view, expression, manner, None)?
                    .shown
                    .text();
                let inner = shown.strip_prefix('"').and_then(|s| s.strip_suffix('"'));
                inner.unwrap_or(&shown).to_owned()
            }
        };
        Ok(match self.precision {
            Some(most) => text.chars().take(most).collect(),
            None => text,
        })
    }

    fn integer(&self, number: i128, bytes: u64) -> String {
        let bits = (8 * bytes.min(8)) as u32;
        let raw = (number as u64) & (u64::MAX >> (64 - bits.clamp(8, 64)));
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

fn integer(value: &Value) -> Result<i128, String> {
    value
        .as_integer()
        .or_else(|error| match value.as_address() {
            Ok(address) => Ok(i128::from(address)),
            Err(_) => Err(error),
        })
        .map_err(|error| error.to_string())
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
        for wrong in ["\"open", "\"a\" b", "\"%d\", , a"] {
            assert!(taken_apart(wrong).is_err(), "{wrong}");
        }
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
        assert_eq!(int("lx", -1), "ffffffff");
        assert_eq!(int("#x", 255), "0xff");
        assert_eq!(int("u", -1), "4294967295");
        assert_eq!(int(".3d", 7), "007");
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
