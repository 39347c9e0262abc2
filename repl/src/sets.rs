//! Sets of recordings that `record --children` has made, each as a whole.
//!
//! A word that names a recording means that recording; only otherwise does it name a set.

use std::path::{Path, PathBuf};

use query::runs::find;
use serde_json::{Value, json};
use server::inspect::signal_name;
use store::Summary;
use store::format::RECORDING_SUFFIX;
use store::labels::Labels;
use store::recording;
use store::set::{self, PROCESSES_FILE, Process};

use crate::error::Error;
use crate::listing::Row;
use crate::render::date;

/// Returns the folder of the set that a word names.
pub fn named(word: &Path) -> Option<PathBuf> {
    match recording::resolve(word) {
        Ok(_) => None,
        Err(_) => set::resolve(word),
    }
}

/// Returns the folder of the set that a recording belongs to.
pub fn around(recording: &Path) -> Option<&Path> {
    let folder = recording.parent()?;
    folder.join(PROCESSES_FILE).is_file().then_some(folder)
}

/// Returns the names of a set's recordings, in the order in which they began.
pub fn members(set: &Path) -> Vec<String> {
    let processes = set::processes(set).unwrap_or_default();
    let recordings = processes.into_iter().filter(|process| !process.is_pruned);
    let folders = recordings.filter_map(|process| process.recording);
    let name = |folder: String| match folder.strip_suffix(RECORDING_SUFFIX) {
        Some(name) => name.to_owned(),
        None => folder,
    };
    folders.map(name).collect()
}

/// Returns the sets directly in a folder.
pub fn within(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path());
    folders
        .filter(|folder| folder.join(PROCESSES_FILE).is_file())
        .collect()
}

/// A set, with all that is known of it.
pub struct Whole {
    /// Its folder.
    pub dir: PathBuf,
    /// Its processes, in the order in which they began.
    pub processes: Vec<Process>,
    /// Its recordings, in the order in which they began.
    pub recordings: Vec<Row>,
    /// Recordings that cannot be read, and why.
    pub unreadable: Vec<(PathBuf, store::Error)>,
    /// Its labels: those of its first recording, changed by its own.
    pub labels: Labels,
}

/// Signals by which a program crashes; others end it because somebody wants that.
const CRASHES: [i32; 7] = [
    libc::SIGSEGV,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGSYS,
    libc::SIGTRAP,
];

impl Whole {
    /// Reads the set in a folder.
    ///
    /// # Errors
    /// When its list of processes cannot be read.
    pub fn read(dir: &Path) -> Result<Whole, Error> {
        let processes = set::processes(dir).map_err(|source| Error::Store { source })?;
        let mut whole = Whole {
            dir: dir.to_owned(),
            processes,
            recordings: Vec::new(),
            unreadable: Vec::new(),
            labels: Labels::new(),
        };
        for folder in find(&[dir.to_owned()]).folders {
            match Summary::read(&folder) {
                Ok(summary) => whole.recordings.push(Row::of(summary)),
                Err(error) => whole.unreadable.push((folder, error)),
            }
        }
        let order = |row: &Row| (row.start_unix_ns, row.path.clone());
        whole.recordings.sort_by_key(order);
        let first = whole.recordings.first();
        whole.labels = first.map(|first| first.labels.clone()).unwrap_or_default();
        for (key, value) in set::labels(dir).map_err(|source| Error::Store { source })? {
            match value {
                Some(value) => whole.labels.insert(key, value),
                None => whole.labels.remove(&key),
            };
        }
        Ok(whole)
    }

    /// Returns the process that the others descend from.
    pub fn first(&self) -> Option<&Process> {
        self.processes.first()
    }

    /// Returns when the set began, in ns since 1970.
    pub fn start_unix_ns(&self) -> i64 {
        let starts = self.processes.iter().map(|process| process.start_unix_ns);
        starts.filter(|start| *start > 0).min().unwrap_or(0)
    }

    /// Returns when the newest of its processes and recordings began.
    pub fn newest_unix_ns(&self) -> i64 {
        let processes = self.processes.iter().map(|process| process.start_unix_ns);
        let recordings = self.recordings.iter().map(|row| row.start_unix_ns);
        processes.chain(recordings).max().unwrap_or(0)
    }

    /// Returns whether any process crashed.
    pub fn has_crashed(&self) -> bool {
        let mut signals = self
            .processes
            .iter()
            .filter_map(|process| process.exit_signal);
        signals.any(|signal| CRASHES.contains(&signal))
    }

    /// Returns the time from the beginning to the last end that was seen; `None` if none was.
    pub fn duration_ns(&self) -> Option<u64> {
        let ends = self
            .processes
            .iter()
            .filter_map(|process| process.end_unix_ns);
        u64::try_from(ends.max()? - self.start_unix_ns()).ok()
    }

    /// Returns how the first process ended: with its last program, whatever it executed before.
    pub fn ending(&self) -> Option<&Process> {
        let pid = self.first()?.pid;
        let mut own = self.processes.iter().filter(|process| process.pid == pid);
        own.find(|process| !process.became_another)
    }

    /// Returns the processes that failed, in the order of their ends.
    pub fn failed(&self) -> Vec<&Process> {
        let mut failed: Vec<&Process> = self
            .processes
            .iter()
            .filter(|one| has_failed(one))
            .collect();
        failed.sort_by_key(|process| process.end_unix_ns.unwrap_or(i64::MAX));
        failed
    }

    /// Returns how many processes have no recording: programs, and copies of their parents.
    pub fn unrecorded(&self) -> (usize, usize) {
        let without = || {
            let processes = self.processes.iter();
            processes.filter(|process| process.recording.is_none() && !process.is_pruned)
        };
        let programs = without().filter(|process| process.image_unix_ns.is_some());
        let copies = without().filter(|process| process.image_unix_ns.is_none());
        (programs.count(), copies.count())
    }

    /// Returns the calls and events of all recordings, and whether some are not known.
    pub fn rows(&self) -> (u64, u64, bool) {
        let mut sums = (0, 0, !self.unreadable.is_empty());
        for row in &self.recordings {
            match row.totals() {
                Some(totals) => {
                    sums.0 += totals.calls;
                    sums.1 += totals.events;
                }
                None => sums.2 = true,
            }
        }
        sums
    }

    /// Returns the whole as JSON.
    pub fn as_json(&self) -> Value {
        let (calls, events, is_partly) = self.rows();
        let ending = self.ending();
        let (programs, copies) = self.unrecorded();
        json!({
            "set": crate::json::path(&self.dir),
            "argv": self.first().map(|first| &first.argv),
            "start": date(self.start_unix_ns()),
            "start_unix_ns": self.start_unix_ns(),
            "duration_ns": self.duration_ns(),
            "exit_code": ending.and_then(|process| process.exit_code),
            "exit_signal": ending.and_then(|process| process.exit_signal).map(signal_name),
            "processes": set::number(&self.processes),
            "recordings": self.recordings.len() + self.unreadable.len(),
            "failed": self.failed().len(),
            "unrecorded_programs": programs,
            "unrecorded_copies": copies,
            "calls": calls,
            "events": events,
            "calls_of_all": !is_partly,
            "bytes_on_disk": crate::recording::size_on_disk(&self.dir),
        })
    }
}

/// Tells whether a process is known to have failed.
pub fn has_failed(process: &Process) -> bool {
    process.exit_signal.is_some() || process.exit_code.is_some_and(|code| code != 0)
}
