//! Collects the pages of one column chunk and writes them in Parquet's order: dictionary first, with indexes.
//!
//! Consecutive pages of one value, or of nulls only, become one page.

use std::io;

use bytes::Bytes;
use parquet::basic::{BoundaryOrder, Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::compress::Compressor;
use super::dictionary::Dictionary;
use super::page::{Body, Physical, Plan, Tools};
use super::rle;

/// The body of a page without values.
const NO_VALUES: Body<'static> = Body {
    encoding: Encoding::PLAIN,
    bytes: &[],
    plain_len: 0,
    compressed: false,
};

/// The rows of a page that have a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Presence<'a> {
    /// All of them.
    All,
    /// The rows with a 1.
    Levels(&'a [u32]),
}

/// One column of the row group being written.
#[derive(Debug)]
pub(super) struct Chunk {
    physical: Physical,
    optional: bool,
    plan: Option<Plan>,
    dictionary: Dictionary,
    constant: Option<Constant>,
    pages: Vec<DataPage>,
}

/// Rows with the same value, not yet a page.
#[derive(Clone, Copy, Debug)]
struct Constant {
    value: Option<i64>,
    rows: usize,
}

#[derive(Debug)]
struct DataPage {
    rows: usize,
    nulls: usize,
    /// Smallest and largest value; `None` if all are null.
    range: Option<(i64, i64)>,
    encoding: Encoding,
    levels_len: usize,
    plain_len: usize,
    compressed: bool,
    bytes: Bytes,
}

impl Chunk {
    /// Returns an empty chunk of a column.
    pub(super) fn new(physical: Physical, optional: bool) -> Self {
        Self {
            physical,
            optional,
            plan: None,
            dictionary: Dictionary::default(),
            constant: None,
            pages: Vec::new(),
        }
    }

    /// Appends rows; `values` has the values of the non-null ones.
    pub(super) fn push(
        &mut self,
        values: &[i64],
        presence: Presence<'_>,
        tools: &mut Tools,
    ) -> io::Result<()> {
        match (values.first(), presence) {
            (None, Presence::All) => return Ok(()),
            (None, Presence::Levels(levels)) => {
                self.push_constant(None, levels.len(), tools);
                return Ok(());
            }
            (Some(first), Presence::All) if is_constant(values) => {
                self.push_constant(Some(*first), values.len(), tools);
                return Ok(());
            }
            (Some(_), _) => {}
        }
        self.flush_constant(tools);
        self.push_page(values, presence, tools)
    }

    fn push_page(
        &mut self,
        values: &[i64],
        presence: Presence<'_>,
        tools: &mut Tools,
    ) -> io::Result<()> {
        let mut levels = Vec::new();
        let rows = match presence {
            Presence::All => values.len(),
            Presence::Levels(present) => present.len(),
        };
        match presence {
            Presence::All if self.optional => rle::run(1, rows, 1, &mut levels),
            Presence::All => {}
            Presence::Levels(present) => rle::encode(present, 1, &mut levels),
        }
        let (plan, encoding) = self.encode(values, tools)?;
        let page = DataPage::new(
            (rows, rows - values.len()),
            Some(range(values)),
            &levels,
            &plan.body(encoding, tools)?,
        );
        self.pages.push(page);
        Ok(())
    }

    /// Puts a page into `tools`, with the chunk's plan while that fits, otherwise with a new one.
    fn encode(&mut self, values: &[i64], tools: &mut Tools) -> io::Result<(Plan, Encoding)> {
        let (physical, dictionary) = (self.physical, &mut self.dictionary);
        let plan = match self.plan {
            Some(plan) => plan,
            None => Plan::choose(values, physical, Some(dictionary), tools)?,
        };
        self.plan = Some(plan);
        if let Some(encoding) = plan.encode(values, physical, dictionary, tools) {
            return Ok((plan, encoding));
        }
        let plan = Plan::choose(values, physical, None, tools)?;
        self.plan = Some(plan);
        let encoding = plan.encode(values, physical, dictionary, tools);
        Ok((plan, encoding.expect("only dictionaries run out of room")))
    }

