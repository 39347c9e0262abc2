//! An opened recording: its sealed part, and the rest of the log, sealed once into a folder of the reader's own.
//!
//! All users of one reader see the same events, however the recording grows meanwhile. A reader never writes to the
//! recording, so it can be read while its recorder works or after it died.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::control::Control;
use crate::definitions;
use crate::error::{Error, Result};
use crate::format::FileKind;
use crate::recording::Recording;
use crate::seal::{Progress, SealOptions, Sealed, SealedPart, seal_tail};

/// A recording as of its opening.
#[derive(Debug)]
pub struct Reader {
    recording: Recording,
    sealed: Sealed,
    /// Holds the files sealed for this reader alone, and is removed with it.
    _tail: TempDir,
}

/// Returns the folder for temporary files that may not fit into memory: `$TMPDIR`, else `/var/tmp`, which is on a disk
/// where `/tmp` may be in memory.
#[must_use]
pub fn temp_dir() -> PathBuf {
    std::env::var_os("TMPDIR").map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

impl Reader {
    /// Opens the recording that `path` names, with or without its ending `.hindsight`. Seals its unsealed rest
    /// into a folder below `temp_dir`.
    ///
    /// # Errors
    /// The recording cannot be read, or the folder cannot be written: [`Error::NoTailFolder`].
    pub fn open(path: &Path, temp_dir: &Path) -> Result<Self> {
        Self::open_while(path, temp_dir, |_| true)
    }

    /// As [`Reader::open`], as long as `goes_on` returns true; it is called from time to time. Otherwise nothing is
    /// left on the disk.
    ///
    /// # Errors
    /// As there; [`Error::SealingLeft`].
    pub fn open_while(
        path: &Path,
        temp_dir: &Path,
        goes_on: impl FnMut(&Progress) -> bool,
    ) -> Result<Self> {
        let recording = Recording::open(path)?;
        let tail = tempfile::Builder::new()
            .prefix("hindsight-tail-")
            .tempdir_in(temp_dir)
            .map_err(Error::NoTailFolder)?;
        let sealed = seal_tail(&recording, tail.path(), SealOptions::default(), goes_on)?;
        Ok(Self {
            recording,
            sealed,
            _tail: tail,
        })
    }

    /// Returns the recording, with its state at the opening.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Returns the sealed files, in order.
    pub fn parts(&self) -> &[SealedPart] {
        &self.sealed.parts
    }

    /// Returns the number of events; the last one has `seq` one less.
    pub fn events(&self) -> u64 {
        self.sealed.events
    }

    /// Returns the time of the last event, in ns since the recording began.
    pub fn last_ts_ns(&self) -> i64 {
        self.sealed.last_ts_ns
    }

    /// Returns how long the program was recorded, in ns: from its start, or from when the recorder attached to it, to the last event.
    pub fn duration_ns(&self) -> u64 {
        u64::try_from(self.sealed.last_ts_ns - self.sealed.began_ns).unwrap_or(0)
    }

    /// Returns the number of bytes at the end of the log that are not a whole frame and were dropped.
    pub fn torn_bytes(&self) -> u64 {
        self.sealed.torn_bytes
    }

    /// Passes each definition to `each`, in order.
    ///
    /// # Errors
    /// Those of [`definitions::read_file`].
    pub fn definitions(&self, mut each: impl FnMut(Control)) -> Result<()> {
        let header = self.recording.file_header(FileKind::Definitions);
        for file in &self.sealed.definitions {
            definitions::read_file(&file.path, header, file.len, &mut each)?;
        }
        Ok(())
    }
}
