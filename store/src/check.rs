//! Verifies a recording: every checksum, and every rule of the format that needs neither symbols nor SQL.
//!
//! A check reads everything once with bounded memory and changes nothing. After damage it resumes at the next whole
//! frame.

mod beside;
mod columns;
mod live;
mod log;
mod memory;
#[cfg(test)]
mod tests;
mod threads;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::{INCOMPLETE_FILE, LOG_DIR};
use crate::log::frame_reader::FrameReader;
use crate::log::{Tail, segment_path, segments};
use crate::manifest::RecordingId;
use crate::recording::{self, Recording, RecordingState};

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files that were read, in the order of reading.
    pub files: Vec<CheckedFile>,
    /// Faults and notes, in the order of finding.
    pub findings: Vec<Finding>,
    /// Totals of the log.
    pub log: LogTotals,
    /// Totals of the columns.
    pub columns: ColumnTotals,
    /// Copies of memory that events name.
    pub memory_copies: u32,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedFile {
    /// The file.
    pub path: PathBuf,
    /// Its length in bytes.
    pub len_bytes: u64,
}

/// Something wrong or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// In which file.
    pub path: PathBuf,
    /// Offset in it, in bytes, if one can be given.
    pub offset: Option<u64>,
    /// Description.
    pub what: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Allowed, but worth knowing.
    Note,
    /// Readable, but not as the recorder and the target should have written it.
    Odd,
    /// Bytes are missing or changed.
    Damage,
}

/// Totals of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogTotals {
    /// Existing segments.
    pub segments: u64,
    /// Whole frames, without the last ones of segments.
    pub frames: u64,
    /// Frames with records.
    pub blocks: u64,
    /// Control events.
    pub controls: u64,
    /// Watermarks.
    pub watermarks: u64,
    /// Threads: uses of a ring.
    pub threads: u64,
    /// Records that can be read.
    pub records: u64,
    /// Records of entered functions.
    pub enters: u64,
    /// Records of left functions.
    pub leaves: u64,
    /// Lost records that gap records count.
    pub lost: u64,
    /// Bytes of an unfinished frame at the end, which readers drop.
    pub torn_bytes: u64,
    /// Bytes between whole frames that cannot be read.
    pub unreadable_bytes: u64,
}

/// Totals of the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnTotals {
    /// Parts.
    pub parts: u64,
    /// Calls, unfinished ones too.
    pub calls: u64,
    /// Calls that were still open at the end.
    pub unfinished: u64,
    /// Rows of other events.
    pub events: u64,
    /// States of stopped threads.
    pub states: u64,
    /// Captures with enters and leaves.
    pub captures: u64,
    /// Definitions of functions.
    pub functions: u64,
    /// Events that have a number.
    pub next_seq: u64,
}

impl Report {
    /// Returns whether nothing is missing or changed.
    pub fn is_whole(&self) -> bool {
        self.worst() < Some(Severity::Damage)
    }

    /// Returns the severity of the worst finding.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    fn file(&mut self, path: &Path, len_bytes: u64) {
        let path = path.to_path_buf();
        self.files.push(CheckedFile { path, len_bytes });
    }

    /// Notes that an event names copy `id` of memory.
    fn copy_of_memory(&mut self, id: u32) {
        self.memory_copies = self.memory_copies.max(id.saturating_add(1));
    }

    fn find(&mut self, severity: Severity, path: &Path, offset: Option<u64>, what: String) {
        self.findings.push(Finding {
            severity,
            path: path.to_path_buf(),
            offset,
            what,
        });
    }

    /// Adds an error as damage of `path`.
    fn damage(&mut self, path: &Path, error: &Error) {
        let (offset, what) = match error {
            Error::Corrupt { offset, what, .. }
            | Error::Truncated { offset, what, .. }
            | Error::Foreign { offset, what, .. } => (Some(*offset), what.clone()),
            Error::Io { action, source, .. } => (None, format!("{action}: {source}")),
            other => (None, other.one_line()),
        };
        self.find(Severity::Damage, path, offset, what);
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Odd => "odd",
            Severity::Damage => "damage",
        };
        write!(f, "{severity}: {}", self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Checks the recording that `path` names. `progress` is called with the number of bytes read since the last time.
///
/// # Errors
/// [`Error::NotARecording`], or when a folder cannot be read. Damage is a finding, not an error.
pub fn check(path: &Path, mut progress: impl FnMut(u64)) -> Result<Report> {
    let dir = recording::resolve(path)?;
    let mut report = Report::default();
    let manifest = dir.join(crate::format::MANIFEST_FILE);
    let opened = Recording::open(&dir);
    match &opened {
        Ok(_) => {
            let len = manifest
                .metadata()
                .map_err(Error::io("read", &manifest))?
                .len();
            report.file(&manifest, len);
        }
        Err(error) => report.damage(&manifest, error),
    }
    let log_dir = dir.join(LOG_DIR);
    let tail = match &opened {
        Ok(recording) => recording.tail(),
        Err(_) if dir.join(INCOMPLETE_FILE).exists() => Tail::MayBeTorn,
        Err(_) => Tail::MustBeClosed,
    };
    let id = match &opened {
        Ok(recording) => Some(recording.manifest().recording_id),
        Err(_) => id_from_log(&log_dir)?,
    };
    let sealed = match &opened {
        Ok(recording) => columns::check(recording, &mut report, &mut progress)?,
        Err(_) => None,
    };
    if let Some(id) = id {
        let scope = log::LogContext {
            dir: &log_dir,
            id,
            tail,
            sealed,
            is_kept: opened
                .as_ref()
                .is_ok_and(|r| r.manifest().settings.keep_log),
        };
        log::check(&scope, &mut report, &mut progress)?;
    }
    if let Ok(recording) = &opened {
        memory::check(recording, &mut report, &mut progress)?;
        beside::check(recording, &mut report, &mut progress)?;
        if report.is_whole() && recording.state() == RecordingState::Closed {
            beside::check_foreign(&dir, &mut report)?;
        }
    }
    match opened.map(|recording| recording.state()) {
        Ok(RecordingState::Live) => {
            let what = "the recording is being written".to_string();
            report.find(Severity::Note, &dir, None, what);
        }
        Ok(RecordingState::Interrupted) => {
            let what = "the recorder did not close the recording".to_string();
            report.find(Severity::Note, &dir, None, what);
        }
        Ok(RecordingState::Closed) | Err(_) => {}
    }
    Ok(report)
}

/// Returns the recording id in the first readable segment.
fn id_from_log(log_dir: &Path) -> Result<Option<RecordingId>> {
    let ids = segments(log_dir)?.into_iter().filter_map(|number| {
        let (_, header) = FrameReader::open_any(&segment_path(log_dir, number)).ok()?;
        Some(header.recording_id)
    });
    Ok(ids.into_iter().next())
}
