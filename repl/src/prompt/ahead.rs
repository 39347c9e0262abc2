//! Lines that were typed while a command ran. The terminal holds them, each one whole, as long as no line editor reads: an
//! editor would take all of them at once and hand out the first.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

/// No terminal holds a longer line.
const MAX_LINE: usize = 4096;

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// A line.
    Line(String),
    /// The beginning of one, and Ctrl-D.
    Part(String),
    /// Ctrl-D alone.
    End,
}

/// Takes the next line that was typed; `None` if there is none.
pub fn take() -> Option<Typed> {
    let mut terminal = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open("/dev/stdin")
        .ok()?;
    let mut bytes = [0; MAX_LINE];
    let len = terminal.read(&mut bytes).ok()?;
    Some(typed(&bytes[..len]))
}

fn typed(bytes: &[u8]) -> Typed {
    match bytes.strip_suffix(b"\n") {
        Some(line) => Typed::Line(String::from_utf8_lossy(line).into_owned()),
        None if bytes.is_empty() => Typed::End,
        None => Typed::Part(String::from_utf8_lossy(bytes).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_hands_out_is_a_line_a_part_or_an_end() {
        assert_eq!(typed(b"goto 5\n"), Typed::Line("goto 5".into()));
        assert_eq!(typed(b"\n"), Typed::Line(String::new()));
        assert_eq!(typed(b"got"), Typed::Part("got".into()));
        assert_eq!(typed(b""), Typed::End);
    }
}
