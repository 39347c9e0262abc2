//! The line editor of the prompt through time: rustyline with completion, hints and a history of its own.

use std::borrow::Cow;
use std::path::PathBuf;
use std::rc::Rc;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::history::{FileHistory, History};
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Helper};

use super::words::Words;
use crate::error::Error;
use crate::prompt::ahead::Typed;
use crate::prompt::{ahead, history};
use crate::render::{Colour, Paint, escaped};

/// The file of the history, beside that of the SQL prompt.
const FILE: &str = "travel_history";

/// What the user did at the prompt.
pub enum Input {
    Line(String),
    /// Ctrl-C: the line is dropped.
    Dropped,
    /// Ctrl-D.
    End,
}

/// A prompt that remembers.
pub struct Editor {
    config: Config,
    words: Rc<Words>,
    colour: Colour,
    history: FileHistory,
    file: Option<PathBuf>,
}

impl Editor {
    /// Opens the prompt on the terminal.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub fn open(words: Words, colour: Colour) -> Result<Editor, Error> {
        let builder = Config::builder().completion_type(CompletionType::List);
        let config = history::configured(builder)?;
        let (past_lines, file) = history::read(FILE, &config);
        Ok(Editor {
            config,
            words: Rc::new(words),
            colour,
            history: past_lines,
            file,
        })
    }

    /// Waits for a line, unless one was typed meanwhile. An editor lives as long as a line is typed, since it takes Ctrl-C
    /// over meanwhile.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn read(&mut self, prompt: &str) -> Result<Input, Error> {
        let begun = match ahead::take() {
            None => String::new(),
            Some(Typed::Part(begun)) => begun,
            Some(Typed::Line(line)) => {
                println!("{}{line}", self.colour.paint(Paint::Prompt, prompt));
                self.remember(&line);
                return Ok(Input::Line(line));
            }
            Some(Typed::End) => return Ok(Input::End),
        };
        let history = std::mem::take(&mut self.history);
        let mut editor =
            rustyline::Editor::<Assistant, FileHistory>::with_history(self.config.clone(), history)
                .map_err(history::terminal_error)?;
        editor.set_helper(Some(Assistant {
            words: Rc::clone(&self.words),
            colour: self.colour,
            hinter: HistoryHinter::new(),
        }));
        let line = editor.readline_with_initial(prompt, (&begun, ""));
        self.history = std::mem::take(editor.history_mut());
        drop(editor);
        match line {
            Ok(line) => {
                self.remember(&line);
                Ok(Input::Line(line))
            }
            Err(ReadlineError::Interrupted) => Ok(Input::Dropped),
            Err(ReadlineError::Eof) => Ok(Input::End),
            Err(error) => Err(history::terminal_error(error)),
        }
    }

    fn remember(&mut self, line: &str) {
        let line = line.trim();
        if line.is_empty() || !self.history.add(line).unwrap_or(false) {
            return;
        }
        if let Some(path) = &self.file
            && let Err(error) = self.history.append(path)
        {
            tracing::debug!(%error, path = %path.display(), "history not kept");
        }
    }
}

/// What rustyline asks while a line is typed.
struct Assistant {
    words: Rc<Words>,
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
