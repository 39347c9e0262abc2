//! Follows the processes that a program creates, through its events and system calls: what created each, and how it
//! ended, if the program waited for it.
//!
//! What a process does is not in the recording of its parent.

use std::collections::HashSet;

use store::shell::words;

use super::files::{At, Made};
use super::structures::{text_of, texts};
use super::{Call, name, values};

/// System calls that make processes.
const MAKING: [&str; 4] = ["fork", "vfork", "clone", "clone3"];
/// The argument of wait4 that points to the status.
const STATUS: usize = 1;
const STOPPED: u64 = 0x7f;
const CONTINUED: u64 = 0xffff;
const CLONE_THREAD: u64 = 0x10000;

/// Another fact from an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The recorded program began: its number.
    Begins { pid: i64 },
    /// It executed another program.
    Executes { path: Option<String> },
    /// It did not, and goes on.
    ExecuteFailed,
    /// A thread made a process.
    Forks { child: i64 },
    /// The program ended.
    Ends {
        code: Option<i64>,
        signal: Option<String>,
    },
}

/// An event and its fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: At,
    pub tid: Option<u32>,
    pub told: Told,
}

/// What is known about the recorded program from its start.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// The program, as it was called.
    pub program: Option<String>,
    /// Its arguments, quoted where a shell needs it.
    pub arguments: Option<String>,
    /// The process that started it.
    pub parent: Option<i64>,
}

/// A process, or a program that it executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i64,
    pub parent: Option<i64>,
    /// The recorded program, or the path of the program that it executed.
    pub program: Option<String>,
    /// Arguments of the recorded program.
    pub arguments: Option<String>,
    /// The system call that created it, `fork` if none was recorded.
    pub made_by: &'static str,
    pub tid: Option<u32>,
    /// The event of its beginning. `None`: only its set knows of it.
    pub began: Option<u64>,
    pub began_ts_ns: i64,
    /// The recorded call that made it.
    pub within: Option<u64>,
    pub exit_code: Option<i64>,
    pub exit_signal: Option<String>,
    /// The end of the call that waited for it, or the program's own end.
    pub ended: Option<u64>,
    pub ended_ts_ns: Option<i64>,
}

impl Process {
    /// Returns a process that no event tells of.
    pub fn unseen(pid: i64, began_ts_ns: i64) -> Self {
        let at = At {
            seq: 0,
            ts_ns: began_ts_ns,
        };
        Self {
            began: None,
            ..process(pid, None, "fork", at, None)
        }
    }

    fn end(&mut self, at: At) {
        (self.ended, self.ended_ts_ns) = (Some(at.seq), Some(at.ts_ns));
    }
}

