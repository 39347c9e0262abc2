//! Conditions and log messages, parsed once, where their text comes in.
//!
//! The text alone decides the language. A text that begins with `js:` is JavaScript; any other that our own language can parse is an
//! expression of ours, which is compiled into the program where that is possible; what is left is JavaScript.

use std::cell::RefCell;

use expr::{Expression, HIT_COUNT, ParseError, Part, Template};

use super::script::{Scripts, is_prefixed};

thread_local! {
    // Making an engine takes longer than anything that is checked with it.
    static CHECKING: RefCell<Scripts> = RefCell::default();
}

/// A condition in either language.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// In our own.
    Own(Expression),
    /// In JavaScript, which compiles; each session's engine compiles it for itself.
    JavaScript(String),
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// It is of neither language: where the mistake is, and what is wrong.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let script = || {
            let compiled = CHECKING.with_borrow_mut(|scripts| scripts.compile(text));
            compiled.map(|_| Self::JavaScript(text.to_owned()))
        };
        if is_prefixed(text) {
            return script();
        }
        Expression::parse(text).map(Self::Own).or_else(|ours| {
            if expr::parse_assignment(text).is_ok() {
                let error = ParseError::new(ours.position, "a condition changes nothing");
                return Err(error.with_hint("compare with =="));
            }
            script().map_err(|theirs| ours.or_later(theirs))
        })
    }

    /// Returns the text as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        match self {
            Self::Own(expression) => expression.text(),
            Self::JavaScript(source) => source,
        }
    }

    /// Tells whether it uses the number of threads that have come to its probe.
    pub(crate) fn uses_hit_count(&self) -> bool {
        uses_hit_count(self.source())
    }
}

/// A log message: text with values in braces, of which some may be scripts.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    source: String,
    template: Template,
}

impl Message {
    /// Parses a message.
    ///
    /// # Errors
    /// Something between its braces is of neither language: where the mistake is, and what is wrong.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self {
            source: text.to_owned(),
            template: Template::parse_among(text, &Checked)?,
        })
    }

    /// Returns the text as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn template(&self) -> &Template {
        &self.template
    }

    /// The scripts between its braces, in their order.
    pub(crate) fn scripts(&self) -> impl Iterator<Item = &str> {
        self.template.parts.iter().filter_map(|part| match part {
            Part::Script { source } => Some(source.as_str()),
            Part::Text(_) | Part::Value { .. } => None,
        })
    }

    pub(crate) fn uses_hit_count(&self) -> bool {
        uses_hit_count(&self.source)
    }
}

/// Tells scripts in messages from our own expressions.
struct Checked;

impl expr::Scripts for Checked {
    fn begins(&self, text: &str) -> bool {
        is_prefixed(text)
    }

    fn read(&self, text: &str) -> Result<(), ParseError> {
        let compiled = CHECKING.with_borrow_mut(|scripts| scripts.compile_text(text));
        compiled.map(drop)
    }
}

fn uses_hit_count(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_word(c)).any(|word| word == HIT_COUNT)
}
