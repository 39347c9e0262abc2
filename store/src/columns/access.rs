//! Random access to sealed files: finds pages by their index and rows by their number, and reads only those.
//!
//! Where the pages of a file lie stays in memory, with the smallest and largest values of the columns that find rows; the rows do
//! not. A file of calls is read a [`CallPage`] at a time; those of events and states are in `event_access`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use super::call::{CALL_COLUMNS, CALL_COLUMNS_AT_LEAST};
use super::page::Physical;
use super::read::ReadCall;
use super::sealed_file::{CheckedFile, SealedFile};
use crate::error::{Error, Result};

/// The columns of calls for place in time and on the thread's stack, without arguments and results.
const SPINE_COLUMNS: [&str; 12] = [
    "end_seq",
    "start_seq",
    "function_id",
    "tid",
    "depth",
    "parent_seq",
    "unwound",
    "tail",
    "sp",
    "ret_addr",
    "open_at_end",
    // Only where it tells that only entries are recorded.
    "child_ns",
];

/// No page that we write has more rows, and no reader should allocate memory for more.
const MOST_PAGE_ROWS: usize = 1 << 20;

/// A Parquet file whose footer and page index are in memory.
pub(super) struct Indexed {
    file: CheckedFile,
    metadata: ArrowReaderMetadata,
}

/// Rows of a file that were written together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageBounds {
    /// Which row group of the file.
    pub row_group: usize,
    /// The first of its rows, relative to the row group.
    pub first_row: usize,
    /// How many rows.
    pub rows: usize,
    /// Smallest and largest value of the column by which pages are found.
    pub range: (u64, u64),
}

impl Indexed {
    /// Opens a file that must have the first of `columns`, `at_least` that many, and no others.
    pub(super) fn open(sealed: &SealedFile, columns: &Schema, at_least: usize) -> Result<Self> {
        Self::of(CheckedFile::open(sealed)?, columns, at_least)
    }

