//! Writes the Parquet file of finished calls, one row per call in the order they are given.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Repetition, Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types;
use serde::{Deserialize, Serialize};

use super::chunk::{Chunk, Presence};
use super::page::{Physical, Tools};
use crate::wire::{ENTER_MAX_XMM, INT_ARGS, LEAVE_XMM};

/// Rows after which the columns of a page are encoded. Columns that do not change have longer pages.
pub const PAGE_ROWS: usize = 8 << 10;
/// Rows of a row group, except the last one of a file.
pub const ROW_GROUP_ROWS: usize = 256 << 10;

/// Columns whose values are buffered for each row.
const BUFFERED: usize = 19 + ENTER_MAX_XMM + LEAVE_XMM;
/// Values from one buffered column to the next. Not a power of two: the columns would compete for the same cache lines.
const STRIDE: usize = PAGE_ROWS + 8;

const UNWOUND: u8 = 1;
const TAIL: u8 = 2;
const RETURNED: u8 = 4;
const RETURNED_XMM: u8 = 8;

const NONE: i64 = -1;

/// A call as it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStart {
    /// Seq of the enter event; also the call's id.
    pub seq: u64,
    /// When, in nanoseconds.
    pub ts_ns: i64,
    /// Which function.
    pub function_id: u32,
    /// Enclosing traced calls.
    pub depth: u32,
    /// `seq` of the enclosing traced call.
    pub parent_seq: Option<u64>,
    /// Whether a tail call replaced another call by this one.
    pub tail: bool,
    /// Address of the stack word with the return address.
    pub slot: u64,
    /// Where the caller goes on.
    pub return_addr: u64,
    /// rdi, rsi, rdx, rcx, r8 and r9.
    pub args: [u64; INT_ARGS],
    /// How many of `xmm` were captured.
    pub xmm_count: u8,
    /// Low 64 bits of xmm0 to xmm7.
    pub xmm: [u64; ENTER_MAX_XMM],
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// It returned.
    Returned {
        /// Seq of the leave event.
        seq: u64,
        /// When, in nanoseconds.
        ts_ns: i64,
        /// First integer return register.
        rax: u64,
        /// Second integer return register.
        rdx: u64,
        /// Low 64 bits of xmm0 and xmm1, where captured.
        xmm: Option<[u64; LEAVE_XMM]>,
    },
    /// It was left by other means: an exception, longjmp, the end of its thread.
    Unwound {
        /// Seq of the leave event that stands for it.
        seq: u64,
        /// When that was noticed, in nanoseconds.
        ts_ns: i64,
    },
    /// It was still open when the recording ended.
    Unfinished,
}

/// One column of the file.
#[derive(Clone, Copy, Debug)]
pub struct CallColumn {
    /// Its name.
    pub name: &'static str,
    physical: Physical,
    source: Source,
}

/// Where a column's values come from; numbers are those of buffered columns.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Every row has a value.
    Always(usize),
    /// Rows with -1 have none.
    UnlessNone(usize),
    /// Rows with that flag have one.
    IfFlag(usize, u8),
    /// The flag is the value.
    Flag(u8),
    /// Rows with more than that many captured xmm registers have one.
    Xmm(usize),
}

impl CallColumn {
    const fn int64(name: &'static str, source: Source) -> Self {
        Self {
            name,
            physical: Physical::Int64,
            source,
        }
    }

    const fn int32(name: &'static str, source: Source) -> Self {
        Self {
            name,
            physical: Physical::Int32,
            source,
        }
    }

    const fn flag(name: &'static str, flag: u8) -> Self {
        Self {
            name,
            physical: Physical::Boolean,
            source: Source::Flag(flag),
        }
    }

    /// Returns whether rows may have no value in this column.
    pub const fn is_optional(&self) -> bool {
        !matches!(self.source, Source::Always(_) | Source::Flag(_))
    }

