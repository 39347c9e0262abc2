//! Finds, creates, opens and closes recordings: the folder, its manifest and the marker of unfinished ones.
//!
//! While a recorder works it holds a lock on the marker `incomplete`, so that a reader can tell a live
//! recording from one whose recorder died. The log and the columns define the content of the parts.

mod create;
mod left;
mod newest;
mod remove;
#[cfg(test)]
mod tests;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

pub use create::{Created, OnTaken, OpenRecording, may_be_created, set_process};
pub(crate) use create::{check_free, check_name};
pub use left::is_left;
pub use remove::{Removed, foreign, remove};

use crate::clock::Clock;
use crate::document;
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::{
    COLUMNS_DIR, DEFINITIONS_FILE, FileKind, INCOMPLETE_FILE, LOG_DIR, MANIFEST_FILE,
    RECORDING_SUFFIX, SEAL_STATE_FILE,
};
use crate::log::{LogPosition, LogReader, Tail};
use crate::manifest::Manifest;
use crate::set::PROCESSES_FILE;

/// A recording opened for reading.
#[derive(Clone, Debug)]
pub struct Recording {
    dir: PathBuf,
    manifest: Manifest,
    clock: Clock,
    state: RecordingState,
}

/// The stage of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingState {
    /// It was closed cleanly and is final.
    Closed,
    /// A recorder is writing it.
    Live,
    /// Its recorder died; it ends with its last whole frame.
    Interrupted,
}

impl Recording {
    /// Opens the recording that `path` names, with or without its ending `.hindsight`.
    ///
    /// # Errors
    /// [`Error::NotARecording`], or the fault of the manifest, with file and offset.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_exact(&resolve(path)?)
    }

    /// Opens the recording in the folder `dir`.
    ///
    /// # Errors
    /// The fault of the manifest, with file and offset.
    pub fn open_exact(dir: &Path) -> Result<Self> {
        let dir = dir.to_path_buf();
        let file = dir.join(MANIFEST_FILE);
        // Read the state first: a recording that is closed in between shows as live, and its log then as closed.
        let state = state(&dir)?;
        let (header, manifest): (FileHeader, Manifest) = document::read(&file)?;
        let expected = FileHeader {
            kind: FileKind::Manifest,
            recording_id: manifest.recording_id,
            number: 0,
        };
        expected.expect(&header, &file)?;
        let clock = Clock::new(manifest.clock)?;
        Ok(Self {
            dir,
            manifest,
            clock,
            state,
        })
    }

    /// Returns the recording's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns what is known about the recording as a whole.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the conversion from ticks to nanoseconds.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the stage of the recording at its opening.
    pub fn state(&self) -> RecordingState {
        self.state
    }

    /// Returns the folder of the log's segments.
    pub fn log_dir(&self) -> PathBuf {
        self.dir.join(LOG_DIR)
    }

    /// Returns the folder of the sealed columns.
    pub fn columns_dir(&self) -> PathBuf {
        self.dir.join(COLUMNS_DIR)
    }

    /// Returns the file with the progress of sealing.
    pub fn seal_state_path(&self) -> PathBuf {
        self.columns_dir().join(SEAL_STATE_FILE)
    }

    /// Returns the file of the definitions found in the log so far.
    pub fn definitions_path(&self) -> PathBuf {
        self.columns_dir().join(DEFINITIONS_FILE)
    }

    /// Returns the header of this recording's files of a kind.
    pub fn file_header(&self, kind: FileKind) -> FileHeader {
        FileHeader {
            kind,
            recording_id: self.manifest.recording_id,
            number: 0,
        }
    }

    /// Returns the allowed forms of the log's end.
    pub fn tail(&self) -> Tail {
        match self.state {
            RecordingState::Closed => Tail::MustBeClosed,
            RecordingState::Live => Tail::Grows,
            RecordingState::Interrupted => Tail::MayBeTorn,
        }
    }

    /// Opens the log at the first existing segment.
    ///
    /// # Errors
    /// Those of [`LogReader::open`].
    pub fn log(&self) -> Result<LogReader> {
        LogReader::open(&self.log_dir(), self.manifest.recording_id, self.tail())
    }

    /// Opens the log at a position that an earlier reader returned.
    pub fn log_at(&self, position: LogPosition) -> LogReader {
        let id = self.manifest.recording_id;
        LogReader::open_at(&self.log_dir(), id, self.tail(), position)
    }
}