/// Returns the processes, in the order of their beginning.
pub fn processes(mut events: Vec<Event>, calls: &[Made<'_>], program: &Own) -> Vec<Process> {
    events.sort_by_key(|event| event.at.seq);
    let mut found: Vec<Process> = Vec::new();
    let mut told: HashSet<u64> = HashSet::new();
    let mut own = None;
    for event in events {
        match event.told {
            Told::Begins { pid } if own.is_none() => {
                own = Some(pid);
                let path = program.program.clone();
                found.push(Process {
                    tid: event.tid,
                    arguments: program.arguments.clone(),
                    ..process(pid, program.parent, "execve", event.at, path)
                });
            }
            Told::Begins { .. } => {}
            Told::Executes { path } => {
                // A program that executes a second one was not replaced by the first, whatever was recorded between.
                forget_execution(&mut found, own);
                let pid = own.unwrap_or_default();
                let by = executor(calls, event.tid, event.at.seq);
                found.push(Process {
                    tid: event.tid,
                    arguments: by.and_then(arguments),
                    ..process(pid, program.parent, "execve", event.at, path)
                });
            }
            Told::ExecuteFailed => forget_execution(&mut found, own),
            Told::Forks { child } => {
                let by = maker(calls, child, event.at.seq);
                told.extend(by.map(|made| made.began.seq));
                let by_name = by.and_then(|made| name(made.call.number));
                found.push(Process {
                    tid: event.tid,
                    within: by.and_then(|made| made.within),
                    ..process(child, own, by_name.unwrap_or("fork"), event.at, None)
                });
            }
            Told::Ends { code, signal } => {
                let last = found.iter_mut().rfind(|process| Some(process.pid) == own);
                if let Some(process) = last {
                    (process.exit_code, process.exit_signal) = (code, signal);
                    process.end(event.at);
                }
            }
        }
    }
    found.extend(untold(calls, &told, own));
    found.sort_by_key(|process| process.began);
    let mut ends: Vec<_> = calls.iter().filter_map(end).collect();
    ends.sort_by_key(|(_, _, at)| at.seq);
    for (pid, status, at) in ends {
        // A process id may be reused after its process was waited for.
        let waited = found.iter_mut().find(|process| {
            process.pid == pid && process.ended.is_none() && process.began < Some(at.seq)
        });
        if let Some(process) = waited {
            process.end(at);
            (process.exit_code, process.exit_signal) = status;
        }
    }
    found
}

/// Removes the program that the recorded one executed, because it goes on.
fn forget_execution(found: &mut Vec<Process>, own: Option<i64>) {
    let executed = found.iter().rposition(|row| Some(row.pid) == own);
    if let Some(executed) = executed.filter(|executed| *executed > 0) {
        found.remove(executed);
    }
}

fn process(
    pid: i64,
    parent: Option<i64>,
    made_by: &'static str,
    began: At,
    program: Option<String>,
) -> Process {
    Process {
        pid,
        parent,
        program,
        arguments: None,
        made_by,
        tid: None,
        began: Some(began.seq),
        began_ts_ns: began.ts_ns,
        within: None,
        exit_code: None,
        exit_signal: None,
        ended: None,
        ended_ts_ns: None,
    }
}

/// Returns the processes of which only a system call tells: the C library's `clone` makes no event, nor does a direct
/// system call. `told` has the calls whose processes are known.
fn untold(calls: &[Made<'_>], told: &HashSet<u64>, parent: Option<i64>) -> Vec<Process> {
    let one = |made: &Made<'_>| {
        let child = made.call.result.filter(|child| *child > 0)?;
        let by = name(made.call.number).filter(|_| makes_process(&made.call))?;
        Some(Process {
            tid: made.tid,
            within: made.within,
            ..process(child, parent, by, made.began, None)
        })
    };
    let calls = calls.iter();
    let calls = calls.filter(|made| !told.contains(&made.began.seq));
    calls.filter_map(one).collect()
}

/// Returns whether a system call makes a process, as far as is known, and not a thread.
fn makes_process(call: &Call<'_>) -> bool {
    let flags = match name(call.number) {
        Some("fork" | "vfork") => Some(0),
        Some("clone") => Some(call.argument(0)),
        Some("clone3") => call.given(0).and_then(|bytes| values::number(bytes, 0, 8)),
        _ => None,
    };
    flags.is_some_and(|flags| flags & CLONE_THREAD == 0)
}

/// Returns the system call that created a process: the last one that began before its event and returned its number.
fn maker<'c, 'a>(calls: &'c [Made<'a>], child: i64, seq: u64) -> Option<&'c Made<'a>> {
    let made = calls.iter().filter(|made| {
        let is_one = name(made.call.number).is_some_and(|name| MAKING.contains(&name));
        is_one && made.call.result == Some(child) && made.began.seq < seq
    });
    made.max_by_key(|made| made.began.seq)
}

