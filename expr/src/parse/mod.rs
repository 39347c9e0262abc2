//! Parses expressions.
//!
//! The language is that of C, C++ and Rust debugging, with C's precedences. It also accepts JavaScript's `===` and
//! strings in single quotes. The parser never recurses deeper than [`MAX_HEIGHT`], and never takes more than quadratic
//! time.
//!
//! The syntax alone leaves one ambiguity: `(a)-b` is a difference or a conversion of `-b` to the type `a`, and likewise
//! with `+`, `*`, `&` and `(`. A closure decides whether a name is a type. Without one, only names that are always
//! types count as types.

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

/// Longest expression, in bytes.
pub const MAX_LENGTH: usize = 8192;
/// Deepest nesting of an expression. Chains such as `a + b + c` and `a.b.c` count as well.
pub const MAX_HEIGHT: u16 = 150;

/// An error in a text, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The byte at which the error was found, from 0. The length of the text if something is missing at its end.
    pub position: usize,
    /// What was expected, or what is wrong there, as a fragment: `expected an expression`.
    pub message: String,
    /// What to write instead, if anything.
    pub hint: Option<String>,
    /// Line and column, both from 1, of an error in JavaScript. They are shown instead of the position.
    pub in_script: Option<(usize, usize)>,
}

impl ParseError {
    /// Makes an error without a hint.
    pub fn new(position: usize, message: impl Into<String>) -> ParseError {
        ParseError {
            position,
            message: message.into(),
            hint: None,
            in_script: None,
        }
    }

    /// Sets what to write instead.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> ParseError {
        ParseError {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Returns the message with its position, and the next step, as one text, for places that have room for one line
    /// only.
    #[must_use]
    pub fn one_line(&self) -> String {
        let diagnostic = self.clone().diagnostic();
        diagnostic.map(|_| self.to_string()).one_line()
    }

    /// Returns the message without its position, and the next step.
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
    /// Returns the later of the errors of two languages. The language that could parse more of the text was meant.
    #[must_use]
    pub fn or_later(self, other: ParseError) -> ParseError {
        match other.position > self.position {
            true => other,
            false => self,
        }
    }
}

/// A parsed assignment: `place = value`.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The target.
    pub place: Expr,
    /// The value. For `x += 1` it is `x + 1`.
    pub value: Expr,
}

/// Parses an expression. Only names that are always types count as types.
///
/// # Errors
/// The text is not an expression. The error states where, and what was expected.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    parse_with(text, &|_| false)
}

/// Parses an expression. `is_type` decides whether a name, with its scopes and template arguments, is a type here.
///
/// # Errors
/// The text is not an expression. The error states where, and what was expected.
pub fn parse_with(text: &str, is_type: &dyn Fn(&str) -> bool) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(text, is_type)?;
    let expr = parser.expression()?;
    parser.end()?;
    Ok(expr)
}

/// Parses `place = value`, or a compound assignment such as `place += value`.
///
/// # Errors
/// The text is not an assignment. The error states where, and what was expected.
pub fn parse_assignment(text: &str) -> Result<Assignment, ParseError> {
    parse_assignment_with(text, &|_| false)
}

/// Parses an assignment like [`parse_assignment`]. `is_type` is as for [`parse_with`].
///
/// # Errors
/// The text is not an assignment. The error states where, and what was expected.
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
    /// Consumes an assignment operator, if one is here. Returns `Some(None)` for `=`, and the operator for `+=` and the
    /// like.
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
