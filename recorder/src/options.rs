//! The options of a recording, and its outcome.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{ffi::OsString, num::NonZeroU64, sync::Arc, time::Duration};

use debuginfo::Diagnostic;
use serde::{Deserialize, Serialize};
use store::manifest::Lineage;
pub use store::manifest::OnFull;

use crate::Result;
use crate::arm::{Also, Filter};
use crate::process::Parked;

/// What to record and how.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The output folder; `None`: the program's name in the current folder, made unique.
    pub output: Option<PathBuf>,
    /// Patterns of functions to trace; none: all of the program's own functions.
    pub include: Vec<String>,
    /// Patterns of functions not to trace.
    pub exclude: Vec<String>,
    /// What a thread does when its ring is full.
    pub on_full: OnFull,
    /// When to copy the program's writable memory.
    pub snapshots: SnapshotTimes,
    /// What else to capture with each enter and leave.
    pub captures: Captures,
    /// Whether to keep the log's segments after sealing.
    pub keep_log: bool,
    /// The recording ends when its folder has this many bytes, and the program continues unrecorded. `None`: there is no limit.
    pub max_size: Option<u64>,
    /// The settings of a started program.
    pub surroundings: Surroundings,
    /// A command that calls [`guard`](crate::guard) with the process id, which is appended as its last argument. It
    /// runs beside the recording, and undoes the patches if this process is killed. `None`: the patches then stay, and
    /// do nothing.
    pub guardian: Option<Vec<OsString>>,
    /// What to call this run, by key.
    pub labels: BTreeMap<String, String>,
    /// The process to record.
    pub target: Target,
}

impl RecordOptions {
    /// Returns the filter that selects the functions to record.
    ///
    /// # Errors
    /// [`Error::Pattern`](crate::Error::Pattern) if a pattern is empty.
    pub(crate) fn filter(&self) -> Result<Filter> {
        let filter = Filter::new(&self.include, &self.exclude)?;
        Ok(filter.and_also(Also::of(&self.captures)))
    }
}

/// The settings of a started program other than its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// It and its libraries get the same addresses in each run.
    pub no_aslr: bool,
    /// Its whole environment; `None`: ours.
    pub env: Option<Vec<(OsString, OsString)>>,
    /// The file that is its standard input; `None`: it inherits ours.
    pub stdin: Option<PathBuf>,
    /// Its `argv[0]`, where the first word is the file that was found for it; `None`: the first word.
    pub name: Option<OsString>,
}

/// What to capture with each enter and leave in addition to arguments and results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captures {
    /// All general registers.
    pub registers: bool,
    /// Number of bytes of the stack from rsp on; at most [`agent::shared::CAPTURE_STACK_MAX`].
    pub stack_len: u32,
    /// At enters, the text that arguments point to, at most 256 bytes each.
    pub texts: bool,
    /// At enters and leaves, the memory that pointer and reference arguments point to, at most 256 bytes each.
    pub pointees: bool,
    /// The program's system calls.
    pub system_calls: bool,
    /// Also the calls that allocate and free memory.
    pub memory: bool,
    /// Also the calls that lock, unlock or wait.
    pub locks: bool,
    /// Expressions over global variables: the memory that their values consist of.
    pub watches: Vec<String>,
}

impl Captures {
    /// Describes what is captured for the user, one entry each.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        if self.registers {
            names.push("registers".to_owned());
        }
        if self.stack_len > 0 {
            names.push(format!("{} bytes of stack", self.stack_len));
        }
        if self.texts {
            names.push("texts".to_owned());
        }
        if self.pointees {
            names.push("pointees".to_owned());
        }
        if self.system_calls {
            names.push("system calls".to_owned());
        }
        if self.memory {
            names.push("memory".to_owned());
        }
        if self.locks {
            names.push("locks".to_owned());
        }
        names.extend(self.watches.iter().map(|watch| format!("watch {watch}")));
        names
    }
}

