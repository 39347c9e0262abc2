//! An expression that is evaluated repeatedly: a condition, a part of a log message, or a displayed value.
//!
//! It is parsed once. If the frame decides which names are types, as in `(name) (x)`, it is parsed again in each frame.

use std::{borrow::Cow, cell::Cell, fmt};

use crate::ast::{BinaryOp, Expr, ExprKind, Literal, UnaryOp};
use crate::eval::{Context, is_type};
use crate::parse::{ParseError, parse_with};

/// An expression and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    /// The tree that is valid in every frame. `None` if it depends on the frame.
    parsed: Option<Expr>,
}

impl Expression {
    /// Parses a text, in which only names that are always types count as types.
    ///
    /// # Errors
    /// The text is not an expression. The error states where, and what was expected.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let depends = Cell::new(false);
        let parsed = parse_with(text, &|_| {
            depends.set(true);
            false
        })?;
        Ok(Self {
            text: text.to_owned(),
            parsed: (!depends.get()).then_some(parsed),
        })
    }

    /// Parses a text, in which any name may be a type. Each frame decides.
    ///
    /// # Errors
    /// As for [`Expression::parse`].
    pub fn parse_with_any_types(text: &str) -> Result<Self, ParseError> {
        Self::parse(text).or_else(|error| match parse_with(text, &|_| true) {
            Ok(_) => Ok(Self {
                text: text.to_owned(),
                parsed: None,
            }),
            Err(_) => Err(error),
        })
    }

    /// Returns the source text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the tree for a frame.
    ///
    /// # Errors
    /// The text cannot be parsed with the types that the frame knows.
    pub fn within(&self, context: &Context<'_>) -> Result<Cow<'_, Expr>, ParseError> {
        match &self.parsed {
            Some(parsed) => Ok(Cow::Borrowed(parsed)),
            None => parse_with(&self.text, &|name| is_type(name, context)).map(Cow::Owned),
        }
    }

    /// Returns the names of its variables, if its value depends on nothing but theirs: it has no memory, register or call in
    /// it, and means the same in every frame.
    #[must_use]
    pub fn operands(&self) -> Option<Vec<String>> {
        let parsed = self.parsed.as_ref()?;
        let mut names = Vec::new();
        is_of_operands(parsed, &mut names).then_some(names)
    }

    /// Returns whether the expression names a scope, which may be that of an outer frame.
    #[must_use]
    pub fn names_scopes(&self) -> bool {
        self.text.contains("::")
    }
}

/// Adds the names; returns whether all else are numbers and operators.
fn is_of_operands(expr: &Expr, names: &mut Vec<String>) -> bool {
    let is_plain = match &expr.kind {
        ExprKind::Name(name) => {
            if !names.contains(name) {
                names.push(name.clone());
            }
            true
        }
        ExprKind::Literal(literal) => !matches!(literal, Literal::Text(_)),
        ExprKind::Unary(operator, _) => !matches!(operator, UnaryOp::Deref | UnaryOp::AddressOf),
        // Repeated and selected values are in memory.
        ExprKind::Binary(operator, ..) => *operator != BinaryOp::Repeat && !operator.selects(),
        ExprKind::Conditional { .. } => true,
        _ => false,
    };
    let mut are_plain = is_plain;
    expr.kind
        .for_each_child(|child| are_plain = are_plain && is_of_operands(child, names));
    are_plain
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parsed {
            Some(parsed) => parsed.fmt(f),
            None => f.write_str(&self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Expression {
        Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn operands_are_all_that_a_value_depends_on() {
        let operands = |text: &str| parsed(text).operands();
        let names = |names: &[&str]| Some(names.iter().map(|n| (*n).to_owned()).collect());
        assert_eq!(operands("n % 3 == 1 && !(m > -n)"), names(&["n", "m"]));
        assert_eq!(operands("1 < 2"), names(&[]));
        for text in [
            "*p == 3",
            "&n > 4",
            "p->x == 1",
            "a[2] == n",
            "n@2 == m",
            "$rdi == 1",
            "f(n) == 2",
        ] {
            assert_eq!(operands(text), None, "{text}");
        }
        assert_eq!(operands("(int)n == 3"), None);
    }

    #[test]
    fn what_means_the_same_everywhere_is_parsed_once() {
        for text in ["i == 3", "p->x[2] + ns::y", "(order_t *)a"] {
            assert!(parsed(text).parsed.is_some(), "{text}");
        }
    }

    #[test]
    fn what_depends_on_types_is_parsed_in_each_frame() {
        assert!(parsed("(name) (x)").parsed.is_none());
        for text in ["(name) (x)", "(name) * x"] {
            let cast = Expression::parse_with_any_types(text);
            assert!(cast.is_ok_and(|cast| cast.parsed.is_none()), "{text}");
        }
    }

    #[test]
    fn scopes_are_seen() {
        assert!(parsed("main::step > 1").names_scopes());
        assert!(!parsed("step > 1").names_scopes());
    }
}
