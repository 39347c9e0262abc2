//! The errors of a recording, each with the file, the offset and the next step.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::RECORDING_SUFFIX;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a recording could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller did not wait for the end of sealing.
    #[error("sealing was interrupted")]
    SealingLeft,
    /// The operating system refused.
    #[error("{action} {path}: {source}", path = path.display())]
    Io {
        /// The attempted action: a verb.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// The path names no recording.
    #[error("{path} is not a recording: {why}", path = path.display())]
    NotARecording {
        /// The path as given.
        path: PathBuf,
        /// The fault.
        why: &'static str,
    },
    /// The recording exists already.
    #[error("{path} exists already", path = path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// A recording cannot have this name.
    #[error("{path:?} is not a valid name for a recording: {why}")]
    BadName {
        /// The path as given.
        path: PathBuf,
        /// The fault.
        why: &'static str,
    },
    /// The folder of a new recording cannot be made.
    #[error("{path} cannot be created: {source}", path = path.display())]
    NotCreated {
        /// The folder.
        path: PathBuf,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// The file was made by a newer release.
    #[error("{path} has format version {found}, this build reads up to {supported}", path = path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version known here.
        supported: u32,
    },
    /// The file was made by a release that is too old.
    #[error("{path} has format version {found}, this build reads from {supported} on", path = path.display())]
    OlderFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The oldest version known here.
        supported: u32,
    },
    /// The file does not begin like the files of a recording.
    #[error("{path} is not a file of a recording: at offset {offset}: {what}", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Offset of the difference, in bytes.
        offset: u64,
        /// How it differs.
        what: String,
    },
    /// A checksum or a rule of the format does not hold.
    #[error("{path} is damaged at offset {offset}: {what}", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where, in bytes from the file's start.
        offset: u64,
        /// Which rule is broken.
        what: String,
    },
    /// The file of a cleanly closed recording ends too early.
    #[error("{path} is cut short at offset {offset}: {what}", path = path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the first missing or incomplete part begins, in bytes from the file's start.
        offset: u64,
        /// The missing thing.
        what: String,
    },
    /// A needed segment is missing.
    #[error("{path} is missing, and the columns do not have its events", path = path.display())]
    SegmentMissing {
        /// The segment.
        path: PathBuf,
    },
    /// A frame could not be appended. The log ends with the frame before it.
    #[error("append to {path}: {source}", path = path.display())]
    Append {
        /// The segment.
        path: PathBuf,
        /// The refusal.
        #[source]
        source: io::Error,
    },
    /// Appended data could not be synced to the disk.
    #[error("sync {path}: {message}", path = path.display())]
    Sync {
        /// The segment or folder.
        path: PathBuf,
        /// The refusal.
        message: String,
    },
    /// The writer failed earlier and accepts nothing more.
    #[error("append to {path}: an earlier failure could not be undone", path = path.display())]
    WriterStopped {
        /// The segment.
        path: PathBuf,
    },
    /// A payload does not fit a frame.
    #[error("append {len} bytes as one frame: {rule}")]
    BadPayload {
        /// Length of the payload in bytes.
        len: usize,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// The clock of a manifest is implausible.
    #[error("a clock of {tsc_hz} ticks per second is outside 10 MHz to 100 GHz")]
    BadClock {
        /// The rate found.
        tsc_hz: f64,
    },
    /// A recording cannot be deleted while it is being made.
    #[error("{path} is being recorded", path = path.display())]
    BeingRecorded {
        /// The recording.
        path: PathBuf,
    },
    /// Another process has the catalog of runs open.
    #[error("the catalog of runs is in use by another process: {path}", path = path.display())]
    CatalogInUse {
        /// The catalog's folder.
        path: PathBuf,
    },
    /// Something cannot be added to the recording. Nothing has changed.
    #[error("nothing was added to the recording: {why}")]
    NotAdded {
        /// Why.
        why: String,
        /// The next step.
        hint: Option<String>,
    },
    /// A value cannot be encoded as MessagePack.
    #[error("encode {what}: {source}")]
    Encode {
        /// The kind of value.
        what: &'static str,
        /// The reason.
        #[source]
        source: rmp_serde::encode::Error,
    },
    /// The unsealed rest of a recording cannot be sealed for a reader.
    #[error("cannot make a folder for what is not sealed yet: {0}")]
    NoTailFolder(#[source] io::Error),
    /// A Parquet file could not be written or read.
    #[error("columns {path}: {source}", path = path.display())]
    Columns {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: parquet::errors::ParquetError,
    },
    /// Columns could not be assembled in memory.
    #[error("columns {path}: {source}", path = path.display())]
    Arrow {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: arrow::error::ArrowError,
    },
}

impl Error {
    /// Returns the next step, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::NotARecording { .. } => "name a folder made by \"hindsight record\"",
            Self::Exists { .. } => "choose another name or remove it",
            Self::BadName { .. } => "choose a name, like run1 or /tmp/run1",
            Self::NotCreated { source, .. } if source.kind() == io::ErrorKind::InvalidFilename => {
                "choose a shorter name: one has at most 255 bytes, with its ending"
            }
            Self::NotCreated { .. } => {
                "choose a name in a folder that is there and that you may write to"
            }
            Self::NewerFormat { .. } => "use a newer hindsight",
            Self::OlderFormat { .. } => "use an older hindsight",
            Self::Foreign { .. } => "remove it or restore the recording from a copy",
            Self::Corrupt { .. } => {
                "run \"hindsight check\" for a full report and restore the file from a copy"
            }
            Self::Truncated { .. } => "restore the file from a copy",
            Self::SegmentMissing { .. } => "restore it from a copy",
            Self::Append { .. } => {
                "what is in the file stays readable; free some space or record elsewhere"
            }
            Self::Sync { .. } => {
                "what was appended since the last sync may be lost, so recording stops"
            }
            Self::BeingRecorded { .. } => "wait until its program has ended, or stop it",
            Self::CatalogInUse { .. } => "try again",
            Self::WriterStopped { .. } => "close the recording",
            Self::NoTailFolder(_) => "set TMPDIR to a folder that can be written to",
            Self::NotAdded { hint, .. } => return hint.as_deref(),
            Self::Io { path, source, .. }
                if source.kind() == io::ErrorKind::NotFound && is_in_recording(path) =>
            {
                "a file of the recording is missing: restore it from a copy"
            }
            // Faults in a file's bytes.
            Self::Columns {
                source: parquet::errors::ParquetError::General(_),
                ..
            } => "run \"hindsight check\"",
            _ => return None,
        })
    }

    /// Returns message and next step as one text, for places with room for one line only.
    #[must_use]
    pub fn one_line(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }

    /// Returns a function that wraps an I/O error with the action and the path.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// Returns the error for a broken rule of the format at `offset` bytes of `path`.
    pub fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.to_path_buf(),
            offset,
            what: what.into(),
        }
    }

    pub(crate) fn not_added(why: impl Into<String>, hint: Option<&str>) -> Self {
        Self::NotAdded {
            why: why.into(),
            hint: hint.map(str::to_owned),
        }
    }

    /// Turns an error of Parquet into our own; it may wrap an error of our own reader.
    pub(crate) fn columns(path: &Path, source: parquet::errors::ParquetError) -> Self {
        let path = path.to_path_buf();
        match source {
            parquet::errors::ParquetError::External(inner) => match inner.downcast::<Self>() {
                Ok(own) => *own,
                Err(inner) => Self::Columns {
                    path,
                    source: parquet::errors::ParquetError::External(inner),
                },
            },
            source => Self::Columns { path, source },
        }
    }
}

/// Tells whether a file is, or should be, part of a recording.
fn is_in_recording(path: &Path) -> bool {
    let mut around = path.ancestors().skip(1);
    around.any(|dir| dir.to_string_lossy().ends_with(RECORDING_SUFFIX))
}
