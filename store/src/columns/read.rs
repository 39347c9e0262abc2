//! Reads sealed files back row by row, for checks and tests. Queries read columns instead.

use std::fs::File;
use std::path::Path;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::control::{
    GENERAL_REGISTERS, REGISTER_NAMES, SavedRegisters, VECTOR_LEN, VECTOR_REGISTERS,
};
use crate::error::{Error, Result};
use crate::wire::{ENTER_MAX_XMM, INT_ARGS, LEAVE_XMM};

/// A row of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadCall {
    /// Seq of the leave event; `None` for unfinished calls.
    pub end_seq: Option<u64>,
    /// Seq of the enter event.
    pub start_seq: u64,
    /// Time of the enter event.
    pub ts_ns: i64,
    /// Duration, -1 for unfinished calls.
    pub dur_ns: i64,
    /// Time in direct callees.
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
    /// Raw bytes as they were before.
    pub old: Option<Vec<u8>>,
}

/// A row of states: what a stopped thread looked like.
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
    /// How often that was hit.
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
    /// What stood there before.
    pub watch_old: Option<Vec<u8>>,
    /// What stands there now.
    pub watch_new: Option<Vec<u8>>,
    /// The registers.
    pub registers: Option<SavedRegisters>,
    /// Where the bytes of the stack begin.
    pub stack_addr: Option<u64>,
    /// The stack from there on.
    pub stack: Option<Vec<u8>>,
}

/// Returns all rows of a file of calls.
///
/// # Errors
/// [`Error::Io`], [`Error::Columns`] or [`Error::Arrow`].
///
/// # Panics
/// When the file has other columns.
pub fn read_calls(path: &Path) -> Result<Vec<ReadCall>> {
    read(path, |batch, row| {
        let long = |name: &str| int64(batch, name, row);
        let bits = |name: &str| long(name).map(|value| value as u64);
        let some = |name: &str| bits(name).unwrap_or_else(|| panic!("{name} is never null"));
        ReadCall {
            end_seq: bits("end_seq"),
            start_seq: some("start_seq"),
            ts_ns: some("ts_ns") as i64,
            dur_ns: some("dur_ns") as i64,
            child_ns: some("child_ns") as i64,
            function_id: int32(batch, "function_id", row).expect("never null"),
            tid: int32(batch, "tid", row),
            depth: int32(batch, "depth", row).expect("never null"),
            parent_seq: bits("parent_seq"),
            unwound: boolean(batch, "unwound").value(row),
            tail: boolean(batch, "tail").value(row),
            args: std::array::from_fn(|i| some(&format!("a{i}"))),
            sp: some("sp"),
            ret_addr: some("ret_addr"),
            rax: bits("rax"),
            rdx: bits("rdx"),
            xmm: std::array::from_fn(|i| bits(&format!("x{i}"))),
            ret_xmm: std::array::from_fn(|i| bits(&format!("xr{i}"))),
        }
    })
}

/// Returns all rows of a file of events.
///
/// # Errors
/// [`Error::Io`], [`Error::Columns`] or [`Error::Arrow`].
///
/// # Panics
/// When the file has other columns.
pub fn read_events(path: &Path) -> Result<Vec<ReadEvent>> {
    read(path, event_row)
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

/// Returns all rows of a file of states.
///
/// # Errors
/// [`Error::Io`], [`Error::Columns`] or [`Error::Arrow`].
///
/// # Panics
/// When the file has other columns.
pub fn read_states(path: &Path) -> Result<Vec<ReadState>> {
    read(path, state_row)
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

/// Returns the registers of a row of states; `None` where one is not known.
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

fn read<R>(path: &Path, row: impl Fn(&RecordBatch, usize) -> R) -> Result<Vec<R>> {
    let columns = |source| Error::Columns {
        path: path.to_path_buf(),
        source,
    };
    let file = File::open(path).map_err(Error::io("open", path))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(columns)?;
    let mut rows = Vec::new();
    for batch in reader.build().map_err(columns)? {
        let batch = batch.map_err(|source| Error::Arrow {
            path: path.to_path_buf(),
            source,
        })?;
        rows.extend((0..batch.num_rows()).map(|number| row(&batch, number)));
    }
    Ok(rows)
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a dyn Array {
    let column = batch.column_by_name(name);
    column.unwrap_or_else(|| panic!("the file has no column {name}"))
}

fn int64(batch: &RecordBatch, name: &str, row: usize) -> Option<i64> {
    let column = column(batch, name).as_primitive::<Int64Type>();
    column.is_valid(row).then(|| column.value(row))
}

fn int32(batch: &RecordBatch, name: &str, row: usize) -> Option<u32> {
    let column = column(batch, name).as_primitive::<Int32Type>();
    column.is_valid(row).then(|| column.value(row) as u32)
}

fn bytes(batch: &RecordBatch, name: &str, row: usize) -> Option<Vec<u8>> {
    let column = column(batch, name).as_binary::<i32>();
    column.is_valid(row).then(|| column.value(row).to_vec())
}

fn boolean<'a>(batch: &'a RecordBatch, name: &str) -> &'a BooleanArray {
    column(batch, name).as_boolean()
}

fn text(batch: &RecordBatch, name: &str, row: usize) -> Option<String> {
    let column = column(batch, name).as_string::<i32>();
    column.is_valid(row).then(|| column.value(row).to_string())
}
