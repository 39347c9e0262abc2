//! Describes a recording as a whole; written once when it starts and never changed.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
pub use serde_bytes::ByteBuf;

pub use crate::clock::ClockCalibration;

/// Sixteen random bytes that identify this recording's files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordingId(pub [u8; 16]);

impl fmt::Display for RecordingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RecordingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordingId({self})")
    }
}

/// Everything known about a recording when it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the recording's files.
    pub format_version: u32,
    /// The id in the header of every other file.
    pub recording_id: RecordingId,
    /// The release that made the recording.
    pub hindsight_version: String,
    /// The release of Frida that loaded the agent; none if Frida took no part.
    pub frida_version: Option<String>,
    /// The machine.
    pub host: Host,
    /// The command line of the target, with replacement characters for invalid UTF-8.
    pub argv: Vec<String>,
    /// The working directory of the target.
    pub cwd: String,
    /// Wall clock when `ts_ns` was 0, in nanoseconds since 1970.
    pub start_unix_ns: i64,
    /// `CLOCK_MONOTONIC` then, in nanoseconds; none for core files and in recordings of older releases.
    #[serde(default)]
    pub start_monotonic_ns: Option<u64>,
    /// The clock of the records' ticks.
    pub clock: ClockCalibration,
    /// The settings that the user chose.
    pub settings: Settings,
    /// What is needed to start the target again; none if it ran before, or in recordings of older releases.
    #[serde(default)]
    pub launch: Option<Launch>,
    /// What the user called this run, by key.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The name that this recording would have, without the ending, if it had not been taken: a number follows it in
    /// its own name.
    #[serde(default)]
    pub run_of: Option<String>,
    /// Which process it is; none in core files, and in recordings of older releases that are not part of a set.
    #[serde(default)]
    pub lineage: Option<Lineage>,
}

/// A process, and its place among those that were recorded with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// Its id.
    pub pid: i32,
    /// The id of the process that started it, even if it has another parent by now.
    pub parent_pid: i32,
    /// The recording of the program that started it, or that it executed before; none if there is none, as for the first of a set.
    pub parent_run: Option<RecordingId>,
}

/// The machine a recording was made on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel name and release, as `uname -sr` shows them.
    pub kernel: String,
    /// Model name of the processor.
    pub cpu: String,
    /// Its name in the network, as `uname -n` shows it; none in core files and in recordings of older releases.
    #[serde(default)]
    pub name: Option<String>,
}

/// The settings of the recorder that the user chose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The action of a thread when its ring is full.
    pub on_full: OnFull,
    /// The filters that chose the functions, as given.
    pub filters: Vec<String>,
    /// Whether segments stay after sealing.
    pub keep_log: bool,
    /// The data captured with each enter and leave, for people.
    #[serde(default)]
    pub captures: Vec<String>,
    /// Whether the target and its libraries have the same addresses in each run: randomization was disabled.
    #[serde(default)]
    pub no_aslr: bool,
    /// The places whose writes are logged from the start, as given.
    #[serde(default)]
    pub log_writes: Vec<String>,
}

/// What [`Settings::captures`] has if every instruction is recorded.
pub const EVERY_INSTRUCTION: &str = "every instruction";

/// The entries of [`Settings::captures`] that record calls of their own, not data of other calls.
const OWN_CALLS: [&str; 4] = ["system calls", "memory", "locks", EVERY_INSTRUCTION];

impl Settings {
    /// Returns whether every instruction is recorded: the recording has a log of what the program cannot compute, and the
    /// time of an event is the number of instructions executed before it.
    #[must_use]
    pub fn has_every_instruction(&self) -> bool {
        let mut captures = self.captures.iter();
        captures.any(|capture| capture == EVERY_INSTRUCTION)
    }

    /// Returns whether data is captured with each enter and leave.
    #[must_use]
    pub fn captures_with_calls(&self) -> bool {
        let mut captures = self.captures.iter();
        captures.any(|capture| !OWN_CALLS.contains(&capture.as_str()))
    }
}

/// How the target was started, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<ByteBuf>,
    /// Its working directory.
    pub cwd: ByteBuf,
    /// Its environment: `NAME=VALUE` each.
    pub env: Vec<ByteBuf>,
    /// Its standard input.
    pub stdin: Stdin,
    /// The options of `record` for the same recording.
    pub options: Vec<String>,
}

/// What a target's standard input was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdin {
    /// A file, read from its beginning.
    File(ByteBuf),
    /// A terminal.
    Terminal,
    /// Something that cannot be read again: a pipe, a socket, a file from its middle.
    Once,
}

/// The action of a thread of the target when its ring is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFull {
    /// Waits: nothing is lost.
    #[default]
    Block,
    /// Continues: a gap counts the losses.
    Drop,
}
