//! Writes the Parquet file of what stopped threads looked like: registers, stack and values, a row per pause.
//!
//! Such rows are few and long, and questions about events have no use for them, so they have a file of their own. It
//! is there only in parts with a pause.

use std::io;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, Int32Builder, Int64Builder, RecordBatch, StringBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::errors::Result as ParquetResult;

use super::calls::PAGE_ROWS;
use super::events::{ROW_GROUP_BYTES, properties};
use crate::control::{GENERAL_REGISTERS, Pause, REGISTER_NAMES};

/// Rows that are handed on together, unless they are long.
const BATCH_ROWS: usize = 256;

/// The state of a thread that was stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StateRow<'a> {
    /// Number of the pause among the events.
    pub seq: u64,
    /// When, in nanoseconds.
    pub ts_ns: i64,
    /// What was seen.
    pub pause: &'a Pause,
    /// The pause's values as JSON, where it has any.
    pub values: Option<&'a str>,
}

impl StateRow<'_> {
    fn len_bytes(&self) -> usize {
        let fixed = 512;
        fixed + self.pause.stack.len() + self.values.map_or(0, str::len)
    }
}

/// Returns the columns of the file.
pub fn states_schema() -> SchemaRef {
    let mut fields = vec![
        Field::new("seq", DataType::Int64, false),
        Field::new("ts_ns", DataType::Int64, false),
        Field::new("tid", DataType::Int32, true),
        Field::new("reason", DataType::Utf8, false),
        Field::new("probe", DataType::Int32, true),
        Field::new("hits", DataType::Int64, true),
        Field::new("function", DataType::Utf8, true),
        Field::new("file", DataType::Utf8, true),
        Field::new("line", DataType::Int64, true),
        Field::new("pc", DataType::Int64, false),
        Field::new("captured", DataType::Utf8, true),
        Field::new("watch_addr", DataType::Int64, true),
        Field::new("watch_old", DataType::Binary, true),
        Field::new("watch_new", DataType::Binary, true),
    ];
    fields.extend(REGISTER_NAMES.map(|name| Field::new(name, DataType::Int64, true)));
    fields.extend([
        Field::new("vectors", DataType::Binary, true),
        Field::new("stack_addr", DataType::Int64, true),
        Field::new("stack_len", DataType::Int64, true),
        Field::new("stack", DataType::Binary, true),
    ]);
    Arc::new(Schema::new(fields))
}

/// A file of states being written.
pub struct StatesWriter<W: io::Write + Send> {
    file: ArrowWriter<W>,
    batch: Batch,
    rows_in_file: u64,
    bytes_in_group: usize,
}

#[derive(Default)]
struct Batch {
    seq: Int64Builder,
    ts_ns: Int64Builder,
    tid: Int32Builder,
    reason: StringBuilder,
    probe: Int32Builder,
    hits: Int64Builder,
    function: StringBuilder,
    file: StringBuilder,
    line: Int64Builder,
    pc: Int64Builder,
    values: StringBuilder,
    watch_addr: Int64Builder,
    watch_old: BinaryBuilder,
    watch_new: BinaryBuilder,
    registers: [Int64Builder; GENERAL_REGISTERS],
    vectors: BinaryBuilder,
    stack_addr: Int64Builder,
    stack_len: Int64Builder,
    stack: BinaryBuilder,
    rows: usize,
    len_bytes: usize,
}

impl<W: io::Write + Send> StatesWriter<W> {
    /// Returns a writer that has written the file's first bytes.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(out: W) -> ParquetResult<Self> {
        Ok(Self {
            file: ArrowWriter::try_new(out, states_schema(), Some(properties(PAGE_ROWS)?))?,
            batch: Batch::default(),
            rows_in_file: 0,
            bytes_in_group: 0,
        })
    }

    /// Returns the rows given so far.
    pub fn rows(&self) -> u64 {
        self.rows_in_file
    }

    /// Appends a state.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push(&mut self, row: &StateRow<'_>) -> ParquetResult<()> {
        self.batch.push(row);
        self.rows_in_file += 1;
        if self.batch.rows >= BATCH_ROWS || self.batch.len_bytes >= ROW_GROUP_BYTES {
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
        self.bytes_in_group += self.batch.len_bytes;
        self.file.write(&self.batch.take()?)?;
        if self.bytes_in_group >= ROW_GROUP_BYTES {
            self.file.flush()?;
            self.bytes_in_group = 0;
        }
        Ok(())
    }
}

impl Batch {
    fn push(&mut self, row: &StateRow<'_>) {
        let pause = row.pause;
        self.seq.append_value(row.seq as i64);
        self.ts_ns.append_value(row.ts_ns);
        self.tid
            .append_option((pause.tid != 0).then_some(pause.tid as i32));
        self.reason.append_value(pause.reason.name());
        self.probe.append_option(pause.probe.map(|id| id as i32));
        self.hits.append_option(pause.hits.map(|hits| hits as i64));
        self.function.append_option(pause.function.as_deref());
        self.file.append_option(pause.file.as_deref());
        self.line.append_option(pause.line.map(i64::from));
        self.pc.append_value(pause.pc as i64);
        self.values.append_option(row.values);
        let watched = pause.watched.as_ref();
        self.watch_addr
            .append_option(watched.map(|place| place.addr as i64));
        self.watch_old
            .append_option(watched.and_then(|place| place.old.as_deref()));
        self.watch_new
            .append_option(watched.and_then(|place| place.new.as_deref()));
        self.push_registers(pause);
        let stack = (!pause.stack.is_empty()).then_some(&*pause.stack);
        self.stack_addr
            .append_option(stack.map(|_| pause.stack_addr as i64));
        self.stack_len
            .append_option(stack.map(|stack| stack.len() as i64));
        self.stack.append_option(stack);
        self.rows += 1;
        self.len_bytes += row.len_bytes();
    }

    fn push_registers(&mut self, pause: &Pause) {
        let registers = pause.registers.as_ref();
        for (index, column) in self.registers.iter_mut().enumerate() {
            column.append_option(registers.map(|registers| registers.general[index] as i64));
        }
        self.vectors
            .append_option(registers.map(|registers| registers.vectors.as_flattened()));
    }

    fn take(&mut self) -> ParquetResult<RecordBatch> {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.seq.finish()),
            Arc::new(self.ts_ns.finish()),
            Arc::new(self.tid.finish()),
            Arc::new(self.reason.finish()),
            Arc::new(self.probe.finish()),
            Arc::new(self.hits.finish()),
            Arc::new(self.function.finish()),
            Arc::new(self.file.finish()),
            Arc::new(self.line.finish()),
            Arc::new(self.pc.finish()),
            Arc::new(self.values.finish()),
            Arc::new(self.watch_addr.finish()),
            Arc::new(self.watch_old.finish()),
            Arc::new(self.watch_new.finish()),
        ];
        columns.extend(
            self.registers
                .iter_mut()
                .map(|column| Arc::new(column.finish()) as ArrayRef),
        );
        columns.extend([
            Arc::new(self.vectors.finish()) as ArrayRef,
            Arc::new(self.stack_addr.finish()),
            Arc::new(self.stack_len.finish()),
            Arc::new(self.stack.finish()),
        ]);
        self.rows = 0;
        self.len_bytes = 0;
        Ok(RecordBatch::try_new(states_schema(), columns)?)
    }
}
