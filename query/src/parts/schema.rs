//! Names the physical columns of sealed files, as the format defines them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use store::columns::{CALL_COLUMNS, CallColumn};

/// Returns the columns of a file of calls.
pub fn calls_schema() -> SchemaRef {
    let field = |column: &CallColumn| {
        let kind = match column.name {
            "function_id" | "tid" | "depth" => DataType::Int32,
            "unwound" | "tail" | "open_at_end" => DataType::Boolean,
            _ => DataType::Int64,
        };
        // Older files lack the last column.
        let may_be_null = column.is_optional() || column.name == "open_at_end";
        Field::new(column.name, kind, may_be_null)
    };
    let fields: Vec<_> = CALL_COLUMNS.iter().map(field).collect();
    Arc::new(Schema::new(fields))
}

/// Returns the columns of a file of other events.
pub fn events_schema() -> SchemaRef {
    let optional = |name: &str, kind| Field::new(name, kind, true);
    Arc::new(Schema::new(vec![
        Field::new("seq", DataType::Int64, false),
        Field::new("ts_ns", DataType::Int64, false),
        optional("tid", DataType::Int32),
        Field::new("kind", DataType::Utf8View, false),
        optional("text", DataType::Utf8View),
        optional("bytes", DataType::BinaryView),
        optional("addr", DataType::Int64),
        optional("size", DataType::Int64),
        optional("value", DataType::Int64),
        optional("aux", DataType::Utf8View),
        optional("probe", DataType::Int32),
        optional("detail", DataType::Utf8View),
        optional("old", DataType::BinaryView),
    ]))
}

/// Returns the columns of a file of states.
pub fn states_schema() -> SchemaRef {
    let field = |field: &Field| {
        let kind = match field.data_type() {
            DataType::Utf8 => DataType::Utf8View,
            DataType::Binary => DataType::BinaryView,
            other => other.clone(),
        };
        Field::new(field.name(), kind, field.is_nullable())
    };
    let stored = store::columns::states_schema();
    let fields: Vec<_> = stored.fields().iter().map(|f| field(f)).collect();
    Arc::new(Schema::new(fields))
}
