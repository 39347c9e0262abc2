//! Reads the calls of a recording in the order in which they ended, a few thousand at a time, from any place on.

use std::ops::Range;

use arrow::array::{Array, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::statistics::Statistics;
use store::Reader;
use store::columns::CheckedFile;

use super::forms::Word;
use super::stop::Stop;
use crate::error::{Error, Result};
use crate::parts::{LastFooter, has_only_entries};

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 8192;
/// Bytes of a damaged file that are checked at a time.
const CHECKED_BYTES: u64 = 1 << 20;

/// Columns that are always read.
const PLACES: [&str; 6] = [
    "end_seq",
    "start_seq",
    "function_id",
    "tid",
    "unwound",
    "open_at_end",
];
/// Columns that are not read by who asks for words alone.
const SHAPE: [&str; 3] = ["dur_ns", "child_ns", "depth"];

/// Words that are no arguments.
const OTHERS: [Word; 5] = [
    Word::Rax,
    Word::Rdx,
    Word::RetSse(0),
    Word::RetSse(1),
    Word::Sp,
];

/// The place of a row in a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    part: usize,
    row: u64,
}

impl Position {
    /// The place behind all rows.
    pub fn end() -> Position {
        Position {
            part: usize::MAX,
            row: 0,
        }
    }
}

/// The files of calls of a recording.
pub struct CallFiles {
    parts: Vec<CheckedFile>,
    /// With its index of pages.
    footer: LastFooter,
    words: Vec<Word>,
    has_shape: bool,
    stop: Stop,
}

/// The column of a word.
fn column_of(word: Word) -> String {
    match word {
        Word::Int(at) => format!("a{at}"),
        Word::Sse(at) => format!("x{at}"),
        Word::Rax => "rax".to_owned(),
        Word::Rdx => "rdx".to_owned(),
        Word::RetSse(at) => format!("xr{at}"),
        Word::Sp => "sp".to_owned(),
    }
}

impl CallFiles {
    /// Opens the files, to read `words` of each call until `stop` says otherwise.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn open(reader: &Reader, words: Vec<Word>, stop: &Stop) -> Result<Self> {
        let filled = reader.parts().iter().filter(|part| part.part.calls > 0);
        let parts = filled.map(|part| CheckedFile::open(&part.calls));
        Ok(Self {
            parts: parts.collect::<std::result::Result<_, _>>()?,
            footer: LastFooter::default(),
            words,
            has_shape: true,
            stop: stop.clone(),
        })
    }

    /// Leaves out the times and depths of calls, which then read as zero.
    pub fn words_alone(self) -> Self {
        Self {
            has_shape: false,
            ..self
        }
    }

    /// Reads the calls from `from` on. With `tid`, some of those that are not of this thread are left out.
    pub fn calls(&self, from: Position, tid: Option<u32>) -> Calls<'_> {
        Calls {
            files: self,
            at: from,
            until: Position::end(),
            tid,
            reader: None,
            only_entries: false,
        }
    }

    /// Returns the footer of a file.
    fn footer(&self, part: usize) -> Result<ArrowReaderMetadata> {
        self.footer.of(part, || {
            let file = &self.parts[part];
            let options = ArrowReaderOptions::new()
                .with_page_index_policy(PageIndexPolicy::Optional)
                .with_skip_arrow_metadata(true);
            let footer = ArrowReaderMetadata::load(file, options);
            footer.map_err(|source| Error::of_part(file.path(), source))
        })
    }

    /// Returns the places where the row groups begin, in order.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn row_groups(&self) -> Result<Vec<Position>> {
        let mut found = Vec::new();
        for part in 0..self.parts.len() {
            let mut row = 0;
            for group in self.footer(part)?.metadata().row_groups() {
                found.push(Position { part, row });
                row += group.num_rows() as u64;
            }
        }
        Ok(found)
    }
}

/// Calls as they are read.
pub struct Calls<'f> {
    files: &'f CallFiles,
    at: Position,
    until: Position,
    tid: Option<u32>,
    reader: Option<(ParquetRecordBatchReader, Range<u64>)>,
    /// The opened file has only entries of calls.
    only_entries: bool,
}

