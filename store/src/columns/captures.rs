//! Writes the Parquet file of what was captured besides with enters and leaves: general registers and pieces of memory.
//!
//! A row belongs to the event with its `seq`. The file is there only in parts with a capture.

use std::io;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, Int32Builder, Int64Builder, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::errors::Result as ParquetResult;

use super::events::{ROW_GROUP_BYTES, properties};
use crate::wire::{CAPTURE_REGISTER_WORDS, Capture};

/// Rows of a page: what is read to see one of them.
pub const CAPTURE_PAGE_ROWS: usize = 1024;

/// The columns of registers, in the order of [`Capture::registers`].
pub const CAPTURE_REGISTERS: [&str; CAPTURE_REGISTER_WORDS] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// What was captured with one event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CaptureRow<'a> {
    /// Number of the enter or leave event.
    pub seq: u64,
    /// When, in nanoseconds.
    pub ts_ns: i64,
    /// The thread, where known.
    pub tid: Option<u32>,
    /// Registers and memory.
    pub capture: Capture<'a>,
}

/// Returns the columns of the file.
pub fn captures_schema() -> SchemaRef {
    let mut fields = vec![
        Field::new("seq", DataType::Int64, false),
        Field::new("ts_ns", DataType::Int64, false),
        Field::new("tid", DataType::Int32, true),
    ];
    fields.extend(CAPTURE_REGISTERS.map(|name| Field::new(name, DataType::Int64, true)));
    fields.push(Field::new("memory", DataType::Binary, true));
    Arc::new(Schema::new(fields))
}

/// A file of captures being written.
pub struct CapturesWriter<W: io::Write + Send> {
    file: ArrowWriter<W>,
    seq: Int64Builder,
    ts_ns: Int64Builder,
    tid: Int32Builder,
    registers: [Int64Builder; CAPTURE_REGISTER_WORDS],
    memory: BinaryBuilder,
    rows_in_batch: usize,
    rows_in_file: u64,
    bytes_in_group: usize,
}

impl<W: io::Write + Send> CapturesWriter<W> {
    /// Returns a writer that has written the file's first bytes.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(out: W) -> ParquetResult<Self> {
        let properties = properties(CAPTURE_PAGE_ROWS)?;
        Ok(Self {
            file: ArrowWriter::try_new(out, captures_schema(), Some(properties))?,
            seq: Int64Builder::new(),
            ts_ns: Int64Builder::new(),
            tid: Int32Builder::new(),
            registers: Default::default(),
            memory: BinaryBuilder::new(),
            rows_in_batch: 0,
            rows_in_file: 0,
            bytes_in_group: 0,
        })
    }

    /// Returns the rows given so far.
    pub fn rows(&self) -> u64 {
        self.rows_in_file
    }

    /// Appends a capture.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push(&mut self, row: &CaptureRow<'_>) -> ParquetResult<()> {
        self.seq.append_value(row.seq as i64);
        self.ts_ns.append_value(row.ts_ns);
        self.tid.append_option(row.tid.map(|tid| tid as i32));
        let registers = row.capture.registers();
        for (index, column) in self.registers.iter_mut().enumerate() {
            column.append_option(registers.map(|registers| registers[index] as i64));
        }
        let memory = row.capture.memory();
        self.memory
            .append_option((!memory.is_empty()).then_some(memory));
        self.rows_in_batch += 1;
        self.rows_in_file += 1;
        self.bytes_in_group += memory.len() + 8 * CAPTURE_REGISTER_WORDS;
        if self.rows_in_batch == CAPTURE_PAGE_ROWS {
            self.end_batch()?;
        }
        Ok(())
    }

    /// Writes what is left and the footer, and returns the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> ParquetResult<W> {
        self.end_batch()?;
        self.file.into_inner()
    }

    fn end_batch(&mut self) -> ParquetResult<()> {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.seq.finish()),
            Arc::new(self.ts_ns.finish()),
            Arc::new(self.tid.finish()),
        ];
        let registers = self.registers.iter_mut();
        columns.extend(registers.map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.push(Arc::new(self.memory.finish()));
        self.file
            .write(&RecordBatch::try_new(captures_schema(), columns)?)?;
        self.rows_in_batch = 0;
        if self.bytes_in_group >= ROW_GROUP_BYTES {
            self.file.flush()?;
            self.bytes_in_group = 0;
        }
        Ok(())
    }
}
