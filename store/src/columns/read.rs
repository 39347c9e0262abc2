//! Reads rows from the columns of sealed files. Queries read columns instead.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};

use crate::control::{
    GENERAL_REGISTERS, REGISTER_NAMES, SavedRegisters, VECTOR_LEN, VECTOR_REGISTERS,
};
use crate::wire::{ENTER_MAX_XMM, INT_ARGS, LEAVE_XMM};

/// A row of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadCall {
    /// Seq of the leave event; `None` for unfinished calls, and where only entries are recorded.
    pub end_seq: Option<u64>,
    /// Seq of the enter event.
    pub start_seq: u64,
    /// Time of the enter event.
    pub ts_ns: i64,
    /// Duration, -1 for calls without a leave event.
    pub dur_ns: i64,
    /// Time in direct callees; -1 where the call's end is not recorded.
    pub child_ns: i64,
    /// Which function.
    pub function_id: u32,
    /// Which thread.
    pub tid: Option<u32>,
    /// Enclosing traced calls.
    pub depth: u32,
    /// `start_seq` of the enclosing call.
    pub parent_seq: Option<u64>,
    /// Whether it ended without a return.
    pub unwound: bool,
    /// It was open when its thread, or the process, ended. Older files have no such column and count it as `unwound`.
    pub open_at_end: bool,
    /// Whether it replaced another call.
    pub tail: bool,
    /// Integer argument registers.
    pub args: [u64; INT_ARGS],
    /// Stack word of the return address.
    pub sp: u64,
    /// The return address.
    pub ret_addr: u64,
    /// First integer return register.
    pub rax: Option<u64>,
    /// Second integer return register.
    pub rdx: Option<u64>,
    /// Floating point argument registers.
    pub xmm: [Option<u64>; ENTER_MAX_XMM],
    /// Floating point return registers.
    pub ret_xmm: [Option<u64>; LEAVE_XMM],
}

/// A row of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadEvent {
    /// Number of the event.
    pub seq: u64,
    /// When.
    pub ts_ns: i64,
    /// Which thread.
    pub tid: Option<u32>,
    /// Name of the kind.
    pub kind: String,
    /// Text for people.
    pub text: Option<String>,
    /// Raw bytes.
    pub bytes: Option<Vec<u8>>,
    /// An address.
    pub addr: Option<u64>,
    /// A length in bytes.
    pub size: Option<u64>,
    /// A number.
    pub value: Option<i64>,
    /// A second text.
    pub aux: Option<String>,
    /// Number of the live probe.
    pub probe: Option<u32>,
    /// A third text.
    pub detail: Option<String>,
    /// The raw bytes before.
    pub old: Option<Vec<u8>>,
}

/// A row of states: the state of a stopped thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadState {
    /// Number of the pause among the events.
    pub seq: u64,
    /// When.
    pub ts_ns: i64,
    /// Which thread.
    pub tid: Option<u32>,
    /// Why it was stopped.
    pub reason: String,
    /// Number of the live probe that stopped it.
    pub probe: Option<u32>,
    /// How often that probe was hit.
    pub hits: Option<u64>,
    /// Name of the function.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
    /// Address of the next instruction, hooks undone.
    pub pc: u64,
    /// Expressions and their values, as an object in JSON.
    pub values: Option<String>,
    /// Address of the watched place that was used.
    pub watch_addr: Option<u64>,
    /// The value before.
    pub watch_old: Option<Vec<u8>>,
    /// The value now.
    pub watch_new: Option<Vec<u8>>,
    /// The registers.
    pub registers: Option<SavedRegisters>,
    /// Where the bytes of the stack begin.
    pub stack_addr: Option<u64>,
    /// The stack from there on.
    pub stack: Option<Vec<u8>>,
}

/// Returns a row of a batch that has all columns of events.
pub(super) fn event_row(batch: &RecordBatch, row: usize) -> ReadEvent {
    let long = |name: &str| int64(batch, name, row);
    let kind = column(batch, "kind").as_dictionary::<Int32Type>();
    let kinds = kind.values().as_string::<i32>();
    ReadEvent {
        seq: long("seq").expect("never null") as u64,
        ts_ns: long("ts_ns").expect("never null"),
        tid: int32(batch, "tid", row),
        kind: kinds.value(kind.keys().value(row) as usize).to_string(),
        text: text(batch, "text", row),
        bytes: bytes(batch, "bytes", row),
        addr: long("addr").map(|value| value as u64),
        size: long("size").map(|value| value as u64),
        value: long("value"),
        aux: text(batch, "aux", row),
        // Files of the format's first version lack these.
        probe: batch
            .column_by_name("probe")
            .and_then(|_| int32(batch, "probe", row)),
        detail: batch
            .column_by_name("detail")
            .and_then(|_| text(batch, "detail", row)),
        old: batch
            .column_by_name("old")
            .and_then(|_| bytes(batch, "old", row)),
    }
}

/// Returns a row of a batch that has all columns of states.
pub(super) fn state_row(batch: &RecordBatch, row: usize) -> ReadState {
    let bits = |name: &str| int64(batch, name, row).map(|value| value as u64);
    ReadState {
        seq: bits("seq").expect("never null"),
        ts_ns: bits("ts_ns").expect("never null") as i64,
        tid: int32(batch, "tid", row),
        reason: text(batch, "reason", row).expect("never null"),
        probe: int32(batch, "probe", row),
        hits: bits("hits"),
        function: text(batch, "function", row),
        file: text(batch, "file", row),
        line: bits("line").map(|line| line as u32),
        pc: bits("pc").expect("never null"),
        values: text(batch, "captured", row),
        watch_addr: bits("watch_addr"),
        watch_old: bytes(batch, "watch_old", row),
        watch_new: bytes(batch, "watch_new", row),
        registers: registers(batch, row),
        stack_addr: bits("stack_addr"),
        stack: bytes(batch, "stack", row),
    }
}

/// Returns the registers of a row of states; `None` if one is unknown.
fn registers(batch: &RecordBatch, row: usize) -> Option<SavedRegisters> {
    let mut general = [0; GENERAL_REGISTERS];
    for (register, name) in general.iter_mut().zip(REGISTER_NAMES) {
        *register = int64(batch, name, row)? as u64;
    }
    let vectors = bytes(batch, "vectors", row)?;
    let (vectors, _) = vectors.as_chunks::<VECTOR_LEN>();
    let vectors = <[[u8; VECTOR_LEN]; VECTOR_REGISTERS]>::try_from(vectors).ok()?;
    Some(SavedRegisters { general, vectors })
}

pub(super) fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a dyn Array {
    let column = batch.column_by_name(name);
    column.unwrap_or_else(|| panic!("the file has no column {name}"))
}

pub(super) fn int64(batch: &RecordBatch, name: &str, row: usize) -> Option<i64> {
    let column = column(batch, name).as_primitive::<Int64Type>();
    column.is_valid(row).then(|| column.value(row))
}

pub(super) fn int32(batch: &RecordBatch, name: &str, row: usize) -> Option<u32> {
    let column = column(batch, name).as_primitive::<Int32Type>();
    column.is_valid(row).then(|| column.value(row) as u32)
}

fn bytes(batch: &RecordBatch, name: &str, row: usize) -> Option<Vec<u8>> {
    let column = column(batch, name).as_binary::<i32>();
    column.is_valid(row).then(|| column.value(row).to_vec())
}

fn text(batch: &RecordBatch, name: &str, row: usize) -> Option<String> {
    let column = column(batch, name).as_string::<i32>();
    column.is_valid(row).then(|| column.value(row).to_string())
}
