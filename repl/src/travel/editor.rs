//! The line editor of the prompt through time: rustyline with completion, hints and a history of its own.

use std::borrow::Cow;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Helper};

use super::words::Words;
use crate::error::Error;
use crate::prompt::lines::{Input, Lines};
use crate::render::{Colour, Paint, escaped};

/// The file of the history, beside that of the SQL prompt.
const FILE: &str = "travel_history";

/// A prompt that remembers.
pub struct Editor(Lines<Assistant>);

impl Editor {
    /// Opens the prompt on the terminal.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub fn open(words: Words, colour: Colour) -> Result<Editor, Error> {
        let builder = Config::builder().completion_type(CompletionType::List);
        let assistant = Assistant {
            words,
            colour,
            hinter: HistoryHinter::new(),
        };
        Lines::open(builder, FILE, assistant).map(Editor)
    }

    /// Waits for a line.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn read(&mut self, prompt: &str) -> Result<Input, Error> {
        self.0.read(prompt)
    }
}

/// What rustyline asks while a line is typed.
struct Assistant {
    words: Words,
    colour: Colour,
    hinter: HistoryHinter,
}

impl Helper for Assistant {}
impl Validator for Assistant {}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.words.complete(line, cursor);
        let pairs = words.into_iter().map(|word| Pair {
            display: escaped(&word).into_owned(),
            replacement: word,
        });
        Ok((start, pairs.collect()))
    }
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, cursor: usize, context: &Context<'_>) -> Option<String> {
        match self.colour {
            // A hint that cannot be dimmed looks as if it had been typed.
            Colour::Off => None,
            _ => self.hinter.hint(line, cursor, context),
        }
    }
}

impl Highlighter for Assistant {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(self.colour.paint(Paint::Prompt, prompt).to_string())
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(self.colour.paint(Paint::Dim, hint).to_string())
    }
}
