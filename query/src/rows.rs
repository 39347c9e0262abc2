//! Answers with few rows, row by row.

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};

use crate::error::Result;
use crate::session::Session;

/// A cell of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A number; true is 1, and false 0.
    Number(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Null.
    Null,
}

/// A row of an answer.
#[derive(Clone, Debug)]
pub struct Row(Vec<Cell>);

impl Row {
    /// Returns the number in a column; `None` for null.
    pub fn number(&self, column: usize) -> Option<i64> {
        match self.0.get(column) {
            Some(Cell::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// The same for a number that is never negative.
    pub fn count(&self, column: usize) -> Option<u64> {
        self.number(column)
            .and_then(|number| u64::try_from(number).ok())
    }

    /// Returns the text in a column; `None` for null.
    pub fn text(&self, column: usize) -> Option<&str> {
        match self.0.get(column) {
            Some(Cell::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the bytes in a column; `None` for null.
    pub fn bytes(&self, column: usize) -> Option<&[u8]> {
        match self.0.get(column) {
            Some(Cell::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }
}

/// Runs a query whose answer has few rows.
///
/// # Errors
/// The recording cannot be read.
pub fn ask(session: &Session, sql: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for batch in session.sql(sql)? {
        let batch = batch?;
        let columns = batch.columns().iter().map(|column| {
            let kind = match column.data_type() {
                kind if kind.is_integer() || *kind == DataType::Boolean => DataType::Int64,
                kind if kind.is_binary() => DataType::BinaryView,
                _ => DataType::Utf8,
            };
            cast(column, &kind)
        });
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        let cell = |column: &dyn Array, row: usize| match column.data_type() {
            _ if column.is_null(row) => Cell::Null,
            DataType::Int64 => Cell::Number(column.as_primitive::<Int64Type>().value(row)),
            DataType::BinaryView => Cell::Bytes(column.as_binary_view().value(row).to_vec()),
            _ => Cell::Text(column.as_string::<i32>().value(row).to_owned()),
        };
        let row = |row| Row(columns.iter().map(|column| cell(column, row)).collect());
        rows.extend((0..batch.num_rows()).map(row));
    }
    Ok(rows)
}
