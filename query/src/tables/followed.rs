//! What `record --children` saw of the processes that a recorded program made: more than the program itself was told.

use std::collections::HashMap;
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
pub fn children(own: RecordingId, lineages: impl Iterator<Item = Lineage>) -> Vec<i64> {
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
    /// Adds to the processes that the program's own events tell of what the set knows of them, and those that only the set
    /// knows: copies that it made and that made copies in turn. Leaves out those that have rows of their own.
    pub fn complete(&self, mut known: Vec<Process>, recording: &Recording) -> Vec<Process> {
        let mut own = known.drain(..1.min(known.len())).collect::<Vec<_>>();
        known.retain(|row| !self.asked.contains(&row.pid));
        let start = recording.manifest().start_unix_ns;
        for process in self.made_by(recording.dir()) {
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
        own.append(&mut known);
        own
    }

    /// Returns the processes that the program of a recording made, and those that these made without being recorded.
    fn made_by(&self, recording: &Path) -> Vec<&set::Process> {
        let name = recording.file_name().and_then(|name| name.to_str());
        let is_own =
            |process: &set::Process| name.is_some() && process.recording.as_deref() == name;
        // Of each number, the last process, and whether its rows belong to this recording.
        let mut newest: HashMap<i32, (&set::Process, bool)> = HashMap::new();
        let mut made = Vec::new();
        for process in &*self.processes {
            let before = newest.get(&process.pid).copied();
            let before = before.filter(|(before, _)| before.became_another);
            let parent = process
                .parent
                .and_then(|parent| newest.get(&parent).copied());
            let belongs = before.or(parent).is_some_and(|(_, belongs)| belongs);
            let is_recorded = process.recording.is_some();
            if belongs && !is_own(process) && !self.asked.contains(&process.pid.into()) {
                made.push(process);
            }
            let owns = is_own(process) || (belongs && !is_recorded);
            newest.insert(process.pid, (process, owns));
        }
        made
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