/// Returns the folder of the recording that `path` names. Without the ending `.hindsight`, a name means the newest of
/// the recordings that were to have it: `t.hindsight`, `t-2.hindsight` and so on. In the folder of a set it means exactly
/// `t.hindsight`.
///
/// # Errors
/// [`Error::NotARecording`], saying what is there instead; [`Error::Io`] if one may not look.
pub fn resolve(path: &Path) -> Result<PathBuf> {
    if path.join(MANIFEST_FILE).is_file() {
        return Ok(path.to_path_buf());
    }
    let with_ending = with_suffix(path);
    // In a set, names are those of its list: `cc1` and `cc1-2` are recordings of two processes.
    let in_set = path
        .parent()
        .is_some_and(|dir| dir.join(PROCESSES_FILE).is_file());
    let found = match in_set {
        true => Some(with_ending.clone()).filter(|dir| dir.join(MANIFEST_FILE).is_file()),
        false => newest::newest(&with_ending),
    };
    if with_ending != path
        && let Some(dir) = found
    {
        return Ok(dir);
    }
    for dir in [path, with_ending.as_path()] {
        if let Some(error) = denied(dir) {
            return Err(Error::io("read", dir)(error));
        }
    }
    let why = match (path.is_dir() || with_ending.is_dir(), path.exists()) {
        (true, _) if is_left(path) || is_left(&with_ending) => {
            "its recorder was killed as it began; the next recording of that name replaces it"
        }
        (true, _) => "the folder has no file \"manifest\"",
        (false, true) => "it is not a folder",
        (false, false) => "there is no such folder, also not with the ending .hindsight",
    };
    Err(Error::NotARecording {
        path: path.to_path_buf(),
        why,
    })
}

/// Returns the error if one may not look into a folder.
#[must_use]
pub fn denied(dir: &Path) -> Option<io::Error> {
    let error = dir.join(MANIFEST_FILE).metadata().err()?;
    (error.kind() == io::ErrorKind::PermissionDenied).then_some(error)
}

/// Returns the name that `path` states, with its ending, if the recording that was found for it is another, newer one:
/// `t.hindsight` for `t` and `t-2.hindsight`.
#[must_use]
pub fn older_than(found: &Path, path: &Path) -> Option<PathBuf> {
    let named = with_suffix(path);
    let stem = found.file_stem()?.to_str()?;
    let number = stem
        .strip_prefix(named.file_stem()?.to_str()?)?
        .strip_prefix('-')?;
    let is_numbered = number.parse::<u32>().is_ok();
    (is_numbered && found.parent() == named.parent()).then_some(named)
}

/// Returns `path` with the ending `.hindsight`, which it may have already.
pub fn with_suffix(path: &Path) -> PathBuf {
    let path: PathBuf = path.components().collect(); // drops a trailing slash
    let mut name = path.as_os_str().to_os_string();
    if !name
        .as_encoded_bytes()
        .ends_with(RECORDING_SUFFIX.as_bytes())
    {
        name.push(RECORDING_SUFFIX);
    }
    PathBuf::from(name)
}

impl Recording {
    /// Returns why the recording ends before its program, if its recorder could note that.
    pub fn why_incomplete(&self) -> Option<String> {
        let note = std::fs::read_to_string(self.dir.join(INCOMPLETE_FILE)).ok()?;
        let note = note.trim();
        (!note.is_empty()).then(|| note.to_owned())
    }
}

fn state(dir: &Path) -> Result<RecordingState> {
    let marker = dir.join(INCOMPLETE_FILE);
    let file = match File::open(&marker) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(RecordingState::Closed);
        }
        Err(error) => return Err(Error::io("open", &marker)(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(RecordingState::Interrupted),
        Err(TryLockError::WouldBlock) => Ok(RecordingState::Live),
        Err(TryLockError::Error(error)) => Err(Error::io("lock", &marker)(error)),
    }
}