    fn to_parquet(self) -> ParquetResult<types::Type> {
        let physical = match self.physical {
            Physical::Boolean => Type::BOOLEAN,
            Physical::Int32 => Type::INT32,
            Physical::Int64 => Type::INT64,
        };
        let repetition = match self.is_optional() {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        types::Type::primitive_type_builder(self.name, physical)
            .with_repetition(repetition)
            .build()
    }
}

/// The columns of the file, in order.
pub const CALL_COLUMNS: [CallColumn; 31] = {
    use Source::{Always, IfFlag, UnlessNone, Xmm};
    [
        CallColumn::int64("end_seq", UnlessNone(0)),
        CallColumn::int64("start_seq", Always(1)),
        CallColumn::int64("ts_ns", Always(2)),
        CallColumn::int64("dur_ns", Always(3)),
        CallColumn::int64("child_ns", Always(4)),
        CallColumn::int32("function_id", Always(5)),
        CallColumn::int32("tid", UnlessNone(6)),
        CallColumn::int32("depth", Always(7)),
        CallColumn::int64("parent_seq", UnlessNone(8)),
        CallColumn::flag("unwound", UNWOUND),
        CallColumn::flag("tail", TAIL),
        CallColumn::int64("a0", Always(9)),
        CallColumn::int64("a1", Always(10)),
        CallColumn::int64("a2", Always(11)),
        CallColumn::int64("a3", Always(12)),
        CallColumn::int64("a4", Always(13)),
        CallColumn::int64("a5", Always(14)),
        CallColumn::int64("sp", Always(15)),
        CallColumn::int64("ret_addr", Always(16)),
        CallColumn::int64("rax", IfFlag(17, RETURNED)),
        CallColumn::int64("rdx", IfFlag(18, RETURNED)),
        CallColumn::int64("x0", Xmm(0)),
        CallColumn::int64("x1", Xmm(1)),
        CallColumn::int64("x2", Xmm(2)),
        CallColumn::int64("x3", Xmm(3)),
        CallColumn::int64("x4", Xmm(4)),
        CallColumn::int64("x5", Xmm(5)),
        CallColumn::int64("x6", Xmm(6)),
        CallColumn::int64("x7", Xmm(7)),
        CallColumn::int64("xr0", IfFlag(FIRST_RETURN_XMM, RETURNED_XMM)),
        CallColumn::int64("xr1", IfFlag(FIRST_RETURN_XMM + 1, RETURNED_XMM)),
    ]
};
const FIRST_XMM: usize = 19;
const FIRST_RETURN_XMM: usize = FIRST_XMM + ENTER_MAX_XMM;

/// Rows that are not yet encoded, column by column.
struct Rows {
    values: Box<[[i64; STRIDE]; BUFFERED]>,
    flags: Box<[u8; PAGE_ROWS]>,
    xmm_counts: Box<[u8; PAGE_ROWS]>,
    len: usize,
}

/// A file of calls being written.
pub struct CallsWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Rows,
    chunks: Vec<Chunk>,
    tools: Tools,
    scratch: Scratch,
    rows_in_group: usize,
    rows_in_file: u64,
}

#[derive(Default)]
struct Scratch {
    levels: Vec<u32>,
    values: Vec<i64>,
}

impl<W: Write + Send> CallsWriter<W> {
    /// Returns a writer that has written the file's first bytes.
    ///
    /// # Errors
    /// When `out` fails or there is no memory for the compressor.
    pub fn new(out: W) -> ParquetResult<Self> {
        let columns = CALL_COLUMNS.iter().map(|c| c.to_parquet().map(Arc::new));
        let schema = types::Type::group_type_builder("calls")
            .with_fields(columns.collect::<ParquetResult<_>>()?)
            .build()?;
        let by_end = SortingColumn {
            column_idx: 0,
            descending: false,
            nulls_first: false,
        };
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_sorting_columns(Some(vec![by_end]))
            .build();
        let chunk = |c: &CallColumn| Chunk::new(c.physical, c.is_optional());
        Ok(Self {
            file: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?,
            rows: Rows::new(),
            chunks: CALL_COLUMNS.iter().map(chunk).collect(),
            tools: Tools::new()?,
            scratch: Scratch::default(),
            rows_in_group: 0,
            rows_in_file: 0,
        })
    }

    /// Returns the rows given so far.
    pub fn rows(&self) -> u64 {
        self.rows_in_file
    }

    /// Appends a call. `tid` is `None` when the thread's id is not known; `child_ns` is the time in its direct callees.
    ///
    /// # Errors
    /// When the file cannot be written.
    #[inline]
    pub fn push(
        &mut self,
        tid: Option<u32>,
        start: &CallStart,
        child_ns: i64,
        end: &CallEnd,
    ) -> ParquetResult<()> {
        if self.rows.len >= PAGE_ROWS {
            self.end_page()?;
        }
        self.rows.push(tid, start, child_ns, end);
        self.rows_in_file += 1;
        Ok(())
    }

    /// Writes what is left and the footer, and returns the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> ParquetResult<W> {
        self.end_page()?;
        self.end_row_group()?;
        self.file.into_inner()
    }

    #[inline(never)]
    fn end_page(&mut self) -> ParquetResult<()> {
        let rows = &self.rows;
        for (column, chunk) in CALL_COLUMNS.iter().zip(&mut self.chunks) {
            let (values, presence) = rows.column(column.source, &mut self.scratch);
            chunk.push(values, presence, &mut self.tools)?;
        }
        self.rows_in_group += self.rows.len;
        self.rows.len = 0;
        if self.rows_in_group >= ROW_GROUP_ROWS {
            self.end_row_group()?;
        }
        Ok(())
    }

    fn end_row_group(&mut self) -> ParquetResult<()> {
        if self.rows_in_group == 0 {
            return Ok(());
        }
        let columns = self.file.schema_descr().columns().to_vec();
        let mut row_group = self.file.next_row_group()?;
        for (chunk, column) in self.chunks.iter_mut().zip(&columns) {
            let (bytes, close) = chunk.finish(column, &mut self.tools)?;
            row_group.append_column(&bytes, close)?;
        }
        row_group.close()?;
        self.rows_in_group = 0;
        Ok(())
    }
}

