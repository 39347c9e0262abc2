//! What the line editor does with a line while it is typed: completion, hints, lines that go on.

use std::borrow::Cow;

use rustyline::Context;
use rustyline::Helper;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};

use crate::render::{Colour, Paint, escaped};

/// Shown where a line was begun in the middle of a statement.
const GOES_ON: &str = "  (end with ; or an empty line)";

/// What can be typed.
pub trait Language {
    /// It has statements of several lines.
    const HAS_STATEMENTS: bool;

    /// Returns where the word before the cursor begins, and what it may become.
    fn offers(&self, line: &str, cursor: usize) -> (usize, Vec<String>);

    /// Says whether Enter runs `text`.
    fn is_whole(text: &str) -> bool;
}

/// What rustyline asks while a line is typed.
pub struct Assistant<L> {
    language: L,
    colour: Colour,
    hinter: HistoryHinter,
}

impl<L> Assistant<L> {
    /// Assists with this language.
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
            // A hint that cannot be dimmed looks as if it had been typed.
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
