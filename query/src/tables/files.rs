//! The table `files`: file descriptors, from their opening to their closing.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BinaryViewArray, Int32Array, Int64Array, PrimitiveArray, RecordBatch,
    StringViewArray,
};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::logical_expr::col;

use super::doc::TableDoc;
use super::folded::Folded;
use super::sources::Sources;
use super::syscalls;
use crate::syscalls::Call;
use crate::syscalls::files::{At, File, Made, files};

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "files",
    doc: "one row per file descriptor, from its opening to its closing; recorded with --syscalls or --full",
    columns: &[
        (
            "path",
            "path as the program gave it, or a socket's address; null if absent or unknown",
        ),
        ("fd", "the descriptor"),
        (
            "opened_by",
            "system call that opened it; null when that was not recorded",
        ),
        ("tid", "thread that opened it"),
        ("opened_seq", "event of that system call"),
        ("opened_ts_ns", "when, ns since the recording began"),
        ("call", "start_seq of the recorded call that opened it"),
        ("bytes_read", "bytes read by it; null if unknown"),
        ("bytes_written", "bytes written by it; null if unknown"),
        ("closed_seq", "event of its closing; null when it was not"),
        ("closed_ts_ns", "when, ns since the recording began"),
    ],
};

/// The columns of the input, in order.
const INPUT: [&str; 10] = [
    "seq",
    "ts_ns",
    "tid",
    "number",
    "begun",
    "call",
    "end_seq",
    "end_ts_ns",
    "returned",
    "written",
];

/// Returns the table.
pub fn table(sources: &Sources) -> Result<Arc<dyn TableProvider>> {
    let input = syscalls::pairs(sources)?.project(INPUT.map(col))?.build()?;
    Ok(Arc::new(Folded::new(schema(), input, fold)))
}

fn schema() -> SchemaRef {
    let fields = DOC.columns.iter().map(|(name, _)| {
        let kind = match *name {
            "path" | "opened_by" => DataType::Utf8View,
            "fd" | "tid" => DataType::Int32,
            _ => DataType::Int64,
        };
        Field::new(*name, kind, *name != "fd")
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns of one batch of the input.
struct Input<'a> {
    numbers: [&'a Int64Array; 7],
    tid: &'a Int32Array,
    begun: &'a BinaryViewArray,
    written: &'a BinaryViewArray,
}

impl<'a> Input<'a> {
    fn of(batch: &'a RecordBatch) -> Self {
        let number = |index: usize| batch.column(index).as_primitive::<Int64Type>();
        Self {
            numbers: [0, 1, 3, 5, 6, 7, 8].map(number),
            tid: batch.column(2).as_primitive::<Int32Type>(),
            begun: batch.column(4).as_binary_view(),
            written: batch.column(9).as_binary_view(),
        }
    }

    fn call(&self, row: usize) -> Made<'a> {
        let [seq, ts_ns, number, call, end_seq, end_ts_ns, returned] =
            self.numbers.map(|column| value(column, row));
        let at = |seq: i64, ts_ns: i64| At {
            seq: seq as u64,
            ts_ns,
        };
        let bytes = |column: &'a BinaryViewArray| match arrow::array::Array::is_valid(column, row) {
            true => column.value(row),
            false => &[],
        };
        Made {
            call: Call {
                number: number.map_or(u64::MAX, |number| number as u64),
                begun: bytes(self.begun),
                written: bytes(self.written),
                result: returned,
            },
            began: at(seq.unwrap_or(0), ts_ns.unwrap_or(0)),
            ended: end_seq.zip(end_ts_ns).map(|(seq, ts_ns)| at(seq, ts_ns)),
            tid: value(self.tid, row).map(|tid| tid as u32),
            within: call.map(|seq| seq as u64),
        }
    }
}

fn value<T: arrow::datatypes::ArrowPrimitiveType>(
    column: &PrimitiveArray<T>,
    row: usize,
) -> Option<T::Native> {
    arrow::array::Array::is_valid(column, row).then(|| column.value(row))
}

fn fold(batches: &[RecordBatch], schema: &SchemaRef) -> Result<RecordBatch> {
    let mut calls = Vec::new();
    for batch in batches {
        let input = Input::of(batch);
        calls.extend((0..batch.num_rows()).map(|row| input.call(row)));
    }
    let files = files(&calls);
    let paths: StringViewArray = files.iter().map(|file| file.path.as_deref()).collect();
    let ways: StringViewArray = files.iter().map(|file| file.opened_by).collect();
    let fds = Int32Array::from_iter_values(files.iter().map(|file| file.fd));
    let tids: Int32Array = files.iter().map(|file| Some(file.tid? as i32)).collect();
    let numbers = |of: fn(&File) -> Option<i64>| -> ArrayRef {
        Arc::new(files.iter().map(of).collect::<Int64Array>())
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(paths),
        Arc::new(fds),
        Arc::new(ways),
        Arc::new(tids),
        numbers(|file| Some(file.opened?.seq as i64)),
        numbers(|file| Some(file.opened?.ts_ns)),
        numbers(|file| Some(file.within? as i64)),
        numbers(|file| Some(file.read_bytes? as i64)),
        numbers(|file| Some(file.written_bytes? as i64)),
        numbers(|file| Some(file.closed?.seq as i64)),
        numbers(|file| Some(file.closed?.ts_ns)),
    ];
    Ok(RecordBatch::try_new(SchemaRef::clone(schema), columns)?)
}
