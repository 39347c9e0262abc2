//! What can go wrong around the verbs: the folder, the socket, the configuration, the conversation.

use std::io;
use std::path::PathBuf;

use crate::protocol::Failure;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Messages are sentences without a beginning capital; [`Error::hint`] is the next step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder of the socket is not one to trust.
    #[error("the folder {} {reason}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do.
        next: String,
    },
    /// The configuration file is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// A verb and its object.
        action: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The daemon did not begin to serve.
    #[error("the daemon did not start: {reason}")]
    NotServing {
        /// What is known.
        reason: String,
        /// Where it says more.
        log: PathBuf,
    },
    /// Another version serves.
    #[error("the running daemon is Hindsight {daemon}, this is {ours}")]
    Version {
        /// The daemon's.
        daemon: String,
        /// The client's.
        ours: String,
        /// The daemon's process id.
        pid: u32,
    },
    /// The daemon said what is no answer.
    #[error("the daemon's answer cannot be read: {reason}")]
    Answer {
        /// What is wrong.
        reason: String,
    },
    /// The verb failed.
    #[error(transparent)]
    Failed(#[from] Box<Failure>),
}

impl Error {
    /// Returns the next step, where there is one to name.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Folder { next, .. } => Some(next.clone()),
            Error::Config { .. } => Some("correct the file or remove the line".to_owned()),
            Error::Io { .. } => None,
            Error::NotServing { log, .. } => Some(format!("its log is {}", log.display())),
            Error::Version { pid, .. } => Some(format!(
                "end its sessions with the old program, or kill {pid}"
            )),
            Error::Answer { .. } => Some("is it of another version?".to_owned()),
            Error::Failed(failure) => failure.hint.clone(),
        }
    }

    /// Makes the error of a failed system call.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let action = action.into();
        move |source| Error::Io { action, source }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::Failed(Box::new(failure))
    }
}
