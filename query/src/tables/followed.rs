//! What `record --children` saw of the processes that a recorded program made: more than the program itself was told.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use store::Recording;
use store::format::RECORDING_SUFFIX;
use store::manifest::{Lineage, RecordingId};
use store::set::{self, PROCESSES_FILE};
use store::shell::words;
use store::summary::name_of;

use crate::syscalls::processes::Process;
use crate::syscalls::values;

/// The processes of a recording's set. None for a recording that was made alone.
#[derive(Clone, Default)]
pub struct Followed {
    /// All of the set, in the order of their beginning.
    pub processes: Arc<[set::Process]>,
    /// Numbers of those whose recordings are asked with this one: they have rows of their own.
    pub asked: Vec<i64>,
    /// For the first recording of the set alone: all that are asked, each by its folder's name, with its `asked`.
    pub telling: Vec<(String, Vec<i64>)>,
}

/// Returns the processes of the set that a recording's folder is in; none if it is in no set, or its list cannot be read.
pub fn processes_beside(recording: &Path) -> Arc<[set::Process]> {
    let set = recording
        .parent()
        .filter(|set| set.join(PROCESSES_FILE).is_file());
    let processes = set.and_then(|set| set::processes(set).ok());
    processes.unwrap_or_default().into()
}

/// Returns the numbers of the processes that the program of the recording `own` made or became, and that the recordings of
/// `lineages` are of.
fn children(own: RecordingId, lineages: impl Iterator<Item = Lineage>) -> Vec<i64> {
    lineages
        .filter(|lineage| lineage.parent_run == Some(own))
        .map(|lineage| lineage.pid.into())
        .collect()
}

/// Returns the name of the recording whose program started that of `run`, or became it, if it lies in the same folder.
pub fn parent_beside(run: &Recording) -> Option<String> {
    let lineage = run.manifest().lineage?;
    let parent = lineage.parent_run?;
    let folder = run.dir().parent()?;
    let processes = processes_beside(run.dir());
    let names = match processes.is_empty() {
        true => recordings_in(folder),
        false => recordings_above(&processes, lineage.pid),
    };
    let open = |name: &String| Recording::open_exact(&folder.join(name)).ok();
    let mut opened = names.iter().filter_map(open);
    let found = opened.find(|recording| recording.manifest().recording_id == parent)?;
    Some(name_of(found.dir()))
}

/// The recordings of a process of a set, and of those that led to it.
fn recordings_above(processes: &[set::Process], pid: i32) -> Vec<String> {
    let mut found = Vec::new();
    let mut pids = vec![pid];
    let mut at = 0;
    while let Some(pid) = pids.get(at).copied() {
        for process in processes.iter().filter(|process| process.pid == pid) {
            found.extend(process.recording.clone());
            if let Some(parent) = process.parent
                && !pids.contains(&parent)
            {
                pids.push(parent);
            }
        }
        at += 1;
    }
    found
}

fn recordings_in(folder: &Path) -> Vec<String> {
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| name.ends_with(RECORDING_SUFFIX))
        .collect()
}

impl Followed {
    /// Returns what is known beside the recording `own`, which is asked with `all`, in whatever way. `processes`: those of its set.
    pub fn beside(own: &Recording, all: &[&Recording], processes: Arc<[set::Process]>) -> Followed {
        let children_of = |recording: &Recording| {
            let lineages = all.iter().filter_map(|other| other.manifest().lineage);
            children(recording.manifest().recording_id, lineages)
        };
        let mut telling = Vec::new();
        let set = own.dir().parent();
        let mut of_set = all
            .iter()
            .filter(|other| other.dir().parent() == set)
            .peekable();
        let is_first = of_set.peek().is_some_and(|first| first.dir() == own.dir());
        if is_first && !processes.is_empty() {
            let named = of_set.filter_map(|other| {
                let name = other.dir().file_name()?.to_str()?.to_owned();
                Some((name, children_of(other)))
            });
            telling.extend(named);
        }
        Followed {
            processes,
            asked: children_of(own),
            telling,
        }
    }

    /// Adds to the processes that the program's own events tell of what the set knows of them, and those that only the set
    /// knows: copies that it made and that made copies in turn. Leaves out those that have rows of their own.
    pub fn complete(&self, mut known: Vec<Process>, recording: &Recording) -> Vec<Process> {
        let mut own = known.drain(..1.min(known.len())).collect::<Vec<_>>();
        known.retain(|row| !self.asked.contains(&row.pid));
        let start = recording.manifest().start_unix_ns;
        let name = recording.dir().file_name().and_then(|name| name.to_str());
        for at in name.map_or_else(Vec::new, |name| self.made_by(name, &self.asked)) {
            let process = &self.processes[at];
            let began_ns = process.start_unix_ns - start;
            let same = known
                .iter_mut()
                .filter(|row| row.pid == i64::from(process.pid));
            match same.min_by_key(|row| row.began_ts_ns.abs_diff(began_ns)) {
                Some(row) => tell(row, process, start),
                None => {
                    let mut row = Process::unseen(process.pid.into(), began_ns);
                    tell(&mut row, process, start);
                    known.push(row);
                }
            }
        }
        for at in self.untold() {
            let process = &self.processes[at];
            let mut row = Process::unseen(process.pid.into(), process.start_unix_ns - start);
            tell(&mut row, process, start);
            known.push(row);
        }
        own.append(&mut known);
        own
    }

