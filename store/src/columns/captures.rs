//! Writes the Parquet file of captures at enters and leaves: general registers and pieces of memory.
//!
//! A row belongs to the event with its `seq`. Only parts with a capture have the file.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, Int32Builder, Int64Builder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::rows::{Batch, RowsWriter};
use crate::wire::{CAPTURE_REGISTER_WORDS, Capture};

/// Rows of a page: the least that must be read to see one of them.
pub const CAPTURE_PAGE_ROWS: usize = 1024;

/// The columns of registers, in the order of [`Capture::registers`].
pub const CAPTURE_REGISTERS: [&str; CAPTURE_REGISTER_WORDS] = [
    "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// The captured data of one event.
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
pub type CapturesWriter<W> = RowsWriter<W, CaptureBatch>;

/// Captures that are not yet written.
#[derive(Default)]
pub struct CaptureBatch {
    seq: Int64Builder,
    ts_ns: Int64Builder,
    tid: Int32Builder,
    registers: [Int64Builder; CAPTURE_REGISTER_WORDS],
    memory: BinaryBuilder,
    rows: usize,
    len_bytes: usize,
}

impl Batch for CaptureBatch {
    type Row<'a> = CaptureRow<'a>;
    const PAGE_ROWS: usize = CAPTURE_PAGE_ROWS;
    const DICTIONARY_BYTES: usize = 8 << 10;

    fn schema() -> SchemaRef {
        captures_schema()
    }

    fn push(&mut self, row: &CaptureRow<'_>) {
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
        self.rows += 1;
        self.len_bytes += memory.len() + 8 * CAPTURE_REGISTER_WORDS;
    }

    fn is_full(&self) -> bool {
        self.rows == CAPTURE_PAGE_ROWS
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        self.rows = 0;
        self.len_bytes = 0;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.seq.finish()),
            Arc::new(self.ts_ns.finish()),
            Arc::new(self.tid.finish()),
        ];
        let registers = self.registers.iter_mut();
        columns.extend(registers.map(|column| Arc::new(column.finish()) as ArrayRef));
        columns.push(Arc::new(self.memory.finish()));
        columns
    }
}
