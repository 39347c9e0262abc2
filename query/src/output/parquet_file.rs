//! Writes an answer as a Parquet file with types that every reader knows.

use std::io::Write;
use std::sync::Arc;

use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::each;
use super::names::unique_names;
use crate::answer::Answer;
use crate::error::Result;

/// Rows of a row group: what is held in memory, encoded, before it is written.
const ROW_GROUP_ROWS: usize = 256 << 10;

/// Writes all rows and returns how many there were.
pub fn write<W: Write + Send>(answer: &mut Answer, out: W) -> Result<u64> {
    let schema = unique_names(&plain_schema(answer.schema()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build();
    let mut writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties))?;
    let rows = each(answer, |batch| {
        let columns = batch
            .columns()
            .iter()
            .zip(schema.fields())
            .map(|(column, field)| cast(column, field.data_type()))
            .collect::<std::result::Result<_, _>>()?;
        Ok(writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?)
    })?;
    writer.close()?;
    Ok(rows)
}

/// Returns the schema without view and dictionary types, which not every reader knows.
fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    let plain = |field: &Arc<Field>| {
        let kind = match field.data_type() {
            DataType::Utf8View => DataType::Utf8,
            DataType::BinaryView => DataType::Binary,
            DataType::Dictionary(_, values) => values.as_ref().clone(),
            DataType::Null => return Arc::new(Field::new(field.name(), DataType::Utf8, true)),
            _ => return Arc::clone(field),
        };
        Arc::new(Field::new(field.name(), kind, field.is_nullable()))
    };
    Arc::new(Schema::new(
        schema.fields().iter().map(plain).collect::<Vec<_>>(),
    ))
}
