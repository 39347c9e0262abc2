//! Writes the Parquet file of the states of stopped threads: registers, stack and values, a row per pause.
//!
//! Such rows are few and long, and queries about events do not need them, so they have their own file. Only parts with
//! a pause have it.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, Int32Builder, Int64Builder, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::calls::PAGE_ROWS;
use super::rows::{Batch, ROW_GROUP_BYTES, RowsWriter};
use crate::control::{GENERAL_REGISTERS, Pause, REGISTER_NAMES};

/// Rows that are passed on together, unless they are long.
const BATCH_ROWS: usize = 256;

/// The state of a thread that was stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StateRow<'a> {
    /// Number of the pause among the events.
    pub seq: u64,
    /// When, in nanoseconds.
    pub ts_ns: i64,
    /// The state of the thread.
    pub pause: &'a Pause,
    /// The pause's values as JSON, if it has any.
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
pub type StatesWriter<W> = RowsWriter<W, StateBatch>;

/// States that are not yet written.
#[derive(Default)]
pub struct StateBatch {
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

impl StateBatch {
    fn push_registers(&mut self, pause: &Pause) {
        let registers = pause.registers.as_ref();
        for (index, column) in self.registers.iter_mut().enumerate() {
            column.append_option(registers.map(|registers| registers.general[index] as i64));
        }
        self.vectors
            .append_option(registers.map(|registers| registers.vectors.as_flattened()));
    }
}

impl Batch for StateBatch {
    type Row<'a> = StateRow<'a>;
    const PAGE_ROWS: usize = PAGE_ROWS;

    fn schema() -> SchemaRef {
        states_schema()
    }

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

    fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.len_bytes >= ROW_GROUP_BYTES
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
        columns
    }
}
