//! Texts with expressions in braces, as in log messages: `len={p->len} flags={flags:x}`.
//!
//! `{{` and `}}` stand for braces. An expression may be followed by a colon and a format.

use std::fmt;

use crate::expression::Expression;
use crate::parse::{ParseError, Parser};

/// A text with expressions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Template {
    /// Its parts, in order.
    pub parts: Vec<Part>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text that is copied.
    Text(String),
    /// A script whose result is inserted.
    Script {
        /// Its text.
        source: String,
    },
    /// A value that is inserted.
    Value {
        /// The expression.
        expression: Expression,
        /// Its format.
        format: Format,
    },
}

/// The format of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// As its type suggests.
    #[default]
    Natural,
    /// Numbers in base 16.
    Hex,
    /// Numbers, also characters and enumerations, in base 10.
    Decimal,
    /// Numbers in base 10, with the bits taken as an unsigned number.
    Unsigned,
    /// Numbers in base 8.
    Octal,
    /// Numbers in base 2.
    Binary,
    /// Numbers as characters.
    Char,
    /// The target of a pointer to characters, as text.
    Text,
    /// An address with its symbol.
    Address,
}

impl Format {
    const NAMES: [(&'static str, &'static str, Format); 8] = [
        ("x", "hex", Format::Hex),
        ("d", "decimal", Format::Decimal),
        ("u", "unsigned", Format::Unsigned),
        ("o", "octal", Format::Octal),
        ("b", "binary", Format::Binary),
        ("c", "char", Format::Char),
        ("s", "string", Format::Text),
        ("a", "address", Format::Address),
    ];

    /// Finds a format by its letter or its name, `x` or `hex`. Also accepts `t` from gdb and `p` from C.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Format> {
        let name = match name {
            "" | "?" | "natural" => return Some(Format::Natural),
            "t" => "b",
            "p" => "a",
            "X" | "#x" => "x",
            other => other,
        };
        let found = Format::NAMES
            .iter()
            .find(|(letter, long, _)| name == *letter || name == *long);
        found.map(|(_, _, format)| *format)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Format::NAMES.iter().find(|(_, _, format)| format == self);
        f.write_str(found.map_or("natural", |(_, name, _)| name))
    }
}

/// Another language allowed between braces.
pub trait Scripts {
    /// Returns whether a text begins with a script, even if it is also a valid expression.
    fn begins(&self, text: &str) -> bool;

    /// Parses a script.
    ///
    /// # Errors
    /// The text is not a script.
    fn read(&self, text: &str) -> Result<(), ParseError>;
}

/// No other language.
struct NoScripts;

impl Scripts for NoScripts {
    fn begins(&self, _: &str) -> bool {
        false
    }

    fn read(&self, _: &str) -> Result<(), ParseError> {
        Err(ParseError::new(0, "it is not an expression"))
    }
}

/// Closing braces tried as the end of one script, at most.
const MAX_ENDS: usize = 64;

impl Template {
    /// Parses a template. Only names that are always types count as types.
    ///
    /// # Errors
    /// A brace is missing, or the text between braces is not an expression. Positions are in the whole text.
    pub fn parse(text: &str) -> Result<Template, ParseError> {
        Template::parse_among(text, &NoScripts)
    }

    /// Like [`Template::parse`], but also accepts scripts between braces.
    ///
    /// # Errors
    /// As for [`Template::parse`].
    pub fn parse_among(text: &str, scripts: &dyn Scripts) -> Result<Template, ParseError> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut pos = 0;
        while let Some(c) = text[pos..].chars().next() {
            let doubled = text[pos + c.len_utf8()..].starts_with(c);
            match c {
                '{' | '}' if doubled => {
                    plain.push(c);
                    pos += 2;
                }
                '{' => {
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    let (part, end) = either(text, pos + 1, scripts)?;
                    parts.push(part);
                    pos = end;
                }
                '}' => {
                    let error = ParseError::new(pos, "a \"}\" without \"{\"");
                    return Err(error.with_hint("to write the brace itself, double it"));
                }
                c => {
                    plain.push(c);
                    pos += c.len_utf8();
                }
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template { parts })
    }
}

/// Parses an expression or script up to its closing brace.
fn either(text: &str, start: usize, scripts: &dyn Scripts) -> Result<(Part, usize), ParseError> {
    let ours = match scripts.begins(&text[start..]) {
        true => None,
        false => match value(text, start) {
            Ok(ours) => return Ok(ours),
            Err(error) => Some(error),
        },
    };
    let mut theirs = None;
    for (end, _) in text[start..].match_indices('}').take(MAX_ENDS) {
        let source = &text[start..start + end];
        match scripts.read(source) {
            Ok(()) => {
                let source = source.trim().to_owned();
                return Ok((Part::Script { source }, start + end + 1));
            }
            Err(error) => theirs = theirs.or(Some(error)),
        }
    }
    let theirs = theirs.map(|error| ParseError {
        position: start + error.position,
        ..error
    });
    Err(match (ours, theirs) {
        (Some(ours), Some(theirs)) => ours.or_later(theirs),
        (Some(error), None) | (None, Some(error)) => error,
        (None, None) => ParseError::new(text.len(), "expected \"}\""),
    })
}

/// Parses `expr}` or `expr:format}` at `start`. Returns the position after it.
fn value(text: &str, start: usize) -> Result<(Part, usize), ParseError> {
    let mut parser = Parser::within(text, start, &|_| false)?;
    parser.expression()?;
    let expression = Expression::parse(text[start..parser.here()].trim())?;
    let mut format = Format::Natural;
    if parser.eat(":") {
        let from = parser.here();
        let length = text[from..].find('}').unwrap_or(text.len() - from);
        let name = text[from..from + length].trim();
        format = Format::by_name(name).ok_or_else(|| {
            let message = format!("unknown format \"{}\"", name.escape_debug());
            ParseError::new(from, message).with_hint("known are x, d, u, o, b, c, s and a")
        })?;
        parser.skip_to(from + length);
    }
    if !parser.eat("}") {
        return Err(parser.expected("an operator, \":\" or \"}\""));
    }
    let part = Part::Value { expression, format };
    Ok((part, parser.here_exactly()))
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => {
                    f.write_str(&text.replace('{', "{{").replace('}', "}}"))?;
                }
                Part::Script { source } => write!(f, "{{{source}}}")?,
                Part::Value {
                    expression,
                    format: Format::Natural,
                } => write!(f, "{{{expression}}}")?,
                Part::Value { expression, format } => write!(f, "{{{expression}:{format}}}")?,
            }
        }
        Ok(())
    }
}
