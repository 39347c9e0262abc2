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
    /// The recordings of the set that are asked, by the names of their folders.
    pub names: HashSet<String>,
    /// It is the first of them: it tells of the processes that no recording tells of.
    pub is_first: bool,
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
        let lineages = all.iter().filter_map(|other| other.manifest().lineage);
        let mut followed = Followed {
            asked: children(own.manifest().recording_id, lineages),
            processes,
            ..Followed::default()
        };
        if !followed.processes.is_empty() {
            let set = own.dir().parent();
            let dirs = all.iter().map(|other| other.dir());
            let mut of_set = dirs.filter(|dir| dir.parent() == set).peekable();
            followed.is_first = of_set.peek().is_some_and(|first| *first == own.dir());
            followed.names = of_set.filter_map(folder_name).map(str::to_owned).collect();
        }
        followed
    }

    /// Adds to the processes that the program's own events tell of what the set knows of them, and those that only the set
    /// knows: copies that it made and that made copies in turn. Leaves out those that have rows of their own.
    pub fn complete(&self, mut known: Vec<Process>, recording: &Recording) -> Vec<Process> {
        let mut own = known.drain(..1.min(known.len())).collect::<Vec<_>>();
        let start = recording.manifest().start_unix_ns;
        let name = folder_name(recording.dir()).unwrap_or_default();
        known.retain(|row| !self.is_left_out(row, name, start));
        let mut told = self.told_by(name);
        told.extend(self.untold());
        told.sort_unstable();
        self.tell_of(&told, &mut known, start);
        own.append(&mut known);
        own
    }

    /// Returns whether a process that an event of the recording `own` tells of has a row of its own.
    fn is_left_out(&self, row: &Process, own: &str, start_unix_ns: i64) -> bool {
        let all = self.processes.iter().enumerate();
        let others = all.filter(|(_, process)| process.recording.as_deref() != Some(own));
        let same = others.filter(|(_, process)| i64::from(process.pid) == row.pid);
        // Numbers are used again.
        let nearest = same.min_by_key(|(_, process)| {
            let began_ns = process.start_unix_ns - start_unix_ns;
            row.began_ts_ns.abs_diff(began_ns)
        });
        match nearest {
            Some((at, _)) => self.has_own_row(at),
            None => self.asked.contains(&row.pid),
        }
    }

    /// Returns whether the recording of a process is asked, or that of a program which it executed later.
    fn has_own_row(&self, at: usize) -> bool {
        let pid = self.processes[at].pid;
        let mut later = self.processes[at..].iter().filter(|later| later.pid == pid);
        let decides = later.find_map(|process| {
            let is_asked = process
                .recording
                .as_ref()
                .is_some_and(|name| self.names.contains(name));
            (is_asked || !process.became_another).then_some(is_asked)
        });
        decides.unwrap_or(false)
    }

    /// Adds what the set knows of processes to their rows, or gives them one. Programs that a process executed one after the other
    /// share its row.
    fn tell_of(&self, told: &[usize], known: &mut Vec<Process>, start_unix_ns: i64) {
        // Of each number, the last process and its row.
        let mut last: HashMap<i32, (&set::Process, usize)> = HashMap::new();
        let mut taken = HashSet::new();
        for at in told {
            let process = &self.processes[*at];
            let pid = i64::from(process.pid);
            let began_ns = process.start_unix_ns - start_unix_ns;
            let before = last.get(&process.pid).copied();
            let before = before.filter(|(before, _)| before.became_another);
            let rows = known.iter().enumerate();
            let same = rows.filter(|(row, known)| known.pid == pid && !taken.contains(row));
            let nearest = same.min_by_key(|(_, known)| known.began_ts_ns.abs_diff(began_ns));
            let nearest = nearest.map(|(row, _)| row);
            let row = before.map(|(_, row)| row).or(nearest);
            let row = row.unwrap_or_else(|| {
                known.push(Process::unseen(pid, began_ns));
                known.len() - 1
            });
            tell(&mut known[row], process, start_unix_ns);
            taken.insert(row);
            last.insert(process.pid, (process, row));
        }
    }

    /// If all recordings of the set are asked, returns the processes that none of them tells of: the one of their maker was removed.
    fn untold(&self) -> Vec<usize> {
        let is_missing = |process: &set::Process| {
            let recording = process.recording.as_ref();
            recording.is_some_and(|recording| !self.names.contains(recording))
        };
        if !self.is_first || self.processes.iter().any(is_missing) {
            return Vec::new();
        }
        let told = self.names.iter().flat_map(|name| self.told_by(name));
        let told: HashSet<usize> = told.collect();
        let all = 0..self.processes.len();
        all.filter(|at| !told.contains(at) && !self.has_own_row(*at))
            .collect()
    }

    /// Returns the processes that the recording `name` tells of beside its own.
    fn told_by(&self, name: &str) -> Vec<usize> {
        let made = self.made_by(name).into_iter();
        made.filter(|at| !self.has_own_row(*at)).collect()
    }

    /// Returns the processes that the program of the recording `name` made, and those that these made without being recorded.
    fn made_by(&self, name: &str) -> Vec<usize> {
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
            if belongs && !is_own(process) {
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

/// Returns the name of a recording's folder.
fn folder_name(recording: &Path) -> Option<&str> {
    recording.file_name()?.to_str()
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
    if row.ended.is_none() && !process.became_another {
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

    fn followed(rows: Vec<set::Process>, names: &[&str]) -> Followed {
        Followed {
            processes: rows.into(),
            asked: Vec::new(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            is_first: true,
        }
    }

    fn became(row: set::Process) -> set::Process {
        set::Process {
            became_another: true,
            ..row
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
        let followed = followed(rows, &["bash", "one", "two"]);
        assert_eq!(followed.made_by("bash"), [1, 2]);
        assert!(followed.told_by("bash").is_empty());
        assert_eq!(followed.told_by("two"), [3]);
        assert!(followed.untold().is_empty());
    }

    #[test]
    fn processes_whose_makers_recording_was_removed_are_told_once_if_the_set_is_asked() {
        let removed = |row: set::Process| set::Process {
            is_pruned: true,
            ..row
        };
        let rows = vec![
            removed(row(100, 1, None)),
            removed(row(101, 100, None)),
            row(102, 100, Some("kept")),
            became(removed(row(103, 102, None))),
            row(103, 102, Some("too")),
        ];
        let asked = followed(rows.clone(), &["kept", "too"]);
        assert_eq!(asked.untold(), [0, 1]);
        // It has a row of its own, of what it executed last.
        assert!(asked.told_by("kept").is_empty());
        assert_eq!(followed(rows.clone(), &["kept"]).told_by("kept"), [3]);
        assert!(followed(rows.clone(), &["kept"]).untold().is_empty());
        let second = Followed {
            is_first: false,
            ..followed(rows, &["kept", "too"])
        };
        assert!(second.untold().is_empty());
    }

    /// `bash -c './unrecorded.sh & ...'`, where that executes a recorded program, and later another process gets its number.
    #[test]
    fn a_process_that_is_recorded_from_its_second_program_on_has_one_row() {
        let again = set::Process {
            start_unix_ns: 300,
            ..row(101, 100, None)
        };
        let rows = vec![
            row(100, 1, Some("bash")),
            became(row(101, 100, None)),
            row(101, 100, Some("two")),
            again,
        ];
        let asked = followed(rows, &["bash", "two"]);
        assert_eq!(asked.told_by("bash"), [3]);
        assert!(asked.told_by("two").is_empty());
        assert!(asked.untold().is_empty());
        let event = |began_ts_ns| Process::unseen(101, began_ts_ns);
        assert!(asked.is_left_out(&event(102), "bash", 0));
        assert!(!asked.is_left_out(&event(299), "bash", 0));
    }

    #[test]
    fn programs_that_no_recording_is_of_share_the_row_of_their_process() {
        let later = set::Process {
            start_unix_ns: 200,
            exit_code: Some(3),
            end_unix_ns: Some(210),
            argv: vec!["later".to_owned()],
            ..row(101, 100, None)
        };
        let first = set::Process {
            end_unix_ns: Some(200),
            argv: vec!["first".to_owned()],
            ..became(row(101, 100, None))
        };
        let again = set::Process {
            start_unix_ns: 300,
            ..row(101, 100, None)
        };
        let rows = vec![row(100, 1, Some("bash")), first, later, again];
        let asked = followed(rows, &["bash"]);
        let mut known = vec![Process::unseen(101, 99)];
        asked.tell_of(&asked.told_by("bash"), &mut known, 0);
        let told: Vec<_> = known
            .iter()
            .map(|row| (row.began_ts_ns, row.exit_code, row.ended_ts_ns))
            .collect();
        assert_eq!(told, [(99, Some(3), Some(210)), (300, None, None)]);
        assert_eq!(known[0].program.as_deref(), Some("first"));
    }
}