    /// Reads the index of an opened file, as [`Self::open`] does.
    fn of(file: CheckedFile, columns: &Schema, at_least: usize) -> Result<Self> {
        let path = file.path().to_path_buf();
        let failed = |source| Error::columns(&path, source);
        // The column types that the file itself claims are ignored: they are known.
        let options = ArrowReaderOptions::new()
            .with_page_index_policy(PageIndexPolicy::Required)
            .with_skip_arrow_metadata(true);
        let plain = ArrowReaderMetadata::load(&file, options.clone()).map_err(failed)?;
        let names = plain.schema().fields().iter().map(|field| field.name());
        let wanted = columns.fields().get(..names.len()).unwrap_or_default();
        if names.len() < at_least || !names.eq(wanted.iter().map(|field| field.name())) {
            let what = "these are other columns than such a file has";
            return Err(failed(ParquetError::General(what.to_owned())));
        }
        if !plain
            .metadata()
            .row_groups()
            .iter()
            .all(|group| is_inside(group, file.len_bytes()))
        {
            let what = "a column lies outside of the file";
            return Err(failed(ParquetError::General(what.to_owned())));
        }
        let options = options.with_schema(Arc::new(Schema::new(wanted.to_vec())));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(plain.metadata()), options);
        Ok(Self {
            metadata: metadata.map_err(failed)?,
            file,
        })
    }

    fn failed(&self, source: ParquetError) -> Error {
        Error::columns(self.file.path(), source)
    }

    fn damaged(&self, what: &str) -> Error {
        self.failed(ParquetError::General(what.to_owned()))
    }

    fn leaf(&self, name: &str) -> Result<usize> {
        let columns = self.metadata.parquet_schema().columns();
        let found = columns.iter().position(|column| column.name() == name);
        found.ok_or_else(|| self.damaged("a column is missing"))
    }

    /// Returns the pages of an Int64 column with at least one value that is not null, in order.
    pub(super) fn pages(&self, name: &str) -> Result<Vec<PageBounds>> {
        let leaf = self.leaf(name)?;
        let metadata = self.metadata.metadata();
        let missing = || self.damaged("there is no page index");
        let indexes = metadata.column_index().ok_or_else(missing)?;
        let offsets = metadata.offset_index().ok_or_else(missing)?;
        let mut pages = Vec::new();
        for (row_group, group) in metadata.row_groups().iter().enumerate() {
            let index = indexes.get(row_group).and_then(|group| group.get(leaf));
            let offsets = offsets.get(row_group).and_then(|group| group.get(leaf));
            let (Some(ColumnIndexMetaData::INT64(index)), Some(offsets)) = (index, offsets) else {
                return Err(missing());
            };
            let locations = offsets.page_locations();
            if index.num_pages() != locations.len() as u64 {
                return Err(self.damaged("the parts of the page index differ"));
            }
            for (number, location) in locations.iter().enumerate() {
                let next = locations
                    .get(number + 1)
                    .map_or(group.num_rows(), |next| next.first_row_index);
                let rows = usize::try_from(location.first_row_index)
                    .ok()
                    .zip(usize::try_from(next).ok())
                    .filter(|(first, next)| first <= next && next - first <= MOST_PAGE_ROWS);
                let Some((first_row, next)) = rows else {
                    return Err(self.damaged("the page index has rows out of order"));
                };
                let range = index.min_value(number).zip(index.max_value(number));
                if let Some((min, max)) = range {
                    pages.push(PageBounds {
                        row_group,
                        first_row,
                        rows: next - first_row,
                        range: (*min as u64, *max as u64),
                    });
                }
            }
        }
        Ok(pages)
    }

    /// Forgets the smallest and largest values of all columns in each page: a file of calls has two dozen columns.
    pub(super) fn without_bounds(self) -> Result<Self> {
        let metadata = ParquetMetaData::clone(self.metadata.metadata());
        let metadata = metadata.into_builder().set_column_index(None).build();
        let options = ArrowReaderOptions::new().with_schema(Arc::clone(self.metadata.schema()));
        let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), options);
        Ok(Self {
            metadata: metadata.map_err(|source| self.failed(source))?,
            file: self.file,
        })
    }

    /// Reads some rows of a row group, of the named columns or of all.
    pub(super) fn rows(
        &self,
        row_group: usize,
        rows: Range<usize>,
        columns: Option<&[&str]>,
    ) -> Result<RecordBatch> {
        let file = self.file.clone();
        let groups = self.metadata.metadata().row_groups();
        let total = groups.get(row_group).map(|group| group.num_rows() as usize);
        let total = total.ok_or_else(|| self.damaged("there is no such row group"))?;
        if rows.end > total {
            return Err(self.damaged("there are fewer rows than it says"));
        }
        let len = rows.len();
        let selection = RowSelection::from_consecutive_ranges(std::iter::once(rows), total);
        let mut builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
                .with_row_groups(vec![row_group])
                .with_row_selection(selection)
                .with_batch_size(len.max(1));
        if let Some(columns) = columns {
            let mask =
                ProjectionMask::columns(self.metadata.parquet_schema(), columns.iter().copied());
            builder = builder.with_projection(mask);
        }
        let mut reader = builder.build().map_err(|source| self.failed(source))?;
        // The library panics at some damaged pages. It then holds nothing of ours but the reader, which is dropped.
        let read = catch_unwind(AssertUnwindSafe(move || reader.next().transpose()));
        let batch = read.map_err(|_| self.damaged("a page cannot be decoded"))?;
        let batch = batch.map_err(|source| Error::Arrow {
            path: self.file.path().to_path_buf(),
            source,
        })?;
        match batch {
            Some(batch) if batch.num_rows() == len => Ok(batch),
            _ => Err(self.damaged("there are fewer rows than it says")),
        }
    }

    /// Finds the row with `seq`; the column `seq` is sorted.
    pub(super) fn by_seq(&self, pages: &[PageBounds], seq: u64) -> Result<Option<(usize, usize)>> {
        let at = pages.partition_point(|page| page.range.1 < seq);
        let Some(page) = pages.get(at).filter(|page| page.range.0 <= seq) else {
            return Ok(None);
        };
        let rows = page.first_row..page.first_row + page.rows;
        let batch = self.rows(page.row_group, rows, Some(&["seq"]))?;
        let seqs = int64(&batch, 0);
        let row = seqs.values().binary_search(&(seq as i64));
        Ok(row.ok().map(|row| (page.row_group, page.first_row + row)))
    }
}

