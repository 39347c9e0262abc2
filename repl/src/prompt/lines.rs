//! Lines that are typed: rustyline, and what it remembers of those before.
//!
//! The editor lives as long as the prompt. What arrives at once, as from a script that types, is read at once and handed out line by
//! line; what is typed while something else runs waits in the terminal.

use std::path::PathBuf;

use recorder::InterruptAction;
use rustyline::config::Builder;
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};
use rustyline::{Cmd, Editor, Helper, KeyEvent};

use super::history;
use crate::error::Error;

/// What the user did at the prompt.
pub enum Input {
    Line(String),
    /// Ctrl-C: the line is dropped.
    Dropped,
    /// Ctrl-D.
    End,
}

/// The lines of one prompt.
pub struct Lines<H: Helper> {
    editor: Editor<H, FileHistory>,
    /// Where the history is kept, if it can be.
    file: Option<PathBuf>,
}

impl<H: Helper> Lines<H> {
    /// Opens the history called `name`.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub fn open(builder: Builder, name: &str, helper: H) -> Result<Lines<H>, Error> {
        let config = history::configured(builder)?;
        let (history, file) = history::read(name, &config);
        // rustyline takes SIGINT for as long as its editor lives. While a line is typed Ctrl-C is a key like others; while a
        // question is answered it belongs to the question.
        let kept = InterruptAction::now();
        let editor = Editor::with_history(config, history);
        kept.put_back();
        let mut editor = editor.map_err(history::terminal_error)?;
        editor.set_helper(Some(helper));
        // So the terminal hands out a Ctrl-D that was typed while no line was read (n_tty(4)).
        editor.bind_sequence(KeyEvent::ctrl('@'), Cmd::EndOfFile);
        Ok(Lines { editor, file })
    }

    /// Waits for a line and remembers it.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn read(&mut self, prompt: &str) -> Result<Input, Error> {
        match self.editor.readline(prompt) {
            Ok(line) => {
                self.remember(&line);
                Ok(Input::Line(line))
            }
            Err(ReadlineError::Interrupted) => Ok(Input::Dropped),
            Err(ReadlineError::Eof) => Ok(Input::End),
            Err(error) => Err(history::terminal_error(error)),
        }
    }

    /// Appends at once, so that nothing is lost to another prompt or a crash.
    fn remember(&mut self, line: &str) {
        let line = line.trim();
        let history = self.editor.history_mut();
        if line.is_empty() || !history.add(line).unwrap_or(false) {
            return;
        }
        if let Some(path) = &self.file
            && let Err(error) = history.append(path)
        {
            tracing::debug!(%error, path = %path.display(), "history not kept");
        }
    }
}
