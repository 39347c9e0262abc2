//! Lines from `--cmd`, a file or a pipe. A line that fails is reported with its place and exit code; the following
//! lines still run.

use std::io;

use super::{Flow, Hangup, Session};
use crate::error::Error;
use crate::exit;
use crate::report::answer;

/// The source of lines.
#[derive(Clone, Debug)]
pub enum ScriptInput {
    /// The options `--cmd`.
    Options,
    /// A file, as the user names it.
    File(String),
    /// Standard input.
    Stdin,
}

impl ScriptInput {
    fn place(&self, number: usize) -> String {
        match self {
            ScriptInput::Options => format!("--cmd {number}"),
            ScriptInput::File(name) => format!("{name}:{number}"),
            ScriptInput::Stdin => format!("stdin:{number}"),
        }
    }
}

impl Session {
    /// Runs lines up to the last, or until Ctrl-C. Returns the exit code of the last line that failed.
    ///
    /// # Errors
    /// When the lines cannot be read, or the reader of the output has gone.
    pub fn lines(
        &mut self,
        source: &ScriptInput,
        lines: impl Iterator<Item = io::Result<String>>,
    ) -> Result<u8, Error> {
        let hangup = self.present.is_some().then(Hangup::watch).transpose()?;
        self.tell_of_end(hangup.as_ref());
        let mut code = exit::DONE;
        for (number, line) in (1..).zip(lines) {
            let line = line.map_err(|source| Error::io("read the lines", source))?;
            let ran = self.run(&line);
            self.tell_of_end(hangup.as_ref());
            let found = match ran {
                Ok((Flow::Quit, _)) => break,
                Ok((Flow::GoOn, found)) => found,
                Err(error @ Error::ReaderGone) => return Err(error),
                Err(error) => {
                    answer(&error, self.terminal());
                    error.exit_code()
                }
            };
            if found != exit::DONE {
                let place = source.place(number);
                if !self.json {
                    eprintln!("  at {place}: {} (exit code {found})", line.trim());
                }
                code = found;
            }
            let interrupt = exit::from_signal(libc::SIGINT);
            if self.link.take_interrupted() || found == interrupt {
                return Ok(interrupt);
            }
        }
        if let Some(error) = self.unended() {
            answer(&error, self.terminal());
            code = error.exit_code();
        }
        Ok(code)
    }

    /// Tells which session ends with these lines, should they be terminated.
    fn tell_of_end(&self, hangup: Option<&Hangup>) {
        if let Some(hangup) = hangup {
            hangup.ends(self.ends_with_prompt());
        }
    }
}