    fn push_constant(&mut self, value: Option<i64>, rows: usize, tools: &mut Tools) {
        match &mut self.constant {
            Some(constant) if constant.value == value => constant.rows += rows,
            _ => {
                self.flush_constant(tools);
                self.constant = Some(Constant { value, rows });
            }
        }
    }

    fn flush_constant(&mut self, tools: &mut Tools) {
        let Some(Constant { value, rows }) = self.constant.take() else {
            return;
        };
        let mut levels = Vec::new();
        if self.optional {
            rle::run(u32::from(value.is_some()), rows, 1, &mut levels);
        }
        let page = match value {
            Some(value) => {
                let dictionary = &mut self.dictionary;
                let body = tools.constant_body(value, rows, self.physical, dictionary);
                DataPage::new((rows, 0), Some((value, value)), &levels, &body)
            }
            None => DataPage::new((rows, rows), None, &levels, &NO_VALUES),
        };
        self.pages.push(page);
    }

    /// Returns the chunk's bytes and its Parquet metadata, with offsets from the chunk's start.
    /// The chunk is then empty and ready for the next row group.
    ///
    /// # Errors
    /// When the compressor or the page writer fails.
    pub(super) fn finish(
        &mut self,
        column: &ColumnDescPtr,
        tools: &mut Tools,
    ) -> ParquetResult<(Bytes, ColumnCloseResult)> {
        self.flush_constant(tools);
        let mut sink = TrackedWrite::new(Vec::new());
        let mut totals = Totals::default();
        let compress = self.pages.iter().any(|page| page.compressed);
        if !self.dictionary.values().is_empty() {
            let body = tools.dictionary_body(&self.dictionary, self.physical, compress)?;
            let page = Page::DictionaryPage {
                buf: Bytes::copy_from_slice(body.bytes),
                num_values: self.dictionary.values().len() as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            let page = CompressedPage::new(page, body.plain_len);
            totals.add_dictionary(&SerializedPageWriter::new(&mut sink).write_page(page)?);
        }
        for page in &self.pages {
            let spec = SerializedPageWriter::new(&mut sink).write_page(page.to_parquet())?;
            totals.add(page, &spec);
        }
        let metadata = self.metadata(column, &totals, compress)?;
        let close = ColumnCloseResult {
            bytes_written: totals.compressed_len,
            rows_written: totals.rows,
            metadata,
            bloom_filter: None,
            column_index: Some(self.column_index(column)?),
            offset_index: Some(totals.offsets.build()),
        };
        self.clear();
        Ok((Bytes::from(sink.into_inner()?), close))
    }

    fn clear(&mut self) {
        self.plan = None;
        self.dictionary.clear();
        self.pages.clear();
    }

    fn metadata(
        &self,
        column: &ColumnDescPtr,
        totals: &Totals,
        compress: bool,
    ) -> ParquetResult<ColumnChunkMetaData> {
        let codec = match compress {
            true => Compressor::codec(),
            false => Compression::UNCOMPRESSED,
        };
        let mut encodings: Vec<Encoding> = vec![Encoding::PLAIN, Encoding::RLE];
        encodings.extend(self.pages.iter().map(|page| page.encoding));
        encodings.sort_unstable();
        encodings.dedup();
        ColumnChunkMetaData::builder(column.clone())
            .set_compression(codec)
            .set_encodings(encodings)
            .set_total_compressed_size(totals.compressed_len as i64)
            .set_total_uncompressed_size(totals.plain_len as i64)
            .set_num_values(totals.rows as i64)
            .set_data_page_offset(totals.dictionary_len as i64)
            .set_dictionary_page_offset((totals.dictionary_len > 0).then_some(0))
            .set_statistics(self.statistics())
            .build()
    }

    fn statistics(&self) -> Statistics {
        let ranges = self.pages.iter().filter_map(|page| page.range);
        let range = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let nulls = self.pages.iter().map(|page| page.nulls as u64).sum();
        let (min, max) = range.unzip();
        let nulls = Some(nulls);
        match self.physical {
            Physical::Boolean => {
                let bit = |value| value != 0;
                Statistics::boolean(min.map(bit), max.map(bit), None, nulls, false)
            }
            Physical::Int32 => {
                let narrow = |value| value as i32;
                Statistics::int32(min.map(narrow), max.map(narrow), None, nulls, false)
            }
            Physical::Int64 => Statistics::int64(min, max, None, nulls, false),
        }
    }

    fn column_index(&self, column: &ColumnDescPtr) -> ParquetResult<ColumnIndexMetaData> {
        let mut index = ColumnIndexBuilder::new(column.physical_type());
        let bytes = |value: i64| {
            let len = match self.physical {
                Physical::Boolean => 1,
                Physical::Int32 => 4,
                Physical::Int64 => 8,
            };
            value.to_le_bytes()[..len].to_vec()
        };
        for page in &self.pages {
            let (min, max) = page
                .range
                .map(|(min, max)| (bytes(min), bytes(max)))
                .unzip();
            let (min, max) = (min.unwrap_or_default(), max.unwrap_or_default());
            index.append(page.range.is_none(), min, max, page.nulls as i64);
        }
        index.set_boundary_order(self.boundary_order());
        index.build()
    }

    fn boundary_order(&self) -> BoundaryOrder {
        let ranges: Vec<(i64, i64)> = self.pages.iter().filter_map(|page| page.range).collect();
        let rises = |pair: &[(i64, i64)]| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1;
        match ranges.windows(2).all(rises) {
            true => BoundaryOrder::ASCENDING,
            false => BoundaryOrder::UNORDERED,
        }
    }
}

impl DataPage {
    fn new(
        (rows, nulls): (usize, usize),
        range: Option<(i64, i64)>,
        levels: &[u8],
        body: &Body<'_>,
    ) -> Self {
        Self {
            rows,
            nulls,
            range,
            encoding: body.encoding,
            levels_len: levels.len(),
            plain_len: levels.len() + body.plain_len,
            compressed: body.compressed,
            bytes: Bytes::from([levels, body.bytes].concat()),
        }
    }

