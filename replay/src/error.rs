//! The errors of examining a recorded moment, each with the next step.

use debuginfo::Diagnostic;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no answer. Messages are fragments; [`Error::hint`] is the next step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Nothing was recorded.
    #[error("the recording has no events")]
    Empty,
    /// There is no such event.
    #[error("there is no event {seq}")]
    NoEvent {
        /// The requested number.
        seq: u64,
        /// The last one.
        last: u64,
    },
    /// The order of events lacks a number, unlike in a whole recording.
    #[error("event {seq} is in no file of the recording")]
    Missing {
        /// Its number.
        seq: u64,
    },
    /// No event names such a thread.
    #[error("there is no thread {tid}")]
    NoThread {
        /// The requested thread.
        tid: u32,
        /// The existing threads.
        known: String,
    },
    /// The place is malformed, or does not exist.
    #[error("{0}")]
    Target(Diagnostic),
    /// The move has no destination.
    #[error("{0}")]
    NoMove(Diagnostic),
    /// The expression is malformed, or has no meaning here.
    #[error("{what}")]
    Expression {
        /// The fault.
        what: Diagnostic,
        /// The byte of the text at which the error is, from 0, if there is one.
        position: Option<usize>,
    },
    /// A core file cannot be read: that of a recording, or one to import.
    #[error("the core file {path} cannot be read: {why}", path = path.display())]
    NoCore {
        /// The file.
        path: std::path::PathBuf,
        /// The reason.
        why: String,
    },
    /// A file without any byte, where a recording or a core file is wanted.
    #[error("{path} is empty: it is neither a recording nor a core file", path = path.display())]
    EmptyFile {
        /// The file.
        path: std::path::PathBuf,
    },
    /// The file that is named as the program of a core file is no program.
    #[error("the program of the core file cannot be read: {why}")]
    NoProgram {
        /// The reason, which names the file.
        why: String,
    },
    /// The instructions of a recording cannot be run again.
    #[error("its instructions cannot be run again: {why}")]
    Instructions {
        /// The reason.
        why: String,
    },
    /// The search was interrupted before it had an answer.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub(crate) fn expression(what: impl Into<Diagnostic>) -> Self {
        Error::Expression {
            what: what.into(),
            position: None,
        }
    }

    /// Returns the next step, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Store(error) => error.hint().map(str::to_owned),
            Error::Empty => Some("record a program that does something".to_owned()),
            Error::NoEvent { last, .. } => Some(format!("events are 0 to {last}")),
            Error::Missing { .. } => Some("run \"hindsight check\"".to_owned()),
            Error::NoThread { known, .. } => Some(format!("threads: {known}")),
            Error::Target(what) | Error::NoMove(what) | Error::Expression { what, .. } => {
                what.hint.clone()
            }
            Error::NoCore { .. } => None,
            Error::EmptyFile { .. } => Some(
                "a core file stays empty if the disk is full or `ulimit -c` is too small: allow more, and run the program again"
                    .to_owned(),
            ),
            Error::NoProgram { .. } => Some(
                "--program FILE names the file of the program that crashed; without it, the one that the core file names is used"
                    .to_owned(),
            ),
            Error::Instructions { .. } => Some(
                "this needs the same kind of processor, and the right to trace processes. With these, something is missing in the recording that the kernel \
                 or another process wrote: docs/full.md, Limits. The events are still there"
                    .to_owned(),
            ),
            Error::Interrupted => Some("nothing has moved".to_owned()),
        }
    }

    /// Returns message and next step as one text, for places that have room for one line only.
    #[must_use]
    pub fn one_line(&self) -> String {
        let message = self.to_string();
        let hint = self.hint();
        Diagnostic { message, hint }.one_line()
    }
}
