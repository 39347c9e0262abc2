//! The cells of an answer as text: numbers unchanged, bytes as `query` formats them everywhere, null as `None`.

use arrow::array::Array;
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use query::output::without_bytes;

use crate::error::Error;
use crate::render::{Align, Column};

/// Returns the columns of a table.
pub fn columns(schema: &Schema) -> Vec<Column> {
    let column = |field: &arrow::datatypes::FieldRef| Column {
        name: field.name().clone(),
        align: if is_number(field.data_type()) {
            Align::Right
        } else {
            Align::Left
        },
    };
    schema.fields().iter().map(column).collect()
}

/// Returns the name and type of each column, with the type in SQL terms.
pub fn types(schema: &Schema) -> Vec<(String, String)> {
    let fields = schema.fields().iter();
    fields
        .map(|field| (field.name().clone(), type_name(field.data_type())))
        .collect()
}

fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Boolean => "bool".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytes".to_owned(),
        DataType::Dictionary(_, values) => type_name(values),
        other => other.to_string().to_lowercase(),
    }
}

fn is_number(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_number(values),
        other => other.is_numeric(),
    }
}

/// Returns the rows of a batch.
///
/// # Errors
/// When a cell has a type that cannot be shown.
pub fn rows(batch: &RecordBatch) -> Result<Vec<Vec<Option<String>>>, Error> {
    let batch = without_bytes(batch).map_err(|source| Error::Query { source })?;
    let options = FormatOptions::default().with_null("NULL");
    let columns = batch
        .columns()
        .iter()
        .map(|column| Ok((column, ArrayFormatter::try_new(column, &options)?)))
        .collect::<Result<Vec<_>, ArrowError>>()
        .map_err(cannot_show)?;
    let cell = |(column, formatter): &(&arrow::array::ArrayRef, ArrayFormatter<'_>), row| {
        // Arrow does not mark the values of a Null array as null.
        if column.is_null(row) || *column.data_type() == DataType::Null {
            return Ok(None);
        }
        formatter.value(row).try_to_string().map(Some)
    };
    (0..batch.num_rows())
        .map(|row| {
            columns
                .iter()
                .map(|column| cell(column, row))
                .collect::<Result<Vec<_>, ArrowError>>()
        })
        .collect::<Result<Vec<_>, ArrowError>>()
        .map_err(cannot_show)
}

fn cannot_show(error: ArrowError) -> Error {
    Error::Query {
        source: query::Error::Arrow(error),
    }
}