/// Returns the system call that executed the program whose event is `seq`: the thread's next one that did not fail, or the last one
/// before, where the event is that of its end.
fn executor<'c, 'a>(calls: &'c [Made<'a>], tid: Option<u32>, seq: u64) -> Option<&'c Made<'a>> {
    let made = |made: &&Made<'_>| {
        let is_one = matches!(name(made.call.number), Some("execve" | "execveat"));
        is_one && made.tid == tid && made.call.result.is_none_or(|result| result >= 0)
    };
    let executing = || calls.iter().filter(made);
    let after = executing().filter(|made| made.began.seq > seq);
    after.min_by_key(|made| made.began.seq).or_else(|| {
        let before = executing().filter(|made| made.began.seq < seq);
        before.max_by_key(|made| made.began.seq)
    })
}

/// Returns the arguments that a program was executed with, if all are recorded as far as a record has room: dots stand for the rest.
fn arguments(made: &Made<'_>) -> Option<String> {
    let index = match name(made.call.number) {
        Some("execveat") => 2,
        _ => 1,
    };
    let (all, is_cut) = texts(&made.call, index)?;
    let own = all.into_iter().skip(1).map(|(_, bytes)| {
        let (bytes, is_cut) = text_of(bytes?);
        let dots = if is_cut { "..." } else { "" };
        Some(String::from_utf8_lossy(bytes).into_owned() + dots)
    });
    let mut own: Vec<String> = own.collect::<Option<_>>()?;
    if is_cut {
        own.push("...".to_owned());
    }
    Some(words(&own))
}

/// How a process ended: exit code, or the signal that ended it.
type Status = (Option<i64>, Option<String>);

