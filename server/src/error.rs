//! Errors of the folder, the socket, the configuration and the connection.

use std::io;
use std::path::PathBuf;

use crate::protocol::Failure;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors around the verbs. Messages do not begin with a capital; [`Error::hint`] is the next step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder of the socket cannot be trusted.
    #[error("the folder {} {reason}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What the user can do.
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
        /// The action that failed: a verb and its object.
        action: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The daemon did not start to serve.
    #[error("the daemon did not start: {reason}")]
    NotServing {
        /// The known reason.
        reason: String,
        /// The daemon's log.
        log: PathBuf,
    },
    /// The daemon is of another version.
    #[error("the running daemon is Hindsight {daemon}, this is {ours}")]
    Version {
        /// The daemon's version.
        daemon: String,
        /// The client's version.
        ours: String,
        /// The daemon's process id.
        pid: u32,
    },
    /// The daemon sent something that is not an answer.
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
    /// Returns the next step, if there is one.
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

    /// Makes the error of a wrong configuration file.
    pub(crate) fn toml(path: &std::path::Path, text: &str, error: &toml::de::Error) -> Error {
        let before = error.span().map_or("", |span| &text[..span.start]);
        Error::Config {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            message: error.message().trim().replace('\n', ", "),
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