/// Returns whether a row group's columns lie within a file of `len` bytes. The library asserts it.
fn is_inside(group: &RowGroupMetaData, len: u64) -> bool {
    let column_is = |column: &ColumnChunkMetaData| {
        let data = column.data_page_offset();
        let first = column.dictionary_page_offset().unwrap_or(data);
        let range = u64::try_from(first.min(data)).ok().and_then(|_| {
            let size = u64::try_from(column.compressed_size()).ok()?;
            u64::try_from(first).ok()?.checked_add(size)
        });
        range.is_some_and(|end| end <= len) && column.num_values() == group.num_rows()
    };
    group.num_rows() >= 0 && group.columns().iter().all(column_is)
}

/// A sealed file of calls.
pub struct CallsFile {
    file: Indexed,
    pages: Vec<PageBounds>,
    ends: Vec<PageBounds>,
    only_entries: bool,
}

/// Returns what rows are in order of: `end_seq`, or `start_seq` where only the entry is recorded.
fn places(end_seq: &Int64Array, start_seq: &Int64Array, child_ns: &Int64Array) -> Int64Array {
    let place = |row| match (end_seq.is_valid(row), child_ns.value(row) < 0) {
        (true, _) => Some(end_seq.value(row)),
        (false, true) => Some(start_seq.value(row)),
        (false, false) => None,
    };
    (0..end_seq.len()).map(place).collect()
}

/// The columns of calls in arrow's form.
fn calls_schema() -> Schema {
    let fields = CALL_COLUMNS.iter().map(|column| {
        let data_type = match column.physical {
            Physical::Boolean => DataType::Boolean,
            Physical::Int32 => DataType::Int32,
            Physical::Int64 => DataType::Int64,
        };
        Field::new(column.name, data_type, column.is_optional())
    });
    Schema::new(fields.collect::<Vec<_>>())
}

impl CallsFile {
    /// Reads the file's page index.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Columns`] when it is not a file of calls or has no page index.
    pub fn open(file: CheckedFile) -> Result<Self> {
        let columns = calls_schema();
        let file = Indexed::of(file, &columns, CALL_COLUMNS_AT_LEAST)?;
        Ok(Self {
            pages: file.pages("start_seq")?,
            ends: file.pages("end_seq")?,
            only_entries: file
                .pages("child_ns")?
                .iter()
                .any(|page| page.range.0.cast_signed() < 0),
            file: file.without_bounds()?,
        })
    }

    /// Returns the pages, with the smallest and the largest `start_seq` of each.
    pub fn pages(&self) -> &[PageBounds] {
        &self.pages
    }

    /// Returns the same for `end_seq`. Their rows need not be those of [`Self::pages`]; pages without a finished call
    /// are omitted.
    pub fn ends(&self) -> &[PageBounds] {
        &self.ends
    }

    /// Returns whether only the entries of calls are recorded, of some at least.
    pub fn only_entries(&self) -> bool {
        self.only_entries
    }

    /// Reads the place columns of a page's calls.
    ///
    /// # Errors
    /// [`Error::Columns`] or [`Error::Arrow`].
    ///
    /// # Panics
    /// When there is no such page.
    pub fn spine(&self, page: usize) -> Result<CallSpine> {
        let without = usize::from(!self.only_entries);
        let columns = &SPINE_COLUMNS[..SPINE_COLUMNS.len() - without];
        let batch = self.read(page, Some(columns))?;
        let column = |name: &str| batch.column_by_name(name).expect("it was asked for");
        let long = |name: &str| column(name).as_primitive().clone();
        let int = |name: &str| column(name).as_primitive().clone();
        let (end_seq, start_seq) = (long("end_seq"), long("start_seq"));
        let places = match self.only_entries {
            true => places(&end_seq, &start_seq, &long("child_ns")),
            false => end_seq.clone(),
        };
        Ok(CallSpine {
            places,
            end_seq,
            start_seq,
            function_id: int("function_id"),
            tid: int("tid"),
            depth: int("depth"),
            parent_seq: long("parent_seq"),
            unwound: column("unwound").as_boolean().clone(),
            open_at_end: (batch.column_by_name("open_at_end"))
                .map(|column| column.as_boolean().clone()),
            tail: column("tail").as_boolean().clone(),
            sp: long("sp"),
            ret_addr: long("ret_addr"),
        })
    }

