//! Reads the calls of a recording backwards: the last one to end comes first, and so every call after the one that made
//! it. Row groups are decoded on all cores, a few ahead of their reader; the rest of the recording is not in memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow::array::{Array, AsArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;

use crate::error::{Error, Result};
use crate::parts::{LastFooter, PartFile};

/// Row groups that each core may be ahead of the reader.
const AHEAD: usize = 1;

const COLUMNS: [&str; 9] = [
    "end_seq",
    "start_seq",
    "ts_ns",
    "dur_ns",
    "child_ns",
    "function_id",
    "tid",
    "depth",
    "parent_seq",
];

/// The calls of a row group, in order of their ends, those that had not ended last.
pub struct Rows {
    end_seq: Int64Array,
    start_seq: Int64Array,
    ts_ns: Int64Array,
    dur_ns: Int64Array,
    child_ns: Int64Array,
    function_id: Int32Array,
    tid: Int32Array,
    depth: Int32Array,
    parent_seq: Int64Array,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its leave event; `None` if it had not ended.
    pub end: Option<u64>,
    /// Its enter event.
    pub start: u64,
    /// When it began, in ns.
    pub ts_ns: i64,
    /// How long it took, in ns; -1 if it had not ended.
    pub dur_ns: i64,
    /// How long the recorded calls took that it made and that ended, in ns.
    pub child_ns: i64,
    /// Its function.
    pub function: u32,
    /// Its thread; 0 if that is not known.
    pub tid: u32,
    /// The recorded calls around it.
    pub depth: usize,
    /// The enter event of the call around it.
    pub parent: Option<u64>,
}

impl Rows {
    fn of(batch: &RecordBatch) -> Option<Rows> {
        let long = |name: &str| {
            let column = batch.column_by_name(name)?;
            column.as_primitive_opt::<Int64Type>().cloned()
        };
        let int = |name: &str| {
            let column = batch.column_by_name(name)?;
            column.as_primitive_opt::<Int32Type>().cloned()
        };
        let (end_seq, start_seq) = (long("end_seq")?, long("start_seq")?);
        let (dur_ns, child_ns) = (long("dur_ns")?, long("child_ns")?);
        let (end_seq, dur_ns, child_ns) = match child_ns.values().iter().any(|ns| *ns < 0) {
            true => without_times(&end_seq, &start_seq, &dur_ns, &child_ns),
            false => (end_seq, dur_ns, child_ns),
        };
        Some(Rows {
            end_seq,
            start_seq,
            ts_ns: long("ts_ns")?,
            dur_ns,
            child_ns,
            function_id: int("function_id")?,
            tid: int("tid")?,
            depth: int("depth")?,
            parent_seq: long("parent_seq")?,
        })
    }

    /// Returns the number of calls.
    pub fn len(&self) -> usize {
        self.start_seq.len()
    }

    /// Returns the number of calls that had ended; they come before the others.
    pub fn ended(&self) -> usize {
        self.end_seq.len() - self.end_seq.null_count()
    }

    /// Returns a call.
    #[inline]
    pub fn call(&self, row: usize) -> Call {
        let long = |column: &Int64Array| {
            column
                .is_valid(row)
                .then(|| column.value(row).cast_unsigned())
        };
        Call {
            end: long(&self.end_seq),
            start: self.start_seq.value(row).cast_unsigned(),
            ts_ns: self.ts_ns.value(row),
            dur_ns: self.dur_ns.value(row),
            child_ns: self.child_ns.value(row),
            function: self.function_id.value(row).cast_unsigned(),
            tid: match self.tid.is_valid(row) {
                true => self.tid.value(row).cast_unsigned(),
                false => 0,
            },
            depth: self.depth.value(row).cast_unsigned() as usize,
            parent: long(&self.parent_seq),
        }
    }
}

/// Returns ends and times in which a call of which only the entry is recorded ends with it.
fn without_times(
    end_seq: &Int64Array,
    start_seq: &Int64Array,
    dur_ns: &Int64Array,
    child_ns: &Int64Array,
) -> (Int64Array, Int64Array, Int64Array) {
    let is_entry = |row: usize| end_seq.is_null(row) && child_ns.value(row) < 0;
    let rows = 0..end_seq.len();
    let end = |row| match is_entry(row) {
        true => Some(start_seq.value(row)),
        false => end_seq.is_valid(row).then(|| end_seq.value(row)),
    };
    let ns = |column: &Int64Array, row| if is_entry(row) { 0 } else { column.value(row) };
    (
        rows.clone().map(end).collect(),
        rows.clone().map(|row| Some(ns(dur_ns, row))).collect(),
        rows.map(|row| Some(ns(child_ns, row))).collect(),
    )
}

/// The row groups of a recording's files of calls, in order.
pub struct Groups {
    files: Vec<Arc<PartFile>>,
    groups: Vec<Group>,
    footer: LastFooter,
}