    /// If all recordings of the set are asked, returns the processes that none of them tells of: the one of their maker was removed.
    fn untold(&self) -> Vec<usize> {
        let names = self.telling.iter().map(|(name, _)| name.as_str());
        let names: HashSet<&str> = names.collect();
        let is_asked = |process: &set::Process| {
            let recording = process.recording.as_deref();
            recording.map(|recording| names.contains(recording))
        };
        if names.is_empty()
            || self
                .processes
                .iter()
                .any(|process| is_asked(process) == Some(false))
        {
            return Vec::new();
        }
        let told = self.telling.iter();
        let told = told.flat_map(|(name, asked)| self.made_by(name, asked));
        let told: HashSet<usize> = told.collect();
        let all = self.processes.iter().enumerate();
        let untold = all.filter(|(at, process)| is_asked(process).is_none() && !told.contains(at));
        untold.map(|(at, _)| at).collect()
    }

    /// Returns the processes that the program of the recording `name` made, and those that these made without being recorded, but
    /// not those of the numbers `asked`.
    fn made_by(&self, name: &str, asked: &[i64]) -> Vec<usize> {
        let is_own = |process: &set::Process| process.recording.as_deref() == Some(name);
        // Of each number, the last process.
        let mut newest: HashMap<i32, Last> = HashMap::new();
        let mut made = Vec::new();
        for (at, process) in self.processes.iter().enumerate() {
            let before = newest.get(&process.pid);
            let before = before.filter(|before| before.process.became_another);
            let parent = process.parent.and_then(|parent| newest.get(&parent));
            let belongs = match (before, parent) {
                (Some(before), _) => before.owns,
                (None, Some(parent)) => parent.owned_at(process.start_unix_ns),
                (None, None) => false,
            };
            let is_recorded = process.recording.is_some() || process.is_pruned;
            if belongs && !is_own(process) && !asked.contains(&process.pid.into()) {
                made.push(at);
            }
            let last = Last {
                process,
                belongs,
                owns: is_own(process) || (belongs && !is_recorded),
            };
            newest.insert(process.pid, last);
        }
        made
    }
}

/// A process of a set, as seen from one of its recordings.
struct Last<'p> {
    process: &'p set::Process,
    /// It is one of those that the recorded program made.
    belongs: bool,
    /// Those that it makes are, too.
    owns: bool,
}

impl Last<'_> {
    /// Returns whether what it made at that time is of the recorded program: before it executed a program, it was a copy of the
    /// one that made it.
    fn owned_at(&self, unix_ns: i64) -> bool {
        match self.process.image_unix_ns {
            Some(executed) if unix_ns < executed => self.belongs,
            _ => self.owns,
        }
    }
}

/// Adds what the set knows to what is not known yet.
fn tell(row: &mut Process, process: &set::Process, start_unix_ns: i64) {
    row.parent = row.parent.or(process.parent.map(i64::from));
    if row.program.is_none() {
        row.program = process.argv.first().cloned();
    }
    if row.arguments.is_none() {
        row.arguments = process.argv.get(1..).map(words);
    }
    if row.exit_code.is_none() && row.exit_signal.is_none() {
        row.exit_code = process.exit_code.map(i64::from);
        row.exit_signal = process.exit_signal.map(|number| {
            let mut name = String::new();
            values::signal(&mut name, number.unsigned_abs().into());
            name
        });
    }
    if row.ended.is_none() {
        // A short one may have ended before its parent went on and recorded the fork.
        let ended = process.end_unix_ns.map(|end| end - start_unix_ns);
        row.ended_ts_ns = ended.map(|end| end.max(row.began_ts_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: i32, parent: i32, recording: Option<&str>) -> set::Process {
        set::Process {
            pid,
            parent: Some(parent),
            start_unix_ns: i64::from(pid),
            image_unix_ns: Some(i64::from(pid)),
            recording: recording.map(str::to_owned),
            ..set::Process::default()
        }
    }

    fn followed(rows: Vec<set::Process>, telling: &[(&str, &[i64])]) -> Followed {
        let named = telling.iter();
        let named = named.map(|(name, asked)| ((*name).to_owned(), asked.to_vec()));
        Followed {
            processes: rows.into(),
            asked: Vec::new(),
            telling: named.collect(),
        }
    }

    /// `bash -c '(/bin/echo one; exec /bin/echo two); true'`
    #[test]
    fn what_a_copy_made_before_it_executed_a_program_is_of_the_copied_program() {
        let copy = set::Process {
            image_unix_ns: Some(105),
            ..row(101, 100, Some("two"))
        };
        let late = row(106, 101, None);
        let rows = vec![
            row(100, 1, Some("bash")),
            copy,
            row(102, 101, Some("one")),
            late,
        ];
        let followed = followed(rows, &[("bash", &[101, 102]), ("one", &[]), ("two", &[])]);
        assert_eq!(followed.made_by("bash", &[]), [1, 2]);
        assert!(followed.made_by("bash", &[101, 102]).is_empty());
        assert_eq!(followed.made_by("two", &[]), [3]);
        assert!(followed.untold().is_empty());
    }

    #[test]
    fn processes_whose_makers_recording_was_removed_are_told_once_if_the_set_is_asked() {
        let removed = |row: set::Process| set::Process {
            is_pruned: true,
            ..row
        };
        let became = set::Process {
            became_another: true,
            ..removed(row(103, 102, None))
        };
        let rows = vec![
            removed(row(100, 1, None)),
            removed(row(101, 100, None)),
            row(102, 100, Some("kept")),
            became,
            row(103, 102, Some("too")),
        ];
        let all: &[(&str, &[i64])] = &[("kept", &[]), ("too", &[])];
        let asked = followed(rows.clone(), all);
        assert_eq!(asked.untold(), [0, 1]);
        // It has a row of its own, and what it executed before is told by its maker's.
        assert_eq!(asked.made_by("kept", &[]), [3]);
        assert!(followed(rows.clone(), &all[..1]).untold().is_empty());
        assert!(followed(rows, &[]).untold().is_empty());
    }
}
