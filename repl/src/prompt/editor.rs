//! The line editor: rustyline with completion, hints, lines that go on until the statement ends, and kept history.

use std::borrow::Cow;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Helper};

use super::command;
use super::complete::Words;
use super::lines::{Input, Lines};
use crate::error::Error;
use crate::format::Format;
use crate::render::{Colour, Paint, escaped};
use crate::statement;

const PROMPT: &str = "hindsight> ";
/// The file of the history.
const FILE: &str = "history";
/// Shown where a line was begun in the middle of a statement.
const GOES_ON: &str = "  (end with ; or an empty line)";

/// A prompt that remembers.
pub struct Prompt(Lines<Assistant>);

impl Prompt {
    /// Opens the prompt on the terminal.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub fn open(words: Words, colour: Colour) -> Result<Prompt, Error> {
        let builder = Config::builder()
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true);
        let assistant = Assistant {
            words,
            colour,
            hinter: HistoryHinter::new(),
        };
        Lines::open(builder, FILE, assistant).map(Prompt)
    }

    /// Waits for a line, or for several that make one statement.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn read(&mut self) -> Result<Input, Error> {
        self.0.read(PROMPT)
    }
}

/// What rustyline asks while a line is typed.
struct Assistant {
    words: Words,
    colour: Colour,
    hinter: HistoryHinter,
}

impl Helper for Assistant {}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let offer = self.words.complete(line, cursor, &Format::NAMES);
        let pairs = offer.words.into_iter().map(|word| Pair {
            display: escaped(&word).into_owned(),
            replacement: word,
        });
        Ok((offer.start, pairs.collect()))
    }
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, cursor: usize, context: &Context<'_>) -> Option<String> {
        if self.colour == Colour::Off {
            // A hint that cannot be dimmed looks as if it had been typed.
            return None;
        }
        if cursor == line.len() && line.ends_with('\n') {
            return Some(GOES_ON.to_owned());
        }
        self.hinter.hint(line, cursor, context)
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

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        Ok(if is_complete(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

/// Says whether Enter runs `text`: a command, a statement that ends with `;`, or one followed by an empty line.
fn is_complete(text: &str) -> bool {
    if command::stands_alone(text) || (!text.contains('\n') && command::begins_wrong(text)) {
        return true;
    }
    let split = statement::split(text);
    let last_line = text.rsplit('\n').next().unwrap_or_default();
    let empty_line = text.contains('\n') && last_line.trim().is_empty();
    !split.open && (split.rest.is_none() || empty_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_runs_commands_and_whole_statements_only() {
        for whole in [
            "",
            "\\d",
            "quit",
            "help;",
            "select 1;",
            "select 1; -- done",
            "select 1\n",
            "select\n1\n  ",
            "helo",
            ".tables",
        ] {
            assert!(is_complete(whole), "{whole:?}");
        }
        for begun in [
            "select 1",
            "select ';",
            "select 1\nfrom t",
            "select 'a\n",
            "select 1; select 2",
            "-- calls\nselect 1",
            "(select 1)",
            "selec 1\nfrom t",
        ] {
            assert!(!is_complete(begun), "{begun:?}");
        }
    }
}