    /// Reads a page with all its columns.
    ///
    /// # Errors
    /// [`Error::Columns`] or [`Error::Arrow`].
    ///
    /// # Panics
    /// When there is no such page.
    pub fn page(&self, page: usize) -> Result<CallPage> {
        let batch = self.read(page, None)?;
        Ok(CallPage {
            columns: batch.columns().iter().map(Column::of).collect(),
        })
    }

    /// Reads what the calls of a page returned in rax; `None` for those that did not return.
    ///
    /// # Errors
    /// [`Error::Columns`] or [`Error::Arrow`].
    ///
    /// # Panics
    /// When there is no such page.
    pub fn results(&self, page: usize) -> Result<Vec<Option<u64>>> {
        let batch = self.read(page, Some(&["rax"]))?;
        let rax = int64(&batch, 0);
        Ok(rax
            .iter()
            .map(|bits| bits.map(|bits| bits as u64))
            .collect())
    }

    /// Reads the function of each call of a page. Nothing else is read.
    ///
    /// # Errors
    /// [`Error::Columns`] or [`Error::Arrow`].
    ///
    /// # Panics
    /// When there is no such page.
    pub fn functions(&self, page: usize) -> Result<Vec<u32>> {
        let batch = self.read(page, Some(&["function_id"]))?;
        let ids = batch.column(0).as_primitive::<Int32Type>().values();
        Ok(ids.iter().map(|id| *id as u32).collect())
    }

    /// Reads what the calls of a page received in the general registers of these arguments, from 0 to 5, and what they returned.
    ///
    /// # Errors
    /// [`Error::Columns`] or [`Error::Arrow`].
    ///
    /// # Panics
    /// When there is no such page or argument.
    pub fn values(&self, page: usize, arguments: &[usize]) -> Result<CallValues> {
        let name = |at: &usize| EntryColumn::General(*at).name();
        let names: Vec<&str> = arguments.iter().map(name).chain(["rax"]).collect();
        let batch = self.read(page, Some(&names))?;
        let column = |name: &str| batch.column_by_name(name).map(|a| a.as_primitive().clone());
        Ok(CallValues {
            args: std::array::from_fn(|at| column(EntryColumn::General(at).name())),
            rax: column("rax").expect("it was asked for"),
        })
    }

    /// Returns whether a page has a call of one of these functions. Nothing else is read.
    ///
    /// # Errors
    /// [`Error::Columns`] or [`Error::Arrow`].
    ///
    /// # Panics
    /// When there is no such page.
    pub fn has_function(&self, page: usize, functions: &BTreeSet<u32>) -> Result<bool> {
        let batch = self.read(page, Some(&["function_id"]))?;
        let ids = batch.column(0).as_primitive::<Int32Type>().values();
        Ok(ids.iter().any(|id| functions.contains(&(*id as u32))))
    }

    /// Passes to `each` how the calls of a page began, with what one register held then. Nothing else is read.
    ///
    /// # Errors
    /// [`Error::Columns`] or [`Error::Arrow`].
    ///
    /// # Panics
    /// When there is no such page.
    pub fn entries(
        &self,
        page: usize,
        column: EntryColumn,
        mut each: impl FnMut(CallEntry),
    ) -> Result<()> {
        let name = column.name();
        let batch = self.read(page, Some(&["start_seq", "function_id", "tid", name]))?;
        let column = |name: &str| batch.column_by_name(name).expect("it was asked for");
        let start_seq = column("start_seq").as_primitive::<Int64Type>();
        let function_id = column("function_id").as_primitive::<Int32Type>();
        let tid = column("tid").as_primitive::<Int32Type>();
        let bits = column(name).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            each(CallEntry {
                start_seq: start_seq.value(row) as u64,
                function_id: function_id.value(row) as u32,
                tid: tid.is_valid(row).then(|| tid.value(row) as u32),
                bits: bits.is_valid(row).then(|| bits.value(row) as u64),
            });
        }
        Ok(())
    }

    fn read(&self, page: usize, columns: Option<&[&str]>) -> Result<RecordBatch> {
        let page = self.pages[page];
        let rows = page.first_row..page.first_row + page.rows;
        self.file.rows(page.row_group, rows, columns)
    }
}

