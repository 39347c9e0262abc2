//! What a recording is asked for, and what came of it.

use std::{ffi::OsString, num::NonZeroU64, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
pub use store::manifest::OnFull;

/// What to record and how.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Where to; `None`: the program's name in the current folder, made unique.
    pub output: Option<PathBuf>,
    /// Patterns of functions to trace; none: all of the program's own.
    pub include: Vec<String>,
    /// Patterns of functions not to trace.
    pub exclude: Vec<String>,
    /// What a thread does when its ring is full.
    pub on_full: OnFull,
    /// When the program's writable memory is copied.
    pub snapshots: SnapshotTimes,
    /// What is kept besides with each enter and leave.
    pub captures: Captures,
    /// Keep the log's segments after sealing.
    pub keep_log: bool,
    /// A command that calls [`guard`](crate::guard) with the number it gets as its last argument. It runs beside the
    /// recording, and takes the patches back if this process is killed. `None`: they then stay, and do nothing.
    pub guardian: Option<Vec<OsString>>,
    /// Which process.
    pub target: Target,
}

/// What is kept with each enter and leave besides arguments and results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captures {
    /// All general registers.
    pub registers: bool,
    /// So many bytes of the stack from rsp on; at most [`agent::shared::CAPTURE_STACK_MAX`].
    pub stack_len: u32,
    /// At enters, the text behind arguments that are text, of each at most 256 bytes.
    pub texts: bool,
    /// At enters and at leaves, what arguments lead to that are pointers or references, of each at most 256 bytes.
    pub pointees: bool,
    /// Expressions over global variables: the memory that their values are made of.
    pub watches: Vec<String>,
}

impl Captures {
    /// Says what is captured, for people; one entry each.
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
        names.extend(self.watches.iter().map(|watch| format!("watch {watch}")));
        names
    }
}

/// When the program's writable memory is copied: all of it the first time, then what has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotTimes {
    /// Never.
    Never,
    /// When the recording begins, and at each pause of live control in which no thread runs.
    #[default]
    AtPauses,
    /// At these times, and whenever so much time has passed since the last one. The program stands still meanwhile.
    Every(Duration),
    /// At these times, and whenever the program's threads have left so many events since the last one, or a few more: they
    /// are counted when they are moved to the log. The program stands still meanwhile.
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
        /// For how long; `None`: until Ctrl-C or its end.
        duration: Option<Duration>,
    },
}

/// Is told what takes time. Calls may come from any thread.
pub trait Observer: Sync {
    /// A step of the set-up that happens once per machine.
    fn setup(&self, message: &str) {
        let _ = message;
    }

    /// The program has ended (or was left) and its recording is being sealed.
    fn sealing(&self, done_events: u64, done_bytes: u64, total_bytes: u64) {
        let _ = (done_events, done_bytes, total_bytes);
    }

    /// Something the user should know; the recording goes on.
    fn warning(&self, message: &str) {
        let _ = message;
    }
}

/// How the target ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With an exit code.
    Code(i32),
    /// Killed by a signal.
    Signal(i32),
    /// It was left running, or ended out of sight.
    Detached,
}

/// A signal has ended the program, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// The signal.
    pub signal: i32,
    /// The thread that got it.
    pub tid: u32,
    /// The address that could not be used.
    pub addr: Option<u64>,
    /// The function that ran.
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
    /// Number of threads that were seen.
    pub threads: u64,
    /// Number of records lost.
    pub gaps_lost: u64,
    /// From the start to the end of the recording, in nanoseconds.
    pub duration_ns: u64,
    /// Length of all files of the recording, in bytes.
    pub bytes_on_disk: u64,
    /// Number of functions armed.
    pub armed: u64,
    /// Number of functions that could not be armed.
    pub skipped: u64,
    /// How the target ended.
    pub exit: Exit,
    /// Where a signal has ended it, if that was seen.
    pub death: Option<Death>,
    /// Why the recording is not whole, if it is not.
    pub incomplete: Option<String>,
}
