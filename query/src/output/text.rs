//! Shows bytes as text, in the same way in every output.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;

use crate::error::Result;

/// Returns valid UTF-8 as it is, and other bytes as `\x` and two hexadecimal digits each.
pub fn bytes_as_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut text = String::with_capacity(2 + 2 * bytes.len());
            text.push_str("\\x");
            for byte in bytes {
                write!(text, "{byte:02x}").expect("a string takes whatever is written to it");
            }
            Cow::Owned(text)
        }
    }
}

/// Returns `batch` with its columns of bytes replaced by text.
///
/// # Errors
/// None in practice: columns keep their lengths.
pub fn without_bytes(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    let mut fields = Vec::with_capacity(schema.fields().len());
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        match column.data_type().is_binary() {
            true => {
                fields.push(Arc::new(Field::new(field.name(), DataType::Utf8View, true)));
                columns.push(texts(column)?);
            }
            false => {
                fields.push(Arc::clone(field));
                columns.push(Arc::clone(column));
            }
        }
    }
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

fn texts(column: &ArrayRef) -> Result<ArrayRef> {
    let bytes = cast(column, &DataType::BinaryView)?;
    let texts = bytes.as_binary_view().iter();
    let texts: StringViewArray = texts.map(|bytes| bytes.map(bytes_as_text)).collect();
    Ok(Arc::new(texts))
}