/// Calls that were decoded together.
pub struct Batch {
    /// The place of the first one.
    pub first: Position,
    end_seq: Int64Array,
    start_seq: Int64Array,
    dur_ns: Option<Int64Array>,
    child_ns: Option<Int64Array>,
    function_id: Int32Array,
    tid: Int32Array,
    depth: Option<Int32Array>,
    unwound: BooleanArray,
    /// Files from before this column count such calls as unwound.
    open_at_end: Option<BooleanArray>,
    int: [Option<Int64Array>; 6],
    sse: [Option<Int64Array>; 8],
    /// Those of [`OTHERS`].
    others: [Option<Int64Array>; 5],
    only_entries: bool,
}

/// Says why rows of a file cannot be read. Arrow passes an error of Parquet on as a text, so the file itself is asked what is
/// damaged.
fn unreadable(file: &CheckedFile, error: ArrowError) -> Error {
    let length = file.len();
    let pieces = (0..length).step_by(CHECKED_BYTES as usize);
    let read = |start: u64| file.get_bytes(start, CHECKED_BYTES.min(length - start) as usize);
    match pieces.map(read).find_map(|piece| piece.err()) {
        Some(damage) => Error::of_part(file.path(), damage),
        None => Error::Arrow(error),
    }
}

impl Calls<'_> {
    /// Ends before the row group that begins at `until`.
    pub fn until(self, until: Position) -> Self {
        Self { until, ..self }
    }

    /// Returns the next calls; `None` after the last one.
    ///
    /// # Errors
    /// A file cannot be read; [`Error::Stopped`].
    pub fn next(&mut self) -> Result<Option<Batch>> {
        self.files.stop.check()?;
        loop {
            if self.at.part >= self.files.parts.len() {
                return Ok(None);
            }
            let file = &self.files.parts[self.at.part];
            let Some((reader, rows)) = &mut self.reader else {
                if self.at >= self.until {
                    return Ok(None);
                }
                self.open()?;
                continue;
            };
            if let Some(batch) = reader.next() {
                let batch = Batch {
                    only_entries: self.only_entries,
                    ..Batch::of(
                        self.at,
                        &batch.map_err(|error| unreadable(file, error))?,
                        self.files,
                    )
                };
                self.at.row += batch.rows() as u64;
                return Ok(Some(batch));
            }
            if self.at.row < rows.end {
                let what = "there are fewer rows than it says".to_owned();
                return Err(Error::Part {
                    path: file.path().to_path_buf(),
                    source: parquet::errors::ParquetError::General(what),
                });
            }
            self.reader = None;
        }
    }

    /// Opens the next row group that may have a wanted row, or goes on to the next file.
    fn open(&mut self) -> Result<()> {
        let file = &self.files.parts[self.at.part];
        let metadata = self.files.footer(self.at.part)?;
        self.only_entries = has_only_entries(metadata.metadata().row_groups().iter());
        let mut first = 0;
        for (index, group) in metadata.metadata().row_groups().iter().enumerate() {
            let rows = first..first + group.num_rows() as u64;
            first = rows.end;
            if rows.end <= self.at.row {
                continue;
            }
            let tids = group
                .columns()
                .iter()
                .find(|column| column.column_descr().name() == "tid");
            let is_wanted = |tid: u32| match tids.and_then(|column| column.statistics()) {
                Some(Statistics::Int32(found)) => match (found.min_opt(), found.max_opt()) {
                    (Some(min), Some(max)) => (*min..=*max).contains(&(tid as i32)),
                    _ => true,
                },
                _ => true,
            };
            if self.tid.is_some_and(|tid| !is_wanted(tid)) {
                self.at.row = rows.end;
                continue;
            }
            let names: Vec<String> = self
                .files
                .words
                .iter()
                .map(|word| column_of(*word))
                .collect();
            let shape = SHAPE.iter().filter(|_| self.files.has_shape);
            let names = names.iter().map(String::as_str);
            let names = PLACES.iter().chain(shape).copied().chain(names);
            let mask = ProjectionMask::columns(metadata.parquet_schema(), names);
            let skipped = self.at.row.saturating_sub(rows.start);
            self.at.row = self.at.row.max(rows.start);
            let reader =
                ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
                    .with_row_groups(vec![index])
                    .with_projection(mask)
                    .with_batch_size(BATCH_ROWS)
                    .with_offset(skipped as usize)
                    .build();
            let reader = reader.map_err(|source| Error::of_part(file.path(), source))?;
            self.reader = Some((reader, rows));
            return Ok(());
        }
        self.at = Position {
            part: self.at.part + 1,
            row: 0,
        };
        Ok(())
    }
}

fn long(batch: &RecordBatch, name: &str) -> Option<Int64Array> {
    let column = batch.column_by_name(name)?;
    column.as_primitive_opt::<Int64Type>().cloned()
}

