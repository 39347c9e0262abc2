//! An expression that is evaluated repeatedly: a condition, a part of a log message, or a displayed value.
//!
//! It is parsed once. If the frame decides which names are types, as in `(name) (x)`, it is parsed again in each frame.

use std::{borrow::Cow, cell::Cell, fmt};

use crate::ast::Expr;
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

    /// Returns whether the expression names a scope, which may be that of an outer frame.
    #[must_use]
    pub fn names_scopes(&self) -> bool {
        self.text.contains("::")
    }
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
