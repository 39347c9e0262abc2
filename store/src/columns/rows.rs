//! Writes rows that come one by one as a Parquet file: they become columns in batches, and batches become row groups.
//!
//! Memory stays bounded however long the rows are: a row group also ends when its texts and bytes are large. Each kind
//! of file defines its row and the size of a batch.

use std::io;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{
    DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT, WriterProperties, WriterVersion,
};
use parquet::schema::types::ColumnPath;

/// Rows of a row group.
const ROW_GROUP_ROWS: usize = 128 << 10;
/// Bytes of text and output after which rows are passed on and the row group ends, so that memory stays bounded.
pub(super) const ROW_GROUP_BYTES: usize = 16 << 20;

/// Rows as columns, until they are written.
pub trait Batch: Default {
    /// The type of a row. The first two columns are `seq` and `ts_ns`.
    type Row<'a>;
    /// Rows of a page: the least that must be read to see one of them.
    const PAGE_ROWS: usize;
    /// Largest dictionary of a column, in bytes of distinct values. Reading a page reads the whole dictionary too.
    const DICTIONARY_BYTES: usize = DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT;

    /// Returns the columns of the file.
    fn schema() -> SchemaRef;

    /// Appends a row.
    fn push(&mut self, row: &Self::Row<'_>);

    /// Returns whether the rows must be written before the next one comes.
    fn is_full(&self) -> bool;

    /// Returns the approximate memory of the rows.
    fn len_bytes(&self) -> usize;

    /// Returns the columns in the order of the schema, and forgets all rows.
    fn take(&mut self) -> Vec<ArrayRef>;
}

/// A file of rows being written.
pub struct RowsWriter<W: io::Write + Send, B> {
    file: ArrowWriter<W>,
    batch: B,
    rows_in_file: u64,
    bytes_in_group: usize,
}

impl<W: io::Write + Send, B: Batch> RowsWriter<W, B> {
    /// Returns a writer that has written the file's first bytes.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(out: W) -> ParquetResult<Self> {
        let properties = properties(B::PAGE_ROWS, B::DICTIONARY_BYTES)?;
        Ok(Self {
            file: ArrowWriter::try_new(out, B::schema(), Some(properties))?,
            batch: B::default(),
            rows_in_file: 0,
            bytes_in_group: 0,
        })
    }

    /// Returns the number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows_in_file
    }

    /// Appends a row.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push(&mut self, row: &B::Row<'_>) -> ParquetResult<()> {
        self.batch.push(row);
        self.rows_in_file += 1;
        if self.batch.is_full() {
            self.end_batch()?;
        }
        Ok(())
    }

    /// Writes the rest and the footer, and returns the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> ParquetResult<W> {
        self.end_batch()?;
        self.file.into_inner()
    }

    fn end_batch(&mut self) -> ParquetResult<()> {
        self.bytes_in_group += self.batch.len_bytes();
        let columns = self.batch.take();
        self.file
            .write(&RecordBatch::try_new(B::schema(), columns)?)?;
        if self.bytes_in_group >= ROW_GROUP_BYTES {
            self.file.flush()?;
            self.bytes_in_group = 0;
        }
        Ok(())
    }
}

/// Returns the writer properties of such files, with the limits of a page and of a dictionary.
fn properties(page_rows: usize, dictionary_bytes: usize) -> ParquetResult<WriterProperties> {
    let by_seq = SortingColumn {
        column_idx: 0,
        descending: false,
        nulls_first: false,
    };
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_data_page_row_count_limit(page_rows)
        .set_dictionary_page_size_limit(dictionary_bytes)
        .set_sorting_columns(Some(vec![by_seq]));
    for name in ["seq", "ts_ns"] {
        let path = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}