fn int(batch: &RecordBatch, name: &str) -> Option<Int32Array> {
    let column = batch.column_by_name(name)?;
    column.as_primitive_opt::<Int32Type>().cloned()
}

impl Batch {
    fn of(first: Position, batch: &RecordBatch, files: &CallFiles) -> Batch {
        let there = "the sealed file has the columns of calls";
        let word = |word: Word| match files.words.contains(&word) {
            true => long(batch, &column_of(word)),
            false => None,
        };
        let shape = files.has_shape;
        let flag = |name: &str| Some(batch.column_by_name(name)?.as_boolean().clone());
        Batch {
            first,
            end_seq: long(batch, "end_seq").expect(there),
            start_seq: long(batch, "start_seq").expect(there),
            dur_ns: shape.then(|| long(batch, "dur_ns").expect(there)),
            child_ns: shape.then(|| long(batch, "child_ns").expect(there)),
            function_id: int(batch, "function_id").expect(there),
            tid: int(batch, "tid").expect(there),
            depth: shape.then(|| int(batch, "depth").expect(there)),
            unwound: flag("unwound").expect(there),
            open_at_end: flag("open_at_end"),
            int: std::array::from_fn(|at| word(Word::Int(at as u8))),
            sse: std::array::from_fn(|at| word(Word::Sse(at as u8))),
            only_entries: false,
            others: OTHERS.map(word),
        }
    }

    /// Returns the number of calls.
    pub fn rows(&self) -> usize {
        self.start_seq.len()
    }

    /// Returns the place of a call.
    pub fn position(&self, row: usize) -> Position {
        Position {
            row: self.first.row + row as u64,
            ..self.first
        }
    }

    /// Returns the leave event of a call; `None` if it had not ended.
    pub fn end(&self, row: usize) -> Option<u64> {
        self.end_seq
            .is_valid(row)
            .then(|| self.end_seq.value(row) as u64)
    }

    /// Returns the number that orders a call: of its end, or of its entry where only that is recorded; the greatest
    /// number if it had not ended.
    pub fn place(&self, row: usize) -> u64 {
        match self.end(row) {
            Some(end) => end,
            None if self.only_entries => self.start(row),
            None => u64::MAX,
        }
    }

    /// Returns the enter event of a call.
    pub fn start(&self, row: usize) -> u64 {
        self.start_seq.value(row) as u64
    }

    /// Returns how long a call took without the recorded calls that it made, in ns; zero if it had not ended.
    pub fn own_ns(&self, row: usize) -> u64 {
        let ns = |column: &Option<Int64Array>| column.as_ref().map_or(0, |ns| ns.value(row));
        let own = ns(&self.dur_ns).saturating_sub(ns(&self.child_ns));
        u64::try_from(own).unwrap_or(0)
    }

    /// Returns the id of a call's function.
    pub fn function(&self, row: usize) -> u32 {
        self.function_id.value(row) as u32
    }

    /// Returns the thread of a call; 0 if it is not known.
    pub fn tid(&self, row: usize) -> u32 {
        match self.tid.is_valid(row) {
            true => self.tid.value(row) as u32,
            false => 0,
        }
    }

    /// Returns the number of recorded calls around a call.
    pub fn depth(&self, row: usize) -> usize {
        let depth = self.depth.as_ref().map_or(0, |depth| depth.value(row));
        depth as u32 as usize
    }

    /// Tells whether an exception or longjmp left a call.
    pub fn unwound(&self, row: usize) -> bool {
        self.unwound.value(row)
    }

    /// Tells whether a call had not returned when its thread or the process ended. The event of its end is then that end's.
    pub fn open_at_end(&self, row: usize) -> bool {
        let open = self.open_at_end.as_ref();
        open.is_some_and(|open| open.value(row))
    }

    /// Returns a word of a call, if it was recorded.
    #[inline]
    pub fn word(&self, row: usize, word: Word) -> Option<u64> {
        let column = match word {
            Word::Int(at) => &self.int[usize::from(at)],
            Word::Sse(at) => &self.sse[usize::from(at)],
            Word::Rax => &self.others[0],
            Word::Rdx => &self.others[1],
            Word::RetSse(at) => &self.others[2 + usize::from(at)],
            Word::Sp => &self.others[4],
        };
        let column = column.as_ref()?;
        column.is_valid(row).then(|| column.value(row) as u64)
    }
}
