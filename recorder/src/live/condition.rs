//! Conditions and log messages, parsed once, when their text is received.
//!
//! The text alone decides the language. A text that begins with `js:` is JavaScript. Any other text that the expression
//! language can parse is an expression, compiled into the program if possible. The rest is JavaScript.

use std::cell::RefCell;

use expr::{Expression, HIT_COUNT, ParseError, Part, Template};

use super::script::{Scripts, is_prefixed};

thread_local! {
    // Creating an engine takes longer than any check with it.
    static CHECKING: RefCell<Scripts> = RefCell::default();
}

/// A condition in either language.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// In the expression language.
    Own(Expression),
    /// In JavaScript, known to compile. Each session's engine compiles it again.
    JavaScript(String),
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// If the text is valid in neither language: the position and the error.
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

    /// Returns whether the condition uses the number of threads that have reached its probe.
    pub(crate) fn uses_hit_count(&self) -> bool {
        uses_hit_count(self.source())
    }
}

/// A log message: text with values in braces, some of which may be scripts.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    source: String,
    template: Template,
}

impl Message {
    /// Parses a message.
    ///
    /// # Errors
    /// If the text in a pair of braces is valid in neither language: the position and the error.
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

    /// Returns its parts.
    #[must_use]
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Returns the scripts between its braces, in order.
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

/// Distinguishes scripts in messages from expressions.
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
