//! The columns of calls that are read to find callers, and a call built from them.

use arrow::array::{Array, AsArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};

/// The columns that are read.
pub const COLUMNS: [&str; 13] = [
    "end_seq",
    "start_seq",
    "ts_ns",
    "dur_ns",
    "parent_seq",
    "ret_addr",
    "rax",
    "a0",
    "a1",
    "a2",
    "a3",
    "function_id",
    "tid",
];
/// The first ones of these have 64 bits.
const LONG: usize = 11;
const END: usize = 0;
const START: usize = 1;
const ARGS: usize = 7;

/// The calls of a row group, in order of their ends, those that had not ended last.
pub struct Rows {
    long: [Int64Array; LONG],
    function_id: Int32Array,
    tid: Int32Array,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its enter event.
    pub start: u64,
    /// Its leave event; `None` if it had not ended.
    pub end: Option<u64>,
    /// When it began, in ns.
    pub ts_ns: i64,
    /// How long it took, in ns; -1 if it had not ended.
    pub dur_ns: i64,
    /// Its function.
    pub function: u32,
    /// Its thread; 0 if unknown.
    pub tid: u32,
    /// The enter event of the call around it.
    pub parent: Option<u64>,
    /// Where its caller continues.
    pub ret_addr: u64,
    /// Its first arguments.
    pub args: [u64; 4],
    /// What it returned; `None` if it did not.
    pub rax: Option<u64>,
    /// It was left without a return.
    pub is_unwound: bool,
}

impl Call {
    /// Returns when it ended, in ns.
    #[must_use]
    pub fn end_ns(&self) -> Option<i64> {
        self.end.map(|_| self.ts_ns + self.dur_ns)
    }
}

impl Rows {
    /// Takes the columns, unless one is missing.
    pub fn of(batch: &RecordBatch) -> Option<Rows> {
        let int = |name: &str| {
            let column = batch.column_by_name(name)?;
            column.as_primitive_opt::<Int32Type>().cloned()
        };
        let mut long = Vec::with_capacity(LONG);
        for name in &COLUMNS[..LONG] {
            let column = batch.column_by_name(name)?;
            long.push(column.as_primitive_opt::<Int64Type>()?.clone());
        }
        Some(Rows {
            long: long.try_into().ok()?,
            function_id: int("function_id")?,
            tid: int("tid")?,
        })
    }

    /// Returns the number of calls.
    pub fn len(&self) -> usize {
        self.function_id.len()
    }

    /// Returns the number of calls that had ended; they come before the others.
    pub fn ended(&self) -> usize {
        self.len() - self.long[END].null_count()
    }

    /// Returns the enter event of a call.
    pub fn start(&self, row: usize) -> u64 {
        self.long[START].value(row).cast_unsigned()
    }

    /// Returns a call.
    pub fn call(&self, row: usize) -> Call {
        let [end, start, ts_ns, dur_ns, parent, ret_addr, rax, ..] = &self.long;
        let some = |column: &Int64Array| {
            let value = column.is_valid(row).then(|| column.value(row));
            value.map(i64::cast_unsigned)
        };
        let tid = self.tid.is_valid(row).then(|| self.tid.value(row));
        Call {
            start: start.value(row).cast_unsigned(),
            end: some(end),
            ts_ns: ts_ns.value(row),
            dur_ns: dur_ns.value(row),
            function: self.function_id.value(row).cast_unsigned(),
            tid: tid.map_or(0, i32::cast_unsigned),
            parent: some(parent),
            ret_addr: ret_addr.value(row).cast_unsigned(),
            args: [0, 1, 2, 3].map(|n| self.long[ARGS + n].value(row).cast_unsigned()),
            rax: some(rax),
            is_unwound: end.is_valid(row) && rax.is_null(row),
        }
    }
}