/// Where a row group is, and how many rows it has.
#[derive(Clone, Copy)]
struct Group {
    file: usize,
    index: usize,
    rows: i64,
}

impl Groups {
    /// Opens the files.
    ///
    /// # Errors
    /// The footer of one cannot be used.
    pub fn open(files: &[Arc<PartFile>]) -> Result<Groups> {
        let mut opened = Groups {
            files: files.to_vec(),
            groups: Vec::new(),
            footer: LastFooter::default(),
        };
        for file in 0..files.len() {
            let footer = opened.footer(file)?;
            let groups = footer.metadata().row_groups().iter().enumerate();
            opened.groups.extend(groups.map(|(index, group)| Group {
                file,
                index,
                rows: group.num_rows(),
            }));
        }
        Ok(opened)
    }

    /// Returns the footer of a file.
    fn footer(&self, file: usize) -> Result<ArrowReaderMetadata> {
        self.footer.of(file, || {
            let part = &self.files[file];
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
            let footer = part.footer();
            let footer = footer.and_then(|footer| ArrowReaderMetadata::try_new(footer, options));
            footer.map_err(|source| failed(part, source))
        })
    }

    /// Returns the number of row groups.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> u64 {
        let rows = self.groups.iter().map(|group| group.rows.cast_unsigned());
        rows.sum()
    }

    /// Reads a row group.
    ///
    /// # Errors
    /// It cannot be read.
    ///
    /// # Panics
    /// There is no such row group.
    pub fn read(&self, index: usize) -> Result<Rows> {
        self.read_columns(index, &COLUMNS, Rows::of)
    }

    /// Reads some columns of a row group; `of` takes them, unless they are not as they should be.
    ///
    /// # Errors
    /// It cannot be read.
    ///
    /// # Panics
    /// There is no such row group.
    pub fn read_columns<T>(
        &self,
        index: usize,
        columns: &[&str],
        of: impl Fn(&RecordBatch) -> Option<T>,
    ) -> Result<T> {
        let Group { file, index, rows } = self.groups[index];
        let part = &self.files[file];
        let footer = self.footer(file)?;
        // The library panics at some damaged pages. Of ours it then holds only the reader, which is dropped.
        let read = catch_unwind(AssertUnwindSafe(|| decoded(part, footer, index, columns)));
        let damaged = |what: &str| ParquetError::General(what.to_owned());
        let read = read.unwrap_or_else(|_| Err(damaged("a page cannot be decoded")));
        let batch = read.map_err(|source| failed(part, source))?;
        let is_whole = i64::try_from(batch.num_rows()) == Ok(rows);
        let read = of(&batch).filter(|_| is_whole);
        read.ok_or_else(|| failed(part, damaged("its columns are not those of calls")))
    }

    /// Passes all row groups to `each`, the last one first, as `read` reads them.
    ///
    /// # Errors
    /// Those of `read` and `each`.
    pub fn backwards_by<T: Send>(
        &self,
        read: impl Fn(usize) -> Result<T> + Sync,
        mut each: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = cores.min(self.len());
        let read = &read;
        std::thread::scope(|scope| {
            let mut decoded: Vec<Receiver<Result<T>>> = Vec::with_capacity(workers);
            for worker in 0..workers {
                let (send, receive) = sync_channel(AHEAD);
                let own = (0..self.len()).rev().skip(worker).step_by(workers);
                let work = move || own.map(read).all(|rows| send.send(rows).is_ok());
                let made = std::thread::Builder::new().spawn_scoped(scope, work);
                made.map_err(|source| Error::System {
                    action: "start a thread",
                    source,
                })?;
                decoded.push(receive);
            }
            for index in 0..self.len() {
                // A thread that reads no more has sent why.
                let Ok(rows) = decoded[index % workers].recv() else {
                    return Err(Error::Stopped);
                };
                each(rows?)?;
            }
            Ok(())
        })
    }
}

fn failed(part: &PartFile, source: ParquetError) -> Error {
    Error::of_part(part.path(), source)
}

fn decoded(
    part: &PartFile,
    metadata: ArrowReaderMetadata,
    group: usize,
    columns: &[&str],
) -> std::result::Result<RecordBatch, ParquetError> {
    let rows = metadata.metadata().row_group(group).num_rows();
    let mask = ProjectionMask::columns(metadata.parquet_schema(), columns.iter().copied());
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(part.file().clone(), metadata)
        .with_row_groups(vec![group])
        .with_projection(mask)
        .with_batch_size(usize::try_from(rows).unwrap_or(0).max(1))
        .build()?;
    let mut batches = reader;
    match batches.next() {
        Some(batch) => Ok(batch?),
        None => Err(ParquetError::General("a row group is empty".to_owned())),
    }
}
