//! Reads whole sealed files as rows, for tests. Everything else reads columns, or single pages.

use std::fs::File;
use std::path::Path;

use arrow::array::{AsArray, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::read::{ReadCall, ReadEvent, ReadState, column, event_row, int32, int64, state_row};
use crate::error::{Error, Result};

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
        let flag = |name: &str| column(batch, name).as_boolean().value(row);
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
            unwound: flag("unwound"),
            open_at_end: flag("open_at_end"),
            tail: flag("tail"),
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
