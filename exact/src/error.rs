//! What can go wrong with recording or running again.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("cannot {what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
    #[error("the program's memory has no room for the code that replaces its own")]
    NoRoom,
    #[error("the instruction at {pc:#x} cannot be recorded")]
    Unsupported { pc: u64 },
    #[error("the system call by int 0x80 or sysenter at {pc:#x} cannot be recorded")]
    OldCall { pc: u64 },
    #[error("the recording is cut off or damaged: {0}")]
    Damaged(String),
    #[error("the log of instructions has version {found}, and this program knows version {known}")]
    Version { found: u8, known: u8 },
    #[error("at instruction {at}, the program does not do what was recorded: {what}")]
    Diverged { at: u64, what: String },
    #[error(
        "{length} bytes cannot be watched at once: at most 32, and 4 aligned pieces of 1, 2, 4 or 8"
    )]
    TooLong { length: u64 },
    #[error("the program ended before anything was to be recorded")]
    Nothing {
        code: Option<i32>,
        signal: Option<i32>,
    },
    #[error("the recording ends at instruction {end}")]
    AfterEnd { end: u64 },
    #[error("interrupted")]
    Interrupted,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says what failed.
pub(crate) trait Context<T> {
    fn context(self, what: &'static str) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, what: &'static str) -> Result<T> {
        self.map_err(|source| Error::System { what, source })
    }
}