    fn to_parquet(&self) -> CompressedPage {
        let page = Page::DataPageV2 {
            buf: self.bytes.clone(),
            num_values: self.rows as u32,
            encoding: self.encoding,
            num_nulls: self.nulls as u32,
            num_rows: self.rows as u32,
            def_levels_byte_len: self.levels_len as u32,
            rep_levels_byte_len: 0,
            is_compressed: self.compressed,
            statistics: None,
        };
        CompressedPage::new(page, self.plain_len)
    }
}

/// The counts of a chunk while its pages are written.
#[derive(Default)]
struct Totals {
    rows: u64,
    dictionary_len: u64,
    compressed_len: u64,
    plain_len: u64,
    offsets: OffsetIndexBuilder,
}

impl Totals {
    fn add_dictionary(&mut self, spec: &PageWriteSpec) {
        self.dictionary_len = spec.bytes_written;
        self.compressed_len += spec.bytes_written;
        self.plain_len += spec.uncompressed_size as u64;
    }

    fn add(&mut self, page: &DataPage, spec: &PageWriteSpec) {
        self.rows += page.rows as u64;
        self.compressed_len += spec.bytes_written;
        self.plain_len += spec.uncompressed_size as u64;
        self.offsets.append_row_count(page.rows as i64);
        let offset = spec.offset as i64;
        self.offsets
            .append_offset_and_size(offset, spec.bytes_written as i32);
    }
}

/// Returns whether `values`, which is not empty, has only one distinct value.
fn is_constant(values: &[i64]) -> bool {
    let first = values[0];
    let differs = |chunk: &[i64]| chunk.iter().fold(0, |any, value| any | (value ^ first)) != 0;
    !values.chunks(512).any(differs)
}

/// Returns the smallest and the largest of some values.
fn range(values: &[i64]) -> (i64, i64) {
    let mut lanes = [(i64::MAX, i64::MIN); 4];
    let (quads, rest) = values.as_chunks::<4>();
    for quad in quads {
        for (lane, value) in lanes.iter_mut().zip(quad) {
            *lane = (lane.0.min(*value), lane.1.max(*value));
        }
    }
    let rest = rest.iter().map(|value| (*value, *value));
    let all = lanes.into_iter().chain(rest);
    all.fold((i64::MAX, i64::MIN), |a, b| (a.0.min(b.0), a.1.max(b.1)))
}