/// When to copy the program's writable memory: all of it the first time, then the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotTimes {
    /// Never.
    Never,
    /// When the recording begins, and at each pause of live control in which no thread runs.
    #[default]
    AtPauses,
    /// As `AtPauses`, and whenever this much time has passed since the last copy. The program is stopped meanwhile.
    Every(Duration),
    /// As `AtPauses`, and whenever the program's threads have written this many events since the last copy, or a few
    /// more: events are counted when they are moved to the log. The program is stopped meanwhile.
    EveryEvents(NonZeroU64),
}

/// The process to record.
#[derive(Clone, Debug)]
pub enum Target {
    /// A new one.
    Spawn {
        /// Program (looked up in PATH) and arguments.
        argv: Vec<OsString>,
    },
    /// A running one.
    Attach {
        /// Process id.
        pid: i32,
        /// Time limit; `None`: until Ctrl-C or its end.
        duration: Option<Duration>,
    },
    /// One of a set that another recorder has parked at its entry point.
    Parked(Arc<Member>),
}

/// A process of a set, for its recorder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// The process.
    pub parked: Parked,
    /// Where it comes from.
    pub lineage: Lineage,
    /// It is a copy of its parent, made by fork, which waits where fork has returned.
    pub is_copy: bool,
    /// Copies of it are recorded too.
    #[serde(skip)]
    pub records_copies: bool,
    /// The set's folder. It is sent apart from the rest, because a path need not be text.
    #[serde(skip)]
    pub set: PathBuf,
    /// The command that records the processes it starts, and what it executes next: it reads a member from its standard
    /// input, and answers on its standard output.
    #[serde(skip)]
    pub recorder: Vec<OsString>,
}

/// Receives progress reports. Calls may come from any thread.
pub trait Observer: Sync {
    /// Reports a step of the set-up that happens once per machine.
    fn setup(&self, message: &str) {
        let _ = message;
    }

    /// Reports that the recording exists: its folder.
    fn created(&self, recording: &Path) {
        let _ = recording;
    }

    /// Reports that a program of which every instruction is recorded has ended, and is run again to find its calls: up to this one
    /// of its instructions.
    fn finding_calls(&self, done: u64, total: u64) {
        let _ = (done, total);
    }

    /// Reports that the program has ended (or was detached) and its recording is being sealed.
    fn sealing(&self, done_events: u64, done_bytes: u64, total_bytes: u64) {
        let _ = (done_events, done_bytes, total_bytes);
    }

    /// Reports something the user should know. The recording continues.
    fn warning(&self, warning: &Diagnostic) {
        let _ = warning;
    }
}

/// How the target ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With an exit code.
    Code(i32),
    /// Killed by a signal.
    Signal(i32),
    /// It was left running, or ended unobserved.
    Detached,
}

/// The signal that ended the program, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// The signal.
    pub signal: i32,
    /// The thread that received it.
    pub tid: u32,
    /// The faulting address.
    pub addr: Option<u64>,
    /// The function that was running.
    pub function: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The recording's folder.
    pub recording: PathBuf,
    /// Number of events.
    pub events: u64,
    /// Number of calls.
    pub calls: u64,
    /// Number of threads seen.
    pub threads: u64,
    /// Number of records lost.
    pub gaps_lost: u64,
    /// Duration of the recording in nanoseconds.
    pub duration_ns: u64,
    /// Total size of the recording's files, in bytes.
    pub bytes_on_disk: u64,
    /// Number of functions armed.
    pub armed: u64,
    /// Number of functions that could not be armed.
    pub skipped: u64,
    /// How the target ended.
    pub exit: Exit,
    /// Where a signal has ended it, if that was observed.
    pub death: Option<Death>,
    /// Why the recording is incomplete, if it is.
    pub incomplete: Option<String>,
    /// Whether the numbers of events and calls are known.
    pub counting: Counting,
    /// Whether the kernel counted page faults of children: there was at least one, and the target waited for it. False if nothing
    /// is known.
    pub had_children: bool,
}

/// Whether the numbers of events and calls are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// They are. After a failure they are counted as a reader does, if it can.
    Done,
    /// Ctrl-C ended sealing. All events are recorded, and the next reader seals the rest.
    Left,
    /// They cannot be counted.
    Failed,
}
