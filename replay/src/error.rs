//! Names everything that can go wrong when a recorded moment is asked for.

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no answer. Messages are fragments; what stands behind the last semicolon is the next step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Nothing was recorded.
    #[error("the recording has no events; record a program that does something")]
    Empty,
    /// There is no such event.
    #[error("there is no event {seq}; events are 0 to {last}")]
    NoEvent {
        /// The number asked for.
        seq: u64,
        /// The last one.
        last: u64,
    },
    /// A number is missing in the order of events, which a whole recording has not.
    #[error("event {seq} is in no file of the recording; run \"hindsight check\"")]
    Missing {
        /// Its number.
        seq: u64,
    },
    /// No event names such a thread.
    #[error("there is no thread {tid}; threads: {known}")]
    NoThread {
        /// The number asked for.
        tid: u32,
        /// Those there are.
        known: String,
    },
    /// A place to go to was not understood, or is not there.
    #[error("{0}")]
    Target(String),
    /// A move leads nowhere from here.
    #[error("{0}")]
    NoMove(String),
    /// An expression cannot be read, or means nothing.
    #[error("{message}")]
    Expression {
        /// What is wrong.
        message: String,
        /// The byte of the text, from 0, where the mistake is, if there is one such.
        position: Option<usize>,
    },
    /// Somebody asked for an end before there was an answer.
    #[error("interrupted; nothing has moved")]
    Interrupted,
}

impl Error {
    pub(crate) fn expression(message: impl Into<String>) -> Self {
        Error::Expression {
            message: message.into(),
            position: None,
        }
    }
}
