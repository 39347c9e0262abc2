//! The rows of a table of instructions as columns. Only columns that a query reads are built.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, Int32Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringViewArray,
};
use arrow::datatypes::{Field, SchemaRef};
use datafusion::common::Result;
use replay::Sought;

use super::place::SourceLocation;

/// A row.
pub struct Row {
    pub sought: Sought,
    pub seq: u64,
    pub step: u64,
    pub place: SourceLocation,
    /// The instruction as text, if it is read.
    pub text: Option<Arc<str>>,
}

impl Row {
    fn memory_number(&self, of: impl Fn(&replay::Touched) -> u64) -> Option<i64> {
        self.sought.memory.as_ref().map(|memory| of(memory) as i64)
    }

    fn code(&self) -> Option<i64> {
        self.sought
            .code
            .as_ref()
            .map(|(address, _)| *address as i64)
    }

    /// The address: of the memory, or else of the code.
    fn address(&self) -> i64 {
        let memory = self.memory_number(|memory| memory.address);
        memory.or(self.code()).unwrap_or(0)
    }
}

/// Makes a batch.
pub fn batch(schema: &SchemaRef, rows: &[Row]) -> Result<RecordBatch> {
    let columns = schema.fields().iter().map(|field| column(field, rows));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns.collect(),
        &options,
    )?)
}

fn column(field: &Field, rows: &[Row]) -> ArrayRef {
    let numbers = |of: &dyn Fn(&Row) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let texts = |of: &dyn Fn(&Row) -> Option<Arc<str>>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringViewArray>())
    };
    let memory = |row: &Row, is_old: bool| {
        let memory = row.sought.memory.as_ref()?;
        let bytes = match is_old {
            true => &memory.old,
            false => &memory.new,
        };
        (!bytes.is_empty()).then(|| bytes.clone())
    };
    let bytes = |is_old: bool| -> ArrayRef {
        let mut builder = BinaryBuilder::new();
        for row in rows {
            builder.append_option(memory(row, is_old));
        }
        Arc::new(builder.finish())
    };
    match field.name().as_str() {
        "position" => numbers(&|row| Some(row.sought.position as i64)),
        "seq" => numbers(&|row| Some(row.seq as i64)),
        "step" => numbers(&|row| Some(row.step as i64)),
        "tid" => Arc::new(Int32Array::from_iter_values(
            rows.iter().map(|row| row.sought.tid.cast_signed()),
        )),
        "addr" => numbers(&|row| Some(row.address())),
        "size" => numbers(&|row| Some(row.memory_number(|memory| memory.size).unwrap_or(0))),
        "pc" => numbers(&Row::code),
        "line" => numbers(&|row| row.place.line.map(i64::from)),
        "function" => texts(&|row| row.place.function.clone()),
        "file" => texts(&|row| row.place.file.clone()),
        "old" => bytes(true),
        "new" | "value" => bytes(false),
        // text
        _ => texts(&|row| row.text.clone()),
    }
}
