//! The destination of text: stdout, or the user's pager on a terminal if the text is longer than the screen and nothing was
//! typed ahead. If the reader has gone (`| head`), the command ends silently without a failure.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, StdoutLock, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::io::ioctl_fionread;

use crate::error::Error;

/// Returns stdout, buffered.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// Converts an error of writing to stdout. One caused by a reader that has gone is not reported.
pub fn to_stdout(source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::BrokenPipe => Error::ReaderGone,
        _ => Error::io("write to stdout", source),
    }
}

/// Writes a line to stdout.
///
/// # Errors
/// When stdout cannot be written to, or its reader has gone.
pub fn line(text: impl Display) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    written.map_err(to_stdout)
}

/// Says on stdout what a command has done. It does the rest of what was asked even if that cannot be said; the first error
/// is kept until then.
#[derive(Debug, Default)]
pub struct Told {
    error: Option<Error>,
}

impl Told {
    /// Writes a line, unless an earlier one could not be written.
    pub fn line(&mut self, text: impl Display) {
        if self.error.is_none() {
            self.error = line(text).err();
        }
    }

    /// Returns the exit code `code` of what was done.
    ///
    /// # Errors
    /// When a line could not be written, except to a reader that has gone.
    pub fn end(self, code: u8) -> Result<u8, Error> {
        match self.error {
            None | Some(Error::ReaderGone) => Ok(code),
            Some(error) => Err(error),
        }
    }
}

/// A writer that remembers when its reader has gone, even if its users ignore the error.
pub struct Watched<W> {
    out: W,
    gone: bool,
}

impl Watched<BufWriter<Stdout>> {
    /// Watches stdout, unlocked: another thread may write to it.
    pub fn stdout() -> Self {
        Watched {
            out: BufWriter::with_capacity(64 << 10, io::stdout()),
            gone: false,
        }
    }
}

impl<W> Watched<W> {
    /// Returns whether the reader has gone.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        self.gone |= matches!(&result, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
        result
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.note(flushed)
    }
}

/// Shows `text` on the terminal, through `$PAGER` if it is longer than `rows` lines.
///
/// # Errors
/// When stdout cannot be written to.
pub fn show(text: &[u8], rows: usize) -> io::Result<()> {
    // One row is for the prompt.
    let long = text.iter().filter(|byte| **byte == b'\n').count() >= rows;
    if long
        && !is_typed_ahead()
        && let Some((child, stdin)) = start_pager()
    {
        return feed(child, stdin, text);
    }
    let mut out = stdout();
    out.write_all(text).and_then(|()| out.flush())
}

/// Returns whether the next lines are there already: a pager would take them for its own keys.
fn is_typed_ahead() -> bool {
    let stdin = io::stdin();
    stdin.is_terminal() && ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0)
}

/// Starts `$PAGER`, or `less` if it is not set. There is no pager if `$PAGER` is empty or `cat`, or if the terminal is
/// one on which pagers cannot draw.
fn start_pager() -> Option<(Child, ChildStdin)> {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let pager = pager.trim();
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if pager.is_empty() || pager == "cat" || dumb {
        return None;
    }
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Quit if one screen, keep colours, do not fold lines, leave the text on the screen: the settings of git.
        command.env("LESS", "FRSX");
    }
    let mut child = command
        .spawn()
        .inspect_err(|error| tracing::debug!(%error, pager, "no pager"))
        .ok()?;
    let stdin = child.stdin.take().expect("stdin was asked to be a pipe");
    Some((child, stdin))
}

fn feed(mut child: Child, mut stdin: ChildStdin, text: &[u8]) -> io::Result<()> {
    let written = stdin.write_all(text);
    drop(stdin);
    child.wait()?;
    match written {
        // The user left the pager early.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_went_away_is_remembered() {
        let mut out = Watched {
            out: Gone,
            gone: false,
        };
        assert!(!out.is_gone());
        assert!(out.write_all(b"x").is_err());
        assert!(out.is_gone());
        assert!(matches!(
            to_stdout(io::ErrorKind::BrokenPipe.into()),
            Error::ReaderGone
        ));
        assert!(matches!(
            to_stdout(io::ErrorKind::StorageFull.into()),
            Error::Io { .. }
        ));
    }

    #[test]
    fn what_was_done_counts_even_if_nobody_reads_about_it() {
        let after = |kind: io::ErrorKind| {
            let told = Told {
                error: Some(to_stdout(kind.into())),
            };
            told.end(1)
        };
        assert!(matches!(after(io::ErrorKind::BrokenPipe), Ok(1)));
        let full = after(io::ErrorKind::StorageFull);
        assert!(matches!(full, Err(Error::Io { .. })));
        assert!(matches!(Told::default().end(0), Ok(0)));
    }
}
