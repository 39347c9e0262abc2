//! What the facts say of each process.

use std::collections::BTreeMap;

use super::Fact;

/// A program that a process executed; or a process that executed none, as a copy of its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its parent's id; `None` if that is not known.
    pub parent: Option<i32>,
    /// Its command line.
    pub argv: Vec<String>,
    /// When the process began or, if it executed a program before, when it executed this one.
    pub start_unix_ns: i64,
    /// When it executed this program; `None`: it is a copy of its parent.
    pub image_unix_ns: Option<i64>,
    /// When it ended, or executed the next program; `None` while it runs, or if its end was not seen.
    pub end_unix_ns: Option<i64>,
    /// Whether it executed another program, which is the next one with its id.
    pub became_another: bool,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub exit_signal: Option<i32>,
    /// Its recording's folder in the set.
    pub recording: Option<String>,
    /// Whether its recording was removed later.
    pub is_pruned: bool,
    /// Why it has none, or what to know about it.
    pub notes: Vec<String>,
}

impl Process {
    /// Notes its end. Two may have seen it: the first one knows when, and one of them how.
    fn end(&mut self, unix_ns: i64, code: Option<i32>, signal: Option<i32>) {
        let first = self.end_unix_ns.map_or(unix_ns, |known| known.min(unix_ns));
        self.end_unix_ns = Some(first);
        if self.exit_code.is_none() && self.exit_signal.is_none() {
            (self.exit_code, self.exit_signal) = (code, signal);
        }
    }
}

/// Returns how many processes there are: one that executed another program counts once.
pub fn number(processes: &[Process]) -> usize {
    let all = processes.iter();
    all.filter(|process| !process.became_another).count()
}

/// The processes, as far as the facts are read.
#[derive(Default)]
pub(super) struct Table {
    pub(super) rows: Vec<Process>,
    /// Of each id, its last row.
    last: BTreeMap<i32, usize>,
}

impl Table {
    pub(super) fn add(&mut self, fact: Fact) {
        let pid = fact.pid();
        match fact {
            Fact::Begin {
                parent,
                unix_ns,
                argv,
                ..
            } => self.begin(Process {
                pid,
                parent: Some(parent),
                argv,
                start_unix_ns: unix_ns,
                ..Process::default()
            }),
            Fact::Image { unix_ns, argv, .. } => self.image(pid, unix_ns, argv),
            Fact::Labels { .. } => {}
            Fact::Recorded { recording, .. } => self.of(pid).recording = Some(recording),
            Fact::Pruned { recording, .. } => {
                let mut rows = self.rows.iter_mut();
                let is_it = |row: &&mut Process| row.recording.as_ref() == Some(&recording);
                if let Some(row) = rows.find(is_it) {
                    row.recording = None;
                    row.is_pruned = true;
                }
            }
            Fact::Unrecorded { why, .. } => {
                let row = self.of(pid);
                row.recording = None;
                row.notes.push(why);
            }
            Fact::Warning {
                text, recording, ..
            } => self.warn(pid, recording.as_deref(), text),
            Fact::End {
                unix_ns,
                code,
                signal,
                ..
            } => self.of(pid).end(unix_ns, code, signal),
        }
    }

    fn begin(&mut self, row: Process) {
        self.last.insert(row.pid, self.rows.len());
        self.rows.push(row);
    }

    /// A copy of its parent that executes a program is one row; each further program of a process is another.
    fn image(&mut self, pid: i32, unix_ns: i64, argv: Vec<String>) {
        let row = self.of(pid);
        if row.image_unix_ns.is_some() || row.recording.is_some() {
            row.end_unix_ns = Some(unix_ns);
            row.became_another = true;
            let parent = row.parent;
            self.begin(Process {
                pid,
                parent,
                start_unix_ns: unix_ns,
                ..Process::default()
            });
        }
        let row = self.of(pid);
        row.image_unix_ns = Some(unix_ns);
        row.argv = argv;
    }

    /// Notes a warning at the row of its recording, which is not the last one after an exec.
    fn warn(&mut self, pid: i32, recording: Option<&str>, text: String) {
        let is_its = |row: &Process| recording.is_some() && row.recording.as_deref() == recording;
        match self.rows.iter().position(is_its) {
            Some(at) => self.rows[at].notes.push(text),
            None => self.of(pid).notes.push(text),
        }
    }

    /// Returns the last row of a process; a new one if its beginning was not seen.
    fn of(&mut self, pid: i32) -> &mut Process {
        let index = self.last.get(&pid).copied().unwrap_or_else(|| {
            self.begin(Process {
                pid,
                ..Process::default()
            });
            self.rows.len() - 1
        });
        &mut self.rows[index]
    }
}
