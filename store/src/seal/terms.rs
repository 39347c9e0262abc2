//! The types by which a sealer and its caller communicate.

use super::definitions::DefinitionsFile;
use super::part::Part;
use crate::columns::SealedFile;

/// When parts end, and what happens to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealOptions {
    /// A part ends at the first watermark after this many calls.
    pub part_calls: u64,
    /// The same for other events.
    pub part_events: u64,
    /// The same for bytes of the log, so that deep recursion does not hold segments back.
    pub part_log_bytes: u64,
    /// Whether segments stay after sealing.
    pub keep_log: bool,
}

impl Default for SealOptions {
    fn default() -> Self {
        Self {
            part_calls: 4 << 20,
            part_events: 1 << 20,
            part_log_bytes: 256 << 20,
            keep_log: false,
        }
    }
}

/// How the numbering ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The log has no writer any more: everything in it counts.
    Close,
    /// The log continues: only what is older than the last watermark counts.
    LiveTail,
}

/// The progress of sealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Events numbered so far, from the start of the recording.
    pub events: u64,
    /// Bytes of the log read by this sealer.
    pub bytes_done: u64,
    /// Bytes of the log that the sealer had to read, as far as known.
    pub bytes_total: u64,
    /// Whether there is nothing to do for now.
    pub caught_up: bool,
}

/// The result of sealing: everything a query needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed {
    /// All parts in order.
    pub parts: Vec<SealedPart>,
    /// The definitions, in order.
    pub definitions: Vec<DefinitionsFile>,
    /// Number of events.
    pub events: u64,
    /// Time of the last numbered event, in nanoseconds.
    pub last_ts_ns: i64,
    /// When the program was started or attached to, in nanoseconds; 0 if that is not known.
    pub began_ns: i64,
    /// Bytes at the log's end that are not a whole frame.
    pub torn_bytes: u64,
}

/// A part and its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPart {
    /// Its content.
    pub part: Part,
    /// The file of calls.
    pub calls: SealedFile,
    /// The file of events.
    pub events: SealedFile,
    /// The file of states, if the part has states.
    pub states: SealedFile,
    /// The file of captures, if the part has captures.
    pub captures: SealedFile,
}
