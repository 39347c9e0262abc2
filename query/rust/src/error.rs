//! The errors of the crate: the messages of the program, each with the next step.

use std::path::PathBuf;

use query::error::store_sentence;
use server::protocol::{Code, Failure};

/// The result of this crate's functions.
///
/// ```no_run
/// fn calls(path: &str) -> hindsight::Result<u64> {
///     Ok(hindsight::Recording::open(path)?.info()?.calls)
/// }
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no answer. A value that is not known is no error: see [`Certainty`](crate::Certainty).
///
/// ```
/// use hindsight::{Error, Recording};
///
/// let error = Recording::open("/no/such/recording").unwrap_err();
/// assert!(matches!(error, Error::NotARecording { .. }));
/// assert!(error.hint().is_some());
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path names no recording.
    #[error("{message}")]
    NotARecording {
        /// The path as given.
        path: PathBuf,
        /// What is wrong.
        message: String,
        /// The next step.
        hint: Option<String>,
    },
    /// None of the paths names a recording.
    #[error("{message}")]
    NoRecordings {
        /// What is wrong, with each path.
        message: String,
        /// The next step.
        hint: Option<String>,
    },
    /// A file of the recording cannot be read, or is of another release.
    #[error("{message}")]
    Unreadable {
        /// What is wrong, with the file.
        message: String,
        /// The next step.
        hint: Option<String>,
    },
    /// The query is wrong, or would change something.
    #[error("{message}")]
    Sql {
        /// What is wrong.
        message: String,
        /// Line and column of the first wrong character, both from 1, where that is known.
        position: Option<(usize, usize)>,
        /// The wrong line with a caret below the wrong characters; empty where that is not known.
        excerpt: String,
        /// The next step.
        hint: Option<String>,
    },
    /// The answer does not fit [`Options::memory_bytes`](crate::Options::memory_bytes), even with spilling.
    #[error("{message}")]
    Memory {
        /// Which part of the query requested how much.
        message: String,
        /// The next step.
        hint: Option<String>,
    },
    /// The recording has no such event, thread or frame.
    #[error("{message}")]
    NoMoment {
        /// What is wrong.
        message: String,
        /// The next step.
        hint: Option<String>,
    },
    /// An expression is malformed, or has no meaning at this moment.
    #[error("{message}")]
    Expression {
        /// What is wrong.
        message: String,
        /// The byte of the expression at which the mistake is, from 0, where that is known.
        position: Option<usize>,
        /// The next step.
        hint: Option<String>,
    },
    /// Computing the answer failed, for another reason.
    #[error("{message}")]
    Failed {
        /// The reason.
        message: String,
        /// The next step.
        hint: Option<String>,
    },
}

impl Error {
    /// Returns the next step, if there is one.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// let error = recording.sql("SELECT functoin FROM calls").unwrap_err();
    /// assert_eq!(error.hint(), Some("did you mean function?"));
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::NotARecording { hint, .. }
            | Self::NoRecordings { hint, .. }
            | Self::Unreadable { hint, .. }
            | Self::Sql { hint, .. }
            | Self::Memory { hint, .. }
            | Self::NoMoment { hint, .. }
            | Self::Expression { hint, .. }
            | Self::Failed { hint, .. } => hint.as_deref(),
        }
    }

    pub(crate) fn of_store(error: store::Error) -> Self {
        let message = store_sentence(&error);
        let hint = error.hint().map(str::to_owned);
        match error {
            store::Error::NotARecording { path, .. } => Self::NotARecording {
                path,
                message,
                hint,
            },
            _ => Self::Unreadable { message, hint },
        }
    }

    pub(crate) fn of_query(error: query::Error) -> Self {
        let message = error.sentence();
        let hint = error.hint();
        match error {
            query::Error::Store(error) => Self::of_store(error),
            query::Error::Part { .. } => Self::Unreadable { message, hint },
            query::Error::NoRuns => Self::NoRecordings { message, hint },
            query::Error::Sql(error) => Self::Sql {
                message,
                position: error.position,
                excerpt: error.excerpt,
                hint,
            },
            query::Error::ReadOnly { .. } => Self::Sql {
                message,
                position: None,
                excerpt: String::new(),
                hint,
            },
            query::Error::Memory { .. } => Self::Memory {
                message,
                hint: Some("give more with Options::memory_bytes, or ask for less".to_owned()),
            },
            _ => Self::Failed { message, hint },
        }
    }

    pub(crate) fn of_replay(error: replay::Error) -> Self {
        match error {
            replay::Error::Store(error) => Self::of_store(error),
            replay::Error::NoCore { .. } | replay::Error::EmptyFile { .. } => Self::Unreadable {
                message: error.to_string(),
                hint: error.hint(),
            },
            error => Self::of_failure(server::past::of_replay(&error)),
        }
    }

    pub(crate) fn of_failure(failure: Failure) -> Self {
        let Failure { message, hint, .. } = failure;
        match failure.code {
            Code::NoEvent | Code::NoThread | Code::NoFrame | Code::NotStopped => {
                Self::NoMoment { message, hint }
            }
            Code::EvalFailed => Self::Expression {
                message,
                position: failure.details.position,
                hint,
            },
            _ => Self::Failed { message, hint },
        }
    }

    pub(crate) fn of_server(error: server::Error) -> Self {
        match error {
            server::Error::Failed(failure) => Self::of_failure(*failure),
            error => Self::Failed {
                message: error.to_string(),
                hint: error.hint(),
            },
        }
    }
}
