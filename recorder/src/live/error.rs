//! Errors of live control.

use std::{io, time::Duration};

use debuginfo::{Diagnostic, LineError};

use crate::live::model::{ProbeId, Tid};

/// Each message is a complete sentence. [`LiveError::hint`] gives the next step if there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The program has ended, or was detached.
    #[error("the program has ended")]
    Ended,
    /// The thread is running.
    #[error("thread {0} is running")]
    Running(Tid),
    /// No thread has that number.
    #[error("there is no thread {0}")]
    NoThread(Tid),
    /// No probe has that number.
    #[error("there is no breakpoint, logpoint or watchpoint {0}")]
    NoProbe(ProbeId),
    /// No displayed expression has that number.
    #[error("there is no display {0}")]
    NoDisplay(u32),
    /// A line has no code.
    #[error(transparent)]
    Line(#[from] LineError),
    /// The code at an address cannot be displaced.
    #[error("the thread cannot be stopped at {address:#x}: {reason}")]
    CannotStop {
        /// The requested address.
        address: u64,
        /// Why.
        reason: String,
        /// The nearest address at which a thread can be stopped.
        nearest: u64,
    },
    /// A condition or template has a mistake.
    #[error("{what}")]
    Expression {
        /// Byte, from 0.
        position: usize,
        /// What is wrong.
        what: Diagnostic,
    },
    /// An expression is valid, but has no value here.
    #[error("{0}")]
    Evaluate(Diagnostic),
    /// All debug registers are in use.
    #[error("there are four watchpoints already, and the processor has no more")]
    NoWatchpointLeft,
    /// The processor cannot watch this range.
    #[error(
        "cannot watch {len} bytes at {address:#x}: the processor watches 1, 2, 4 or 8 bytes at a multiple of that"
    )]
    Unwatchable {
        /// The first byte.
        address: u64,
        /// Length in bytes.
        len: u64,
    },
    /// The memory is not mapped.
    #[error("there is no memory at {address:#x}")]
    Memory {
        /// The first byte of the request.
        address: u64,
        /// Length in bytes.
        len: usize,
    },
    /// A called function did not return.
    #[error("{0}")]
    Call(Diagnostic),
    /// A call was abandoned at the user's request.
    #[error(
        "interrupted: the call was abandoned after {} ms, {stood}; the thread is where it was before, what the function has changed in memory stays",
        .after.as_millis()
    )]
    Interrupted {
        /// How long it had run.
        after: Duration,
        /// Where the function stood: "in FUNCTION at FILE:LINE (PC)".
        stood: String,
    },
    /// The threads did not stop.
    #[error("the program does not stop: a thread is blocked in the kernel")]
    NotStopping,
    /// Our code panicked; the program and the session continue.
    #[error("internal error: {0}")]
    Mistake(String),
    /// There is nothing to return to.
    #[error("{0}")]
    Motion(Diagnostic),
    /// The recording is not closed yet.
    #[error("the recording is still being closed")]
    Closing,
    /// The recording could not be closed.
    #[error("{0}")]
    NotClosed(String),
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// A verb and its object.
        action: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A script that the session's engine rejects.
impl From<expr::ParseError> for LiveError {
    fn from(error: expr::ParseError) -> Self {
        Self::Expression {
            position: error.position,
            what: Diagnostic {
                message: error.to_string(),
                hint: error.hint,
            },
        }
    }
}

impl LiveError {
    /// Returns the next step, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Ended => "start it again with \"restart\"",
            Self::Running(_) => "stop it with \"pause\"",
            Self::NoThread(_) => "\"threads\" lists them",
            Self::NoProbe(_) => "\"break list\" lists them",
            Self::NoDisplay(_) => "\"display\" lists them",
            Self::Line(error) => error.hint()?,
            Self::CannotStop { nearest, .. } => {
                return Some(format!("the nearest place is {nearest:#x}"));
            }
            Self::Expression { what, .. }
            | Self::Evaluate(what)
            | Self::Call(what)
            | Self::Motion(what) => return what.hint.clone(),
            Self::NoWatchpointLeft => "remove one with \"watch remove\"",
            Self::Interrupted { .. } => {
                "a lock that the function held stays locked: if the program hangs, begin anew with \"restart\""
            }
            Self::NotStopping => "try again",
            Self::Closing => "ask again",
            Self::Mistake(_) => "please report it",
            Self::Unwatchable { .. }
            | Self::Memory { .. }
            | Self::NotClosed(_)
            | Self::System { .. } => return None,
        };
        Some(hint.to_owned())
    }

    /// Returns the message and the next step as one text, for places with room for one line only.
    #[must_use]
    pub fn one_line(&self) -> String {
        let message = self.to_string();
        let hint = self.hint();
        Diagnostic { message, hint }.one_line()
    }
}

/// The result of controlling a program.
pub type LiveResult<T> = std::result::Result<T, LiveError>;
