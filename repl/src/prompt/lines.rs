//! Input lines and their history, through rustyline.
//!
//! The editor lives as long as the prompt. Input that arrives at once, as from a script that types, is read at once and
//! returned line by line. Input that is typed while something else runs waits in the terminal.

use std::path::PathBuf;

use recorder::SignalAction;
use rustyline::config::Builder;
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};
use rustyline::{Cmd, Editor, Helper, KeyEvent};

use super::history;
use crate::error::Error;

/// What the user did at the prompt.
pub enum Input {
    Line(String),
    /// Ctrl-C: the line is discarded.
    Dropped,
    /// Ctrl-D.
    End,
}

/// The lines of one prompt.
pub struct Lines<H: Helper> {
    editor: Editor<H, FileHistory>,
    /// The file of the history, if the history can be saved.
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
        // rustyline handles SIGINT as long as its editor lives. While the user types, Ctrl-C is an ordinary key; during
        // a query it must reach the query. So keep the previous handler.
        let kept = SignalAction::now(libc::SIGINT);
        let editor = Editor::with_history(config, history);
        kept.put_back();
        let mut editor = editor.map_err(history::terminal_error)?;
        editor.set_helper(Some(helper));
        // The terminal delivers a Ctrl-D that was typed outside a read as NUL (n_tty(4)).
        editor.bind_sequence(KeyEvent::ctrl('@'), Cmd::EndOfFile);
        Ok(Lines { editor, file })
    }

    /// Waits for a line and adds it to the history.
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

    /// Appends to the file at once, so that neither another prompt nor a crash loses the line.
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
