//! Gathers the sealed files of a recording; what is not sealed yet is sealed into a folder of our own.
//!
//! The recording itself is never written to, so that it may be asked while its recorder works or after it died.

use std::path::Path;
use std::sync::Arc;

use store::columns::SealedFile;
use store::definitions;
use store::format::FileKind;
use store::recording::{Recording, RecordingState};
use store::seal::{SealOptions, SealedPart, seal_tail};
use tempfile::TempDir;

use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::parts::PartFile;
use crate::state::States;
use crate::tables::Sources;

/// A recording as it was at one moment.
pub struct Snapshot {
    /// What tables are made of.
    pub sources: Sources,
    /// The states that can be asked.
    pub states: States,
    /// How much of the recording that is.
    pub extent: Extent,
    /// Holds what was sealed for this snapshot alone.
    pub tail: TempDir,
}

/// How much of a recording a session sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Whether the recording was closed, live or interrupted when it was opened.
    pub state: RecordingState,
    /// Number of events; the last one has `seq` one less.
    pub events: u64,
    /// When the last event was, in ns since the recording began.
    pub last_ts_ns: i64,
    /// Bytes at the end of the log that are no whole frame and were left out.
    pub torn_bytes: u64,
}

impl Snapshot {
    /// Opens the recording that `path` names, and seals what it has not sealed itself into a folder below `temp_dir`.
    ///
    /// # Errors
    /// When the recording or a sealed file cannot be read, or the folder cannot be written.
    pub fn open(path: &Path, temp_dir: &Path) -> Result<Self> {
        let recording = Recording::open(path)?;
        let tail = tempfile::Builder::new()
            .prefix("hindsight-tail-")
            .tempdir_in(temp_dir)
            .map_err(|source| Error::System {
                action: "make a folder for what is not sealed yet",
                source,
            })?;
        let sealed = seal_tail(&recording, tail.path(), SealOptions::default(), |_| {})?;
        let mut definitions = Definitions::default();
        let header = recording.file_header(FileKind::Definitions);
        for file in &sealed.definitions {
            definitions::read_file(&file.path, header, file.len, |c| definitions.add(c))?;
        }
        let files = |file: fn(&SealedPart) -> (&SealedFile, u64)| {
            let parts = sealed.parts.iter().map(file);
            let filled = parts.filter(|(_, rows)| *rows > 0);
            filled
                .map(|(file, _)| PartFile::open(file).map(Arc::new))
                .collect::<Result<Vec<_>>>()
        };
        let calls = files(|part| (&part.calls, part.part.calls))?;
        let events = files(|part| (&part.events, part.part.events))?;
        let states = files(|part| (&part.states, part.part.states))?;
        let extent = Extent {
            state: recording.state(),
            events: sealed.events,
            last_ts_ns: sealed.last_ts_ns,
            torn_bytes: sealed.torn_bytes,
        };
        let of_states = States::new(path, temp_dir);
        let sources = Sources::new(
            &calls,
            &events,
            &states,
            definitions,
            &recording,
            &of_states,
        );
        Ok(Self {
            sources,
            states: of_states,
            extent,
            tail,
        })
    }
}
