//! The program of a recorder and the processes that Ctrl-C reaches with it in a terminal: those of its group. The recorder is of the
//! same group, and so are the processes in which it runs the program again afterwards; none of these is ended.

use std::collections::HashSet;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long they may take to end by themselves.
const GRACE: Duration = Duration::from_secs(1);
/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(20);

/// A process: its number may be used again, but not with the time of its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Process {
    pid: i32,
    start: u64,
}

/// What the kernel tells of a process.
struct Stat {
    process: Process,
    has_ended: bool,
    parent: i32,
    group: i32,
}

/// The program of a recorder, and the processes of its group.
pub(crate) struct Group {
    recorder: i32,
    program: Process,
    others: HashSet<Process>,
}

impl Group {
    /// Returns those of the program `pid`; `None` if it has ended.
    pub fn of(pid: i32, recorder: u32) -> Option<Group> {
        let recorder = i32::try_from(recorder).ok()?;
        // When it has ended, its number may be another process's.
        let program = stat(pid).filter(|program| program.parent == recorder)?;
        Some(Group {
            recorder,
            program: program.process,
            others: HashSet::new(),
        })
    }

    /// Ends them as Ctrl-C does, and kills those that have not ended some time later.
    pub fn end(&mut self) {
        self.look();
        self.send(Signal::INT);
        let until = Instant::now() + GRACE;
        while (self.look() || self.are_left()) && Instant::now() < until {
            sleep(LOOK);
        }
        self.send(Signal::KILL);
    }

    /// Adds the processes that were made meanwhile, and returns whether the program runs.
    fn look(&mut self) -> bool {
        let groups = [self.recorder, self.program.pid];
        let found = all().filter(|found| {
            groups.contains(&found.group)
                && found.process.pid != self.recorder
                && found.parent != self.recorder
        });
        let found: Vec<Process> = found.map(|found| found.process).collect();
        // When it has ended, the recorder makes processes of its own. It waits for the program before that.
        let runs = is_there(self.program);
        if runs {
            self.others.extend(found);
        }
        runs
    }

    fn are_left(&self) -> bool {
        let mut others = self.others.iter();
        others.any(|other| {
            stat(other.pid).is_some_and(|found| found.process == *other && !found.has_ended)
        })
    }

    fn send(&self, signal: Signal) {
        for process in [&self.program].into_iter().chain(&self.others) {
            if is_there(*process)
                && let Some(pid) = Pid::from_raw(process.pid)
            {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

fn is_there(process: Process) -> bool {
    stat(process.pid).is_some_and(|found| found.process == process)
}

/// Returns all processes.
fn all() -> impl Iterator<Item = Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter_map(stat)
}

fn stat(pid: i32) -> Option<Stat> {
    parsed(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parsed(pid: i32, stat: &str) -> Option<Stat> {
    // The name is in parentheses and may contain any character. The state is the 3rd field, the start the 22nd.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(Stat {
        process: Process {
            pid,
            start: fields.get(19)?.parse().ok()?,
        },
        has_ended: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let text = "7 (a) b (c)) Z 5 6 6 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 8 9\n";
        let found = parsed(7, text).unwrap();
        assert_eq!(
            found.process,
            Process {
                pid: 7,
                start: 4711
            }
        );
        assert_eq!((found.parent, found.group, found.has_ended), (5, 6, true));
        assert!(parsed(7, "7 (a) Z 5").is_none());
    }
}
