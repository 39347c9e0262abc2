//! Writes the Parquet file of finished calls, one row per call in the order they are given.

use std::io::Write;
use std::sync::Arc;

use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types;

use super::call::{
    CALL_COLUMNS, CallColumn, CallEnd, CallStart, ColumnSource, NONE, OPEN_AT_END, RETURNED,
    RETURNED_XMM, TAIL, UNWOUND, buffered,
};
use super::chunk::{Chunk, Presence};
use super::page::Tools;

/// Rows after which the columns of a page are encoded. Constant columns have longer pages.
pub const PAGE_ROWS: usize = 8 << 10;
/// Rows of a row group, except the last one of a file.
pub const ROW_GROUP_ROWS: usize = 256 << 10;

/// Values from one buffered column to the next. Not a power of two: the columns would compete for the same cache lines.
const STRIDE: usize = PAGE_ROWS + 8;

/// Rows that are not yet encoded, column by column.
struct Rows {
    values: Box<[[i64; STRIDE]; buffered::COUNT]>,
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

    /// Returns the number of rows so far.
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

    /// Writes the rest and the footer, and returns the file.
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
        let columns = vec![[0; STRIDE]; buffered::COUNT].into_boxed_slice();
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
                    self.values[buffered::RETURN_XMM][row] = xmm[0] as i64;
                    self.values[buffered::RETURN_XMM + 1][row] = xmm[1] as i64;
                }
                (seq as i64, ts_ns - start.ts_ns, flags, rax, rdx)
            }
            CallEnd::Unwound { seq, ts_ns } => (seq as i64, ts_ns - start.ts_ns, UNWOUND, 0, 0),
            CallEnd::OpenAtEnd { seq, ts_ns } => {
                (seq as i64, ts_ns - start.ts_ns, OPEN_AT_END, 0, 0)
            }
            CallEnd::Unfinished | CallEnd::NotRecorded => (NONE, NONE, 0, 0, 0),
        };
        let child_ns = match end {
            CallEnd::NotRecorded => NONE,
            _ => child_ns,
        };
        let values = &mut *self.values;
        values[buffered::END_SEQ][row] = end_seq;
        values[buffered::START_SEQ][row] = start.seq as i64;
        values[buffered::TS_NS][row] = start.ts_ns;
        values[buffered::DUR_NS][row] = dur_ns;
        values[buffered::CHILD_NS][row] = child_ns;
        values[buffered::FUNCTION_ID][row] = i64::from(start.function_id);
        values[buffered::TID][row] = tid.map_or(NONE, i64::from);
        values[buffered::DEPTH][row] = i64::from(start.depth);
        values[buffered::PARENT_SEQ][row] = start.parent_seq.map_or(NONE, |seq| seq as i64);
        for (i, arg) in start.args.iter().enumerate() {
            values[buffered::ARGS + i][row] = *arg as i64;
        }
        values[buffered::SP][row] = start.slot as i64;
        values[buffered::RET_ADDR][row] = start.return_addr as i64;
        values[buffered::RAX][row] = rax as i64;
        values[buffered::RDX][row] = rdx as i64;
        self.flags[row] = flags | if start.tail { TAIL } else { 0 };
        self.xmm_counts[row] = start.xmm_count;
        if start.xmm_count > 0 {
            for (i, xmm) in start.xmm.iter().enumerate() {
                values[buffered::XMM + i][row] = *xmm as i64;
            }
        }
        self.len = row + 1;
    }

    /// Returns a column's non-null values, and which rows have them.
    fn column<'a>(
        &'a self,
        source: ColumnSource,
        scratch: &'a mut Scratch,
    ) -> (&'a [i64], Presence<'a>) {
        let len = self.len;
        match source {
            ColumnSource::Always(buffered) => (&self.values[buffered][..len], Presence::All),
            ColumnSource::Flag(flag) => {
                let bits = self.flags[..len].iter().map(|f| i64::from(f & flag != 0));
                scratch.values.clear();
                scratch.values.extend(bits);
                (&scratch.values, Presence::All)
            }
            ColumnSource::UnlessNone(buffered) => {
                let values = &self.values[buffered][..len];
                let present = values.iter().map(|value| *value != NONE);
                scratch.select(values, present)
            }
            ColumnSource::IfFlag(buffered, flag) => {
                let present = self.flags[..len].iter().map(|f| f & flag != 0);
                scratch.select(&self.values[buffered][..len], present)
            }
            ColumnSource::Xmm(register) => {
                let present = self.xmm_counts[..len]
                    .iter()
                    .map(|c| usize::from(*c) > register);
                scratch.select(&self.values[buffered::XMM + register][..len], present)
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
