//! An expression in our own language that is evaluated again and again: conditions, and what is displayed at stops.
//!
//! It is read once. Only where it depends on the frame which names are types, as in `(name) (x)`, it is read again in each.

use std::{borrow::Cow, cell::Cell};

use expr::{Context, Expr};

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    text: String,
    /// What it means in every frame; `None`: that depends on the frame.
    parsed: Option<Expr>,
}

impl Expression {
    /// Reads it.
    pub fn new(text: &str) -> Self {
        let depends = Cell::new(false);
        let parsed = expr::parse_with(text, &|_| {
            depends.set(true);
            false
        });
        Self {
            text: text.to_owned(),
            parsed: parsed.ok().filter(|_| !depends.get()),
        }
    }

    /// What it means in a frame.
    ///
    /// # Errors
    /// It cannot be read there.
    pub fn within(&self, context: &Context<'_>) -> Result<Cow<'_, Expr>, String> {
        if let Some(parsed) = &self.parsed {
            return Ok(Cow::Borrowed(parsed));
        }
        let is_type = |name: &str| expr::is_type(name, context);
        let parsed = expr::parse_with(&self.text, &is_type);
        parsed.map(Cow::Owned).map_err(|error| error.one_line())
    }

    /// Tells whether it names a scope, which may be that of a frame further out.
    pub fn names_scopes(&self) -> bool {
        self.text.contains("::")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_the_same_everywhere_is_read_once() {
        for text in ["i == 3", "p->x[2] + ns::y", "name == \"alpha\""] {
            assert!(Expression::new(text).parsed.is_some(), "{text}");
        }
    }

    #[test]
    fn what_depends_on_types_is_read_in_each_frame() {
        assert!(Expression::new("(name) (x)").parsed.is_none());
    }

    #[test]
    fn scopes_are_seen() {
        assert!(Expression::new("main::step > 1").names_scopes());
        assert!(!Expression::new("step > 1").names_scopes());
    }
}
