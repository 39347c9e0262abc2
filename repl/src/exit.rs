//! The exit codes of `hindsight`. Scripts rely on them, so a number never changes its meaning.

use recorder::Exit;

/// The command succeeded.
pub const DONE: u8 = 0;
/// The answer is "no" (`check` found damage, `compare` a difference), or the command failed while doing its work.
pub const FAILED: u8 = 1;
/// The command line, the SQL text or the name of a recording is wrong: nothing was done.
pub const USAGE: u8 = 2;
/// The recording is incomplete: it was not closed cleanly (`check`), or two cannot be compared (`compare`).
pub const INCOMPLETE: u8 = 3;
/// The program to record could not be started or attached (`record`, `start`, `attach`).
pub const NOT_STARTED: u8 = 4;

/// Returns the status a shell shows for a program ended by `signal`: 128 + its number.
pub fn from_signal(signal: i32) -> u8 {
    128u8.saturating_add(u8::try_from(signal).unwrap_or(127))
}

/// Returns the exit code for the end of a program: its own.
pub fn of_program(ended: Exit) -> u8 {
    match ended {
        Exit::Code(code) => (code & 0xff) as u8,
        Exit::Signal(signal) => from_signal(signal),
        Exit::Detached => DONE,
    }
}

/// The text that `--help` shows below the options.
pub const HELP: &str = "\
Exit codes:
  0  done
  1  the answer is \"damaged\" or \"different\", or the command failed
  2  wrong usage: command line, SQL or recording name
  3  check: the recording is incomplete (it was not closed cleanly)
     compare: the recordings cannot be compared
  4  record, start, attach: the program could not be started or attached
`record` otherwise exits with the recorded program's own status (128 + signal).";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_exits_as_in_a_shell() {
        assert_eq!(from_signal(9), 137);
        assert_eq!(from_signal(11), 139);
        assert_eq!(from_signal(1000), 255);
    }
}
