//! The line editor's help while the user types: completion, hints, continuation lines.

use std::borrow::Cow;

use rustyline::Context;
use rustyline::Helper;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};

use crate::render::{Colour, Paint, escaped};

/// The hint on a new line within a statement.
const GOES_ON: &str = "  (end with ; or an empty line)";

/// A language of a prompt.
pub trait Language {
    /// Statements may have several lines.
    const HAS_STATEMENTS: bool;

    /// Returns the start of the word before the cursor, and its completions.
    fn offers(&self, line: &str, cursor: usize) -> (usize, Vec<String>);

    /// Returns whether Enter runs `text`.
    fn is_whole(text: &str) -> bool;
}

/// The callbacks of rustyline.
pub struct Assistant<L> {
    language: L,
    colour: Colour,
    hinter: HistoryHinter,
}

impl<L> Assistant<L> {
    /// Makes the assistant for a language.
    pub fn new(language: L, colour: Colour) -> Assistant<L> {
        Assistant {
            language,
            colour,
            hinter: HistoryHinter::new(),
        }
    }
}

impl<L: Language> Helper for Assistant<L> {}

impl<L: Language> Completer for Assistant<L> {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.language.offers(line, cursor);
        let pairs = words.into_iter().map(|word| Pair {
            display: escaped(&word).into_owned(),
            replacement: word,
        });
        Ok((start, pairs.collect()))
    }
}

impl<L: Language> Hinter for Assistant<L> {
    type Hint = String;

    fn hint(&self, line: &str, cursor: usize, context: &Context<'_>) -> Option<String> {
        if self.colour == Colour::Off {
            // A hint that cannot be dimmed looks like typed text.
            return None;
        }
        if L::HAS_STATEMENTS && cursor == line.len() && line.ends_with('\n') {
            return Some(GOES_ON.to_owned());
        }
        self.hinter.hint(line, cursor, context)
    }
}

impl<L: Language> Highlighter for Assistant<L> {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(self.colour.paint(Paint::Prompt, prompt).to_string())
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(self.colour.paint(Paint::Dim, hint).to_string())
    }
}

impl<L: Language> Validator for Assistant<L> {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        Ok(match L::is_whole(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}
