//! Errors while recording.

use std::{io, path::PathBuf};

use debuginfo::{Diagnostic, with_causes};

use crate::{live::LiveError, stop::StopError};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Most messages read after "cannot". [`Error::hint`] gives the next step if there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program could not be run at all.
    #[error("start {program}: {source}")]
    Start {
        /// The program, as given.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The program ended before it did anything.
    #[error("start {program}: it ended before its first instruction")]
    EndedAtOnce {
        /// Its executable.
        program: String,
    },
    /// A signal ended it before it was recorded.
    #[error("record {program}: signal {signal} ended it before its recording began")]
    EndedEarly {
        /// The program, as given.
        program: String,
        /// The signal's number.
        signal: i32,
    },
    /// The program is of a kind that cannot be recorded.
    #[error("record {path}: {reason}")]
    Unsupported {
        /// The executable.
        path: PathBuf,
        /// Why, and what to do.
        reason: Diagnostic,
    },
    /// A pattern is invalid.
    #[error("understand the pattern '{pattern}': {reason}")]
    Pattern {
        /// The pattern, as given.
        pattern: String,
        /// What is wrong.
        reason: Diagnostic,
    },
    /// An expression cannot be watched.
    #[error("watch '{expression}': {reason}")]
    Watch {
        /// The expression, as given.
        expression: String,
        /// Why not.
        reason: Diagnostic,
    },
    /// A probe cannot be set.
    #[error("set a probe at '{place}': {reason}")]
    Probe {
        /// As given.
        place: String,
        /// Why not.
        reason: Diagnostic,
    },
    /// The process does not exist, or no longer.
    #[error("attach to process {pid}: {reason}")]
    Attach {
        /// Process id.
        pid: i32,
        /// Why.
        reason: Diagnostic,
    },
    /// The agent could not be loaded into the program.
    #[error(transparent)]
    Agent(#[from] agent::Error),
    /// The program could not be stopped to be patched.
    #[error("stop the program for patching")]
    Stop(#[from] StopError),
    /// Its instructions could not be recorded, or could not be run again.
    #[error("record every instruction: {0}")]
    Exact(#[from] exact::Error),
    /// The program has ended before there was anything to record.
    #[error("record instructions: {}", reason.message)]
    NothingRecorded {
        /// How it ended, and what to do.
        reason: Diagnostic,
    },
    /// The recording could not be written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The program's files could not be read.
    #[error(transparent)]
    DebugInfo(#[from] debuginfo::Error),
    /// A live session could not be controlled.
    #[error(transparent)]
    Live(LiveError),
    /// A system call failed.
    #[error("{action}")]
    System {
        /// The attempted action, as a verb.
        action: String,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Makes the error of a failed system call.
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::System { action, source }
    }

    /// Returns the next step, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::EndedAtOnce { .. } => "run it by itself to see why",
            Self::Unsupported { reason, .. }
            | Self::Pattern { reason, .. }
            | Self::Watch { reason, .. }
            | Self::Probe { reason, .. }
            | Self::NothingRecorded { reason }
            | Self::Attach { reason, .. } => return reason.hint.clone(),
            Self::Agent(error) => return error.hint(),
            Self::Stop(error) => error.hint()?,
            Self::Store(error) => error.hint()?,
            Self::DebugInfo(error) => error.hint()?,
            Self::Live(error) => return error.hint(),
            Self::Start { .. } | Self::EndedEarly { .. } | Self::Exact(_) | Self::System { .. } => {
                return None;
            }
        };
        Some(hint.to_owned())
    }

    /// Returns the message, its causes and the next step as one text, for places with room for one line only.
    #[must_use]
    pub fn one_line(&self) -> String {
        self.diagnostic().one_line()
    }

    /// Returns the message with its causes, and the next step.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic {
            message: with_causes(self),
            hint: self.hint(),
        }
    }

    /// Returns whether the target could not be started or attached to (the CLI's exit code 4).
    pub fn is_about_the_target(&self) -> bool {
        matches!(
            self,
            Self::Start { .. }
                | Self::EndedAtOnce { .. }
                | Self::EndedEarly { .. }
                | Self::Unsupported { .. }
                | Self::Attach { .. }
                | Self::Stop(_)
                | Self::Agent(_)
        )
    }
}
