//! The errors of a query, each with its place in the question and the next step.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use datafusion::error::DataFusionError;
use debuginfo::with_causes;
use parquet::errors::ParquetError;

use crate::question::{hint_of, message_of};

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a query could not be answered. Most messages read after "cannot".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A sealed file could not be read.
    #[error("read {path}: {source}", path = path.display())]
    Part {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// There is no recording to query.
    #[error("find a recording")]
    NoRuns,
    /// The query is wrong.
    #[error("{0}")]
    Sql(Box<SqlError>),
    /// The query would change something.
    #[error("{statement} is refused: recordings are read-only")]
    ReadOnly {
        /// The first words of the statement.
        statement: String,
    },
    /// The answer does not fit the memory limit, even with spilling.
    #[error("answer within {limit_bytes} bytes of memory: {message}")]
    Memory {
        /// The limit in bytes.
        limit_bytes: usize,
        /// Which operator requested how much.
        message: String,
    },
    /// Computing the answer failed.
    #[error("compute the answer: {}", message_of(.0))]
    Execution(Box<DataFusionError>),
    /// The answer was stopped on purpose.
    #[error("finish the answer: it was stopped")]
    Stopped,
    /// An answer could not be written.
    #[error("write the answer: {0}")]
    Write(#[from] std::io::Error),
    /// An answer could not be converted for writing.
    #[error("write the answer: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
    /// An answer could not be written as Parquet.
    #[error("write the answer: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// Two recordings cannot be compared.
    #[error("{message}")]
    NotComparable {
        /// The reason, a sentence.
        message: String,
        /// The next step.
        hint: Option<String>,
    },
    /// A rule that excludes something from the comparison is invalid.
    #[error("use the rule for {what}: {why}")]
    Rule {
        /// The rule.
        what: String,
        /// The reason.
        why: String,
    },
    /// The operating system refused a thread, a folder or a file.
    #[error("{action}: {source}")]
    System {
        /// The attempted action.
        action: &'static str,
        /// The refusal.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// Returns the message with its causes as a sentence. The place of an error in SQL is only in it if there is no excerpt.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Sql(error) => match error.position {
                Some((line, column)) if error.excerpt.is_empty() => {
                    format!("{} at line {line}, column {column}", error.message)
                }
                _ => error.message.clone(),
            },
            Self::Store(error) => store_sentence(error),
            Self::ReadOnly { .. } | Self::NotComparable { .. } => with_causes(self),
            other => format!("cannot {}", without_speakers(&with_causes(other))),
        }
    }

    /// Returns the next step, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Store(error) => return error.hint().map(str::to_owned),
            Self::Sql(error) => return error.hint(),
            Self::Part { .. } => "run \"hindsight check\"",
            Self::NoRuns => "name recordings, a folder of them, or a pattern like 'runs/*'",
            Self::ReadOnly { .. } => "ask with SELECT",
            Self::Execution(error) => return hint_of(error),
            Self::NotComparable { hint, .. } => return hint.clone(),
            Self::Memory { .. } => "give more with hindsight sql --memory 8GB, or ask for less",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl Error {
    /// Returns the error of a sealed file that cannot be read. Our own reader, which checks its bytes, may have found damage.
    pub(crate) fn of_part(path: &Path, source: ParquetError) -> Self {
        match of_reader(source) {
            Ok(own) => Self::Store(own),
            Err(source) => Self::Part {
                path: path.to_path_buf(),
                source,
            },
        }
    }
}

/// Returns the error of our own reader that Parquet wraps, as it is or as one of reading.
fn of_reader(source: ParquetError) -> std::result::Result<store::Error, ParquetError> {
    let inner = match source {
        ParquetError::External(inner) => inner,
        source => return Err(source),
    };
    let inner = match inner.downcast::<store::Error>() {
        Ok(own) => return Ok(*own),
        Err(inner) => inner,
    };
    let read = match inner.downcast::<io::Error>() {
        Ok(read) => read,
        Err(inner) => return Err(ParquetError::External(inner)),
    };
    let read = (*read).downcast::<store::Error>();
    read.map_err(|read| ParquetError::External(Box::new(read)))
}

/// Returns the message of an error of `store` with its causes as a sentence: some messages are sentences, others name
/// the failed action.
#[must_use]
pub fn store_sentence(error: &store::Error) -> String {
    let message = with_causes(error);
    match error {
        store::Error::Io { .. } | store::Error::Append { .. } | store::Error::Sync { .. } => {
            format!("cannot {message}")
        }
        _ => message,
    }
}

/// Removes the prefixes that Arrow and Parquet put before the operating system's message.
fn without_speakers(message: &str) -> String {
    message
        .replace(": Io error: ", ": ")
        .replace(": External: ", ": ")
}

/// An error in a query, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    /// The error, a lower-case sentence.
    pub message: String,
    /// Line and column of the first wrong character, both from 1, where that is known.
    pub position: Option<(usize, usize)>,
    /// The wrong line with a caret below the wrong characters; empty when the position is not known.
    pub excerpt: String,
    /// Suggested names, nearest first.
    pub suggestions: Vec<String>,
    /// The right way to write it, where no name was misspelt.
    pub hint: Option<String>,
}

impl SqlError {
    /// Returns the next step, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self.suggestions.is_empty() {
            true => self.hint.clone(),
            false => Some(format!("did you mean {}?", self.suggestions.join(" or "))),
        }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some((line, column)) = self.position {
            write!(f, " at line {line}, column {column}")?;
        }
        if !self.excerpt.is_empty() {
            write!(f, "\n{}", self.excerpt)?;
        }
        Ok(())
    }
}