/// A register that was recorded when calls began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryColumn {
    /// The general register of this argument, from 0 to 5.
    General(usize),
    /// The low half of this vector register, from 0 to 7.
    Vector(usize),
}

impl EntryColumn {
    /// Returns the column's name.
    fn name(self) -> &'static str {
        let (names, at): (&[&str], usize) = match self {
            Self::General(at) => (&["a0", "a1", "a2", "a3", "a4", "a5"], at),
            Self::Vector(at) => (&["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"], at),
        };
        names[at]
    }
}

/// How a call began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEntry {
    /// Seq of the enter event.
    pub start_seq: u64,
    /// The function's id.
    pub function_id: u32,
    /// The thread.
    pub tid: Option<u32>,
    /// What the register held, if that was recorded.
    pub bits: Option<u64>,
}

/// What the calls of a page received and returned.
#[derive(Clone, Debug)]
pub struct CallValues {
    /// The arguments that were read.
    args: [Option<Int64Array>; 6],
    rax: Int64Array,
}

impl CallValues {
    /// Returns the arguments of a call; 0 for those that were not read.
    pub fn args(&self, row: usize) -> [u64; 6] {
        let arg = |column: &Option<Int64Array>| column.as_ref().map(|c| c.value(row) as u64);
        self.args
            .each_ref()
            .map(|column| arg(column).unwrap_or_default())
    }

    /// Returns what a call returned in rax; `None` if it did not return.
    pub fn rax(&self, row: usize) -> Option<u64> {
        self.rax.is_valid(row).then(|| self.rax.value(row) as u64)
    }
}

/// The places of the calls of a page.
#[derive(Clone, Debug)]
pub struct CallSpine {
    end_seq: Int64Array,
    /// What the rows are in order of: `end_seq`, or `start_seq` where only the entry is recorded.
    places: Int64Array,
    start_seq: Int64Array,
    function_id: Int32Array,
    tid: Int32Array,
    depth: Int32Array,
    parent_seq: Int64Array,
    unwound: BooleanArray,
    /// `None` in older files.
    open_at_end: Option<BooleanArray>,
    tail: BooleanArray,
    sp: Int64Array,
    ret_addr: Int64Array,
}

impl CallSpine {
    /// Returns the number of calls.
    pub fn rows(&self) -> usize {
        self.start_seq.len()
    }

    /// Returns the seq of the leave event; `None` for unfinished calls, and where only the entry is recorded.
    pub fn end_seq(&self, row: usize) -> Option<u64> {
        self.end_seq
            .is_valid(row)
            .then(|| self.end_seq.value(row) as u64)
    }

    /// Returns the number that the rows are in order of: that of the leave event, or of the enter event where only that
    /// is recorded; `None` for unfinished calls, which come last.
    pub fn place(&self, row: usize) -> Option<u64> {
        self.places
            .is_valid(row)
            .then(|| self.places.value(row) as u64)
    }

    /// Returns whether only the call's entry is recorded, and not when it ended.
    pub fn only_entered(&self, row: usize) -> bool {
        self.end_seq.is_null(row) && self.places.is_valid(row)
    }

    /// Returns the first row whose call ends at or after `seq` or is unfinished. Calls of which only the entry is
    /// recorded count as if they ended with it.
    pub fn first_end_from(&self, seq: u64) -> usize {
        let finished = self.rows() - self.places.null_count();
        self.places.values()[..finished].partition_point(|place| (*place as u64) < seq)
    }

