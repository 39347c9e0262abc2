//! Where text goes: stdout, or the user's pager when someone sits there and the text is longer than the screen.
//! A reader that went away (`| head`, `q` in the pager) is not an error: whoever writes just stops.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Returns stdout, buffered.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// Turns "the reader went away" into success.
///
/// # Errors
/// Every other error.
pub fn unless_gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Shows `text` on the terminal, through `$PAGER` when it is longer than `rows` lines.
///
/// # Errors
/// When stdout cannot be written to.
pub fn show(text: &[u8], rows: usize) -> io::Result<()> {
    // One row stays for the prompt.
    let long = text.iter().filter(|byte| **byte == b'\n').count() >= rows;
    if long && let Some((child, stdin)) = start_pager() {
        return feed(child, stdin, text);
    }
    let mut out = stdout();
    unless_gone(out.write_all(text).and_then(|()| out.flush()))
}

/// Starts `$PAGER`, or `less` when it is not set. An empty `$PAGER` or `cat` means none.
fn start_pager() -> Option<(Child, ChildStdin)> {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let pager = pager.trim();
    if pager.is_empty() || pager == "cat" {
        return None;
    }
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Quit if one screen, keep colours, do not fold lines, leave the text on the screen: what git asks for too.
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
    let written = unless_gone(stdin.write_all(text));
    drop(stdin);
    child.wait()?;
    written
}