impl Rows {
    fn new() -> Self {
        let columns = vec![[0; STRIDE]; BUFFERED].into_boxed_slice();
        Self {
            values: columns.try_into().expect("the length is that of the type"),
            flags: Box::new([0; PAGE_ROWS]),
            xmm_counts: Box::new([0; PAGE_ROWS]),
            len: 0,
        }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// When the page is full.
    #[inline]
    fn push(&mut self, tid: Option<u32>, start: &CallStart, child_ns: i64, end: &CallEnd) {
        let row = self.len;
        assert!(
            row < PAGE_ROWS,
            "a full page is encoded before the next row"
        );
        let (end_seq, dur_ns, flags, rax, rdx) = match *end {
            CallEnd::Returned {
                seq,
                ts_ns,
                rax,
                rdx,
                xmm,
            } => {
                let mut flags = RETURNED;
                if let Some(xmm) = xmm {
                    flags |= RETURNED_XMM;
                    self.values[FIRST_RETURN_XMM][row] = xmm[0] as i64;
                    self.values[FIRST_RETURN_XMM + 1][row] = xmm[1] as i64;
                }
                (seq as i64, ts_ns - start.ts_ns, flags, rax, rdx)
            }
            CallEnd::Unwound { seq, ts_ns } => (seq as i64, ts_ns - start.ts_ns, UNWOUND, 0, 0),
            CallEnd::Unfinished => (NONE, NONE, 0, 0, 0),
        };
        let values = &mut *self.values;
        values[0][row] = end_seq;
        values[1][row] = start.seq as i64;
        values[2][row] = start.ts_ns;
        values[3][row] = dur_ns;
        values[4][row] = child_ns;
        values[5][row] = i64::from(start.function_id);
        values[6][row] = tid.map_or(NONE, i64::from);
        values[7][row] = i64::from(start.depth);
        values[8][row] = start.parent_seq.map_or(NONE, |seq| seq as i64);
        for (i, arg) in start.args.iter().enumerate() {
            values[9 + i][row] = *arg as i64;
        }
        values[15][row] = start.slot as i64;
        values[16][row] = start.return_addr as i64;
        values[17][row] = rax as i64;
        values[18][row] = rdx as i64;
        self.flags[row] = flags | if start.tail { TAIL } else { 0 };
        self.xmm_counts[row] = start.xmm_count;
        if start.xmm_count > 0 {
            for (i, xmm) in start.xmm.iter().enumerate() {
                values[FIRST_XMM + i][row] = *xmm as i64;
            }
        }
        self.len = row + 1;
    }

    /// Returns a column's values of the rows that have one, and which those are.
    fn column<'a>(&'a self, source: Source, scratch: &'a mut Scratch) -> (&'a [i64], Presence<'a>) {
        let len = self.len;
        match source {
            Source::Always(buffered) => (&self.values[buffered][..len], Presence::All),
            Source::Flag(flag) => {
                let bits = self.flags[..len].iter().map(|f| i64::from(f & flag != 0));
                scratch.values.clear();
                scratch.values.extend(bits);
                (&scratch.values, Presence::All)
            }
            Source::UnlessNone(buffered) => {
                let values = &self.values[buffered][..len];
                let present = values.iter().map(|value| *value != NONE);
                scratch.select(values, present)
            }
            Source::IfFlag(buffered, flag) => {
                let present = self.flags[..len].iter().map(|f| f & flag != 0);
                scratch.select(&self.values[buffered][..len], present)
            }
            Source::Xmm(register) => {
                let present = self.xmm_counts[..len]
                    .iter()
                    .map(|c| usize::from(*c) > register);
                scratch.select(&self.values[FIRST_XMM + register][..len], present)
            }
        }
    }
}

impl Scratch {
    fn select<'a>(
        &'a mut self,
        values: &'a [i64],
        present: impl Iterator<Item = bool>,
    ) -> (&'a [i64], Presence<'a>) {
        self.levels.clear();
        self.levels.extend(present.map(u32::from));
        let count: u32 = self.levels.iter().sum();
        if count as usize == values.len() {
            return (values, Presence::All);
        }
        self.values.clear();
        if count > 0 {
            let rows = values.iter().zip(&self.levels);
            self.values.extend(
                rows.filter(|(_, level)| **level != 0)
                    .map(|(value, _)| *value),
            );
        }
        (&self.values, Presence::Levels(&self.levels))
    }
}