    /// Returns the seq of the enter event.
    pub fn start_seq(&self, row: usize) -> u64 {
        self.start_seq.value(row) as u64
    }

    /// Returns the function's id.
    pub fn function_id(&self, row: usize) -> u32 {
        self.function_id.value(row) as u32
    }

    /// Returns the thread.
    pub fn tid(&self, row: usize) -> Option<u32> {
        self.tid.is_valid(row).then(|| self.tid.value(row) as u32)
    }

    /// Returns the number of enclosing traced calls.
    pub fn depth(&self, row: usize) -> u32 {
        self.depth.value(row) as u32
    }

    /// Returns the `start_seq` of the enclosing call.
    pub fn parent_seq(&self, row: usize) -> Option<u64> {
        self.parent_seq
            .is_valid(row)
            .then(|| self.parent_seq.value(row) as u64)
    }

    /// Returns whether an exception or longjmp left it.
    pub fn unwound(&self, row: usize) -> bool {
        self.unwound.value(row)
    }

    /// Returns whether it was open when its thread, or the process, ended.
    pub fn open_at_end(&self, row: usize) -> bool {
        (self.open_at_end.as_ref()).is_some_and(|column| column.value(row))
    }

    /// Returns whether a tail call replaced another call with it.
    pub fn tail(&self, row: usize) -> bool {
        self.tail.value(row)
    }

    /// Returns its slot.
    pub fn sp(&self, row: usize) -> u64 {
        self.sp.value(row) as u64
    }

    /// Returns its return address.
    pub fn ret_addr(&self, row: usize) -> u64 {
        self.ret_addr.value(row) as u64
    }
}

/// The calls of a page, with all their data.
#[derive(Clone, Debug)]
pub struct CallPage {
    /// In the order of [`CALL_COLUMNS`].
    columns: Vec<Column>,
}

/// A column of calls. Its type is checked once, not for each call.
#[derive(Clone, Debug)]
enum Column {
    Long(Int64Array),
    Int(Int32Array),
    Flag(BooleanArray),
}

impl Column {
    fn of(array: &ArrayRef) -> Self {
        match array.data_type() {
            DataType::Int64 => Column::Long(array.as_primitive().clone()),
            DataType::Int32 => Column::Int(array.as_primitive().clone()),
            _ => Column::Flag(array.as_boolean().clone()),
        }
    }

    fn bits(&self, row: usize) -> Option<u64> {
        match self {
            Column::Long(column) => column.is_valid(row).then(|| column.value(row) as u64),
            Column::Int(column) => column
                .is_valid(row)
                .then(|| u64::from(column.value(row) as u32)),
            Column::Flag(column) => Some(u64::from(column.value(row))),
        }
    }
}

impl CallPage {
    /// Returns a call.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn call(&self, row: usize) -> ReadCall {
        // Older files lack the last column.
        let mut columns = self.columns.iter();
        let mut next = || {
            let column = columns.next()?;
            column.bits(row)
        };
        let some = |bits: Option<u64>| bits.unwrap_or_default();
        let int = |bits: Option<u64>| bits.map(|bits| bits as u32);
        let call = ReadCall {
            end_seq: next(),
            start_seq: some(next()),
            ts_ns: some(next()) as i64,
            dur_ns: some(next()) as i64,
            child_ns: some(next()) as i64,
            function_id: int(next()).unwrap_or_default(),
            tid: int(next()),
            depth: int(next()).unwrap_or_default(),
            parent_seq: next(),
            unwound: some(next()) != 0,
            open_at_end: false,
            tail: some(next()) != 0,
            args: std::array::from_fn(|_| some(next())),
            sp: some(next()),
            ret_addr: some(next()),
            rax: next(),
            rdx: next(),
            xmm: std::array::from_fn(|_| next()),
            ret_xmm: std::array::from_fn(|_| next()),
        };
        ReadCall {
            open_at_end: some(next()) != 0,
            ..call
        }
    }
}

pub(super) fn int64(batch: &RecordBatch, at: usize) -> &Int64Array {
    batch.column(at).as_primitive()
}
