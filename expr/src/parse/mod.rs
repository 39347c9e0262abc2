//! Reads expressions.
//!
//! The language is what people type who debug C, C++ and Rust, with C's precedences; JavaScript's `===` and strings in
//! single quotes are understood as well. Reading never recurses deeper than [`MAX_HEIGHT`] nor takes more than
//! quadratic time, whatever the text.
//!
//! One thing cannot be decided by reading: `(a)-b` is a difference or a conversion of `-b` to the type `a`, and
//! likewise with `+`, `*`, `&` and `(`. A closure tells whether a name is a type; without one, only names that are always
//! types are.

mod cursor;
mod literal;
mod operators;
mod path;
mod primary;
mod types;
pub(super) mod words;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::ast::{BinaryOp, Expr, ExprKind, Span};
pub(super) use cursor::Parser;
use debuginfo::Diagnostic;

/// Bytes that an expression may have.
pub const MAX_LENGTH: usize = 8192;
/// How deep an expression may be nested; chains such as `a + b + c` and `a.b.c` count as well.
pub const MAX_HEIGHT: u16 = 150;

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The byte at which it was noticed, from 0; the length of the text if something is missing at its end.
    pub position: usize,
    /// What was expected or what is wrong there, as a fragment: `expected an expression`.
    pub message: String,
    /// What to write instead, where there is something.
    pub hint: Option<String>,
    /// Line and column, both from 1, of a mistake in JavaScript: what people are told in place of the position.
    pub in_script: Option<(usize, usize)>,
}

impl ParseError {
    /// Makes one.
    pub fn new(position: usize, message: impl Into<String>) -> ParseError {
        ParseError {
            position,
            message: message.into(),
            hint: None,
            in_script: None,
        }
    }

    /// Says what to write instead.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> ParseError {
        ParseError {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Returns the message with its place, and the next step, as one text, for places that have room for one line only.
    #[must_use]
    pub fn one_line(&self) -> String {
        let diagnostic = self.clone().diagnostic();
        diagnostic.map(|_| self.to_string()).one_line()
    }

    /// Returns the message without its place, and the next step.
    pub(crate) fn diagnostic(self) -> Diagnostic {
        Diagnostic {
            message: self.message,
            hint: self.hint,
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.in_script {
            Some((line, column)) => {
                write!(
                    f,
                    "{} (JavaScript, line {line}, column {column})",
                    self.message
                )
            }
            None => write!(f, "{} at position {}", self.message, self.position),
        }
    }
}

impl std::error::Error for ParseError {}

impl ParseError {
    /// Of two languages in which a text has a mistake, the one that understood more of it was meant.
    #[must_use]
    pub fn or_later(self, other: ParseError) -> ParseError {
        match other.position > self.position {
            true => other,
            false => self,
        }
    }
}

/// An assignment that was read: `place = value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// What gets the value.
    pub place: Expr,
    /// The value; for `x += 1` it is `x + 1`.
    pub value: Expr,
}

/// Reads an expression, taking only names as types that are always types.
///
/// # Errors
/// The text is no expression; the error says where and what was expected.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    parse_with(text, &|_| false)
}

/// Reads an expression; `is_type` tells whether a name, with its scopes and template arguments, is a type here.
///
/// # Errors
/// The text is no expression; the error says where and what was expected.
pub fn parse_with(text: &str, is_type: &dyn Fn(&str) -> bool) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(text, is_type)?;
    let expr = parser.expression()?;
    parser.end()?;
    Ok(expr)
}

/// Reads `place = value`, or `place += value` and its like.
///
/// # Errors
/// The text is no assignment; the error says where and what was expected.
pub fn parse_assignment(text: &str) -> Result<Assignment, ParseError> {
    parse_assignment_with(text, &|_| false)
}

/// Reads an assignment as [`parse_assignment`] does; `is_type` is what it is for [`parse_with`].
///
/// # Errors
/// The text is no assignment; the error says where and what was expected.
pub fn parse_assignment_with(
    text: &str,
    is_type: &dyn Fn(&str) -> bool,
) -> Result<Assignment, ParseError> {
    let mut parser = Parser::new(text, is_type)?;
    let place = parser.expression()?;
    let Some(operator) = parser.assignment_operator() else {
        return Err(parser.expected("\"=\" and a value"));
    };
    let value = parser.expression()?;
    parser.end()?;
    let value = match operator {
        None => value,
        Some(op) => {
            let at = Span {
                start: place.at.start,
                end: value.at.end,
            };
            let both = ExprKind::Binary(op, Box::new(place.clone()), Box::new(value));
            parser.node(both, at)?
        }
    };
    Ok(Assignment { place, value })
}

impl Parser<'_> {
    /// `=` as `None`, `+=` and the like as the operator; nothing if neither stands here.
    fn assignment_operator(&mut self) -> Option<Option<BinaryOp>> {
        const COMPOUND: [(&str, BinaryOp); 10] = [
            ("+=", BinaryOp::Add),
            ("-=", BinaryOp::Subtract),
            ("*=", BinaryOp::Multiply),
            ("/=", BinaryOp::Divide),
            ("%=", BinaryOp::Remainder),
            ("&=", BinaryOp::BitAnd),
            ("|=", BinaryOp::BitOr),
            ("^=", BinaryOp::BitXor),
            ("<<=", BinaryOp::ShiftLeft),
            (">>=", BinaryOp::ShiftRight),
        ];
        let compound = COMPOUND.iter().find(|(symbol, _)| self.eat(symbol));
        match compound {
            Some((_, op)) => Some(Some(*op)),
            None => self.eat("=").then_some(None),
        }
    }
}
