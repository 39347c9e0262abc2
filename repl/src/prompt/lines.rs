//! Lines that are typed: rustyline, and what it remembers of those before.
//!
//! rustyline takes SIGINT over for as long as its editor lives, and a Ctrl-C while a question is answered belongs to
//! the question. So each line gets an editor of its own; the history is handed from one to the next.

use std::path::PathBuf;

use rustyline::config::Builder;
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};
use rustyline::{Config, Editor, Helper};

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
pub struct Lines {
    config: Config,
    history: FileHistory,
    /// Where the history is kept, if it can be.
    file: Option<PathBuf>,
}

impl Lines {
    /// Opens the history called `name`.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub fn open(builder: Builder, name: &str) -> Result<Lines, Error> {
        let config = history::configured(builder)?;
        let (history, file) = history::read(name, &config);
        Ok(Lines {
            config,
            history,
            file,
        })
    }

    /// Waits for a line, of which `begun` was typed already, and remembers it.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub fn read<H: Helper>(
        &mut self,
        helper: H,
        prompt: &str,
        begun: &str,
    ) -> Result<Input, Error> {
        let history = std::mem::take(&mut self.history);
        let mut editor = Editor::<H, FileHistory>::with_history(self.config.clone(), history)
            .map_err(history::terminal_error)?;
        editor.set_helper(Some(helper));
        let line = editor.readline_with_initial(prompt, (begun, ""));
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

    /// Appends at once, so that nothing is lost to another prompt or a crash.
    pub fn remember(&mut self, line: &str) {
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