/// Returns the process that a call has waited for, how it ended, and when that was known.
fn end(made: &Made<'_>) -> Option<(i64, Status, At)> {
    let is_wait = name(made.call.number) == Some("wait4");
    let pid = made.call.result.filter(|pid| is_wait && *pid > 0)?;
    // Without a place for the status, the process has ended too, unless the call also waits for stops.
    let status = match made.call.argument(STATUS) {
        0 if made.call.argument(2) == 0 => None,
        0 => return None,
        _ => Some(values::number(made.call.made(STATUS)?, 0, 4)?),
    };
    let how = match status {
        None => (None, None),
        Some(status) if status & 0xff == STOPPED || status == CONTINUED => return None,
        Some(status) if status & STOPPED == 0 => (Some((status >> 8 & 0xff) as i64), None),
        Some(status) => {
            let mut signal = String::new();
            values::signal(&mut signal, status & STOPPED);
            (None, Some(signal))
        }
    };
    Some((pid, how, made.ended?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seq: u64) -> At {
        At {
            seq,
            ts_ns: seq as i64,
        }
    }

    fn event(seq: u64, told: Told) -> Event {
        Event {
            at: at(seq),
            tid: Some(7),
            told,
        }
    }

    fn begun(arguments: [u64; 6]) -> Vec<u8> {
        arguments.iter().flat_map(|arg| arg.to_le_bytes()).collect()
    }

    fn made<'a>(
        number: u64,
        begun: &'a [u8],
        written: &'static [u8],
        result: i64,
        from: u64,
    ) -> Made<'a> {
        Made {
            call: Call {
                number,
                begun,
                written,
                result: Some(result),
            },
            began: at(from),
            ended: Some(at(from + 1)),
            tid: Some(7),
            within: Some(from - 1),
        }
    }

    fn written(addr: u64, status: u32) -> Vec<u8> {
        let mut bytes = [addr.to_le_bytes(), 4u64.to_le_bytes()].concat();
        bytes.extend([status.to_le_bytes(), [0; 4]].concat());
        bytes
    }

    #[test]
    fn children_end_as_their_parent_is_told() {
        let (clone, vfork) = (begun([0; 6]), begun([0; 6]));
        let wait = |pid: u64| begun([pid, 0x1000, 0, 0, 0, 0]);
        let (first, second, stopped) = (wait(20), wait(21), wait(22));
        let (code, signal, stop) = (
            written(0x1000, 3 << 8),
            written(0x1000, 0x80 | 11),
            written(0x1000, 0x137f),
        );
        let none: &[u8] = &[];
        let call = |number, begun, written, result, from| Made {
            call: Call {
                number,
                begun,
                written,
                result: Some(result),
            },
            began: at(from),
            ended: Some(at(from + 1)),
            tid: Some(7),
            within: Some(from - 1),
        };
        let calls = [
            call(56, &clone[..], none, 20, 5),
            call(58, &vfork[..], none, 21, 10),
            call(61, &first[..], &code[..], 20, 20),
            call(61, &second[..], &signal[..], 21, 22),
            call(61, &stopped[..], &stop[..], 22, 24),
        ];
        let events = vec![
            event(0, Told::Begins { pid: 7 }),
            event(6, Told::Forks { child: 20 }),
            event(11, Told::Forks { child: 21 }),
            event(12, Told::Forks { child: 22 }),
            event(13, Told::Executes { path: None }),
            event(14, Told::ExecuteFailed),
            event(15, Told::ExecuteFailed),
            event(16, Told::Executes { path: None }),
            event(
                30,
                Told::Executes {
                    path: Some("/bin/true".to_owned()),
                },
            ),
            event(
                40,
                Told::Ends {
                    code: Some(0),
                    signal: None,
                },
            ),
        ];
        let own = Own {
            program: Some("sh".to_owned()),
            arguments: None,
            parent: Some(1),
        };
        let told: Vec<String> = processes(events, &calls, &own)
            .into_iter()
            .map(|row| {
                format!(
                    "{} {:?} {} {} {:?} {:?} {:?}",
                    row.pid,
                    row.parent,
                    row.made_by,
                    row.program.unwrap_or_default(),
                    row.exit_code,
                    row.exit_signal,
                    row.ended
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                "7 Some(1) execve sh None None None",
                "20 Some(7) clone  Some(3) None Some(21)",
                "21 Some(7) vfork  None Some(\"SIGSEGV\") Some(23)",
                "22 Some(7) fork  None None None",
                "7 Some(1) execve /bin/true Some(0) None Some(40)",
            ]
        );
    }

    /// The C library's `clone` gives no event of a new process.
    #[test]
    fn a_process_that_only_a_system_call_tells_of_is_one_of_them() {
        const THREAD: u64 = 0x3d_0f00;
        let flags_at = |flags: u64| {
            let section = [0x2000, 8, flags].map(u64::to_le_bytes).concat();
            [begun([0x2000, 88, 0, 0, 0, 0]), section].concat()
        };
        let (known, plain) = (begun([17, 0, 0, 0, 0, 0]), begun([17, 0, 0, 0, 0, 0]));
        let thread = begun([THREAD, 0, 0, 0, 0, 0]);
        let (child, other_thread) = (flags_at(0x4100), flags_at(THREAD));
        let (unknown, wait) = (begun([0; 6]), begun([21, 0, 0, 0, 0, 0]));
        let calls = [
            made(56, &known, &[], 20, 2),
            made(56, &plain, &[], 21, 5),
            made(56, &thread, &[], 22, 7),
            made(435, &child, &[], 23, 9),
            made(435, &other_thread, &[], 24, 11),
            made(435, &unknown, &[], 25, 13),
            made(56, &plain, &[], -11, 15),
            made(61, &wait, &[], 21, 17),
        ];
        let events = vec![
            event(0, Told::Begins { pid: 7 }),
            event(3, Told::Forks { child: 20 }),
        ];
        let told = processes(events, &calls, &Own::default());
        let told: Vec<_> = told
            .iter()
            .map(|row| (row.pid, row.parent, row.made_by, row.began, row.ended))
            .collect();
        assert_eq!(
            told,
            [
                (7, None, "execve", Some(0), None),
                (20, Some(7), "clone", Some(3), None),
                (21, Some(7), "clone", Some(5), Some(18)),
                (23, Some(7), "clone3", Some(9), None),
            ]
        );
    }
}
