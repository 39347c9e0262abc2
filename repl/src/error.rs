//! Everything a command can fail with, as one sentence, the next step and the exit code.

use std::io;
use std::path::PathBuf;

use crate::exit;

/// Why a command failed. Read after `error: `; [`Error::help`] is read after `help: `.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{message}")]
    Usage {
        message: String,
        help: Option<String>,
    },
    #[error("there is no recording {}", path.display())]
    NoRecording {
        path: PathBuf,
        near: Option<PathBuf>,
    },
    #[error("{} is not a recording: it has no manifest", path.display())]
    NotARecording { path: PathBuf },
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried: a verb and its object.
        action: String,
        source: io::Error,
    },
}

impl Error {
    /// Returns a mistake in what the user wrote.
    pub fn usage(message: impl Into<String>, help: Option<String>) -> Error {
        Error::Usage {
            message: message.into(),
            help,
        }
    }

    /// Returns a refusal of the operating system; `action` is a verb and its object.
    pub fn io(action: impl Into<String>, source: io::Error) -> Error {
        Error::Io {
            action: action.into(),
            source,
        }
    }

    /// Returns the next step, where there is one to name.
    pub fn help(&self) -> Option<String> {
        match self {
            Error::Usage { help, .. } => help.clone(),
            Error::NoRecording {
                near: Some(near), ..
            } => Some(format!("did you mean {}?", near.display())),
            Error::NoRecording { near: None, .. } => {
                Some("make one with `hindsight record PROGRAM`, or name its folder".to_owned())
            }
            Error::NotARecording { .. } => {
                Some("name a folder made by `hindsight record`, like app.hindsight".to_owned())
            }
            Error::Io { .. } => None,
        }
    }

    /// Returns the code to exit with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage { .. } | Error::NoRecording { .. } | Error::NotARecording { .. } => {
                exit::USAGE
            }
            Error::Io { .. } => exit::FAILED,
        }
    }
}
