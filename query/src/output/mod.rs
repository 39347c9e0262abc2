//! Writes answers as CSV, JSON, JSON lines or Parquet. Tables for people are drawn elsewhere.
//!
//! CSV and JSON show bytes as text: valid UTF-8 as it is, other bytes as `\x` and two hexadecimal digits each. Parquet
//! keeps the bytes. In JSON, which has no such numbers, `NaN`, `inf` and `-inf` are texts. In JSON and Parquet, columns with
//! the same name are numbered: `function`, `function_2`.

mod json;
mod names;
mod parquet_file;
mod text;

use std::io::Write;

use arrow::csv;
use arrow::json::writer::{JsonArray, LineDelimited};
use arrow::record_batch::RecordBatch;

use crate::answer::Answer;
use crate::error::Result;

pub use text::{bytes_as_text, without_bytes};

/// The format of a written answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A line of column names, then a line per row; null is empty. RFC 4180.
    Csv,
    /// One array of objects; null is `null`.
    Json,
    /// One object per line.
    JsonLines,
    /// One Parquet file, zstd.
    Parquet,
}

/// Writes all rows of `answer` to `out` and returns how many there were.
///
/// # Errors
/// Those of the answer, and [`crate::error::Error::Write`] when `out` takes no more.
pub fn write<W: Write + Send>(answer: &mut Answer, format: Format, mut out: W) -> Result<u64> {
    match format {
        Format::Csv => {
            let empty = without_bytes(&RecordBatch::new_empty(answer.schema().clone()))?;
            let mut writer = csv::WriterBuilder::new().with_header(true).build(&mut out);
            writer.write(&empty)?;
            each(answer, |batch| Ok(writer.write(&without_bytes(batch)?)?))
        }
        Format::Json => {
            let mut writer = json::builder().build::<_, JsonArray>(&mut out);
            let rows = each(answer, |batch| Ok(writer.write(&named(batch)?)?))?;
            writer.finish()?;
            drop(writer);
            out.write_all(b"\n")?;
            Ok(rows)
        }
        Format::JsonLines => {
            let mut writer = json::builder().build::<_, LineDelimited>(&mut out);
            let rows = each(answer, |batch| Ok(writer.write(&named(batch)?)?))?;
            writer.finish()?;
            Ok(rows)
        }
        Format::Parquet => parquet_file::write(answer, out),
    }
}

/// Returns `batch` with a unique name for each column.
fn named(batch: &RecordBatch) -> Result<RecordBatch> {
    let names = names::unique_names(&batch.schema());
    Ok(RecordBatch::try_new(names, batch.columns().to_vec())?)
}

fn each(answer: &mut Answer, mut take: impl FnMut(&RecordBatch) -> Result<()>) -> Result<u64> {
    let mut rows = 0;
    for batch in answer {
        let batch = batch?;
        take(&batch)?;
        rows += batch.num_rows() as u64;
    }
    Ok(rows)
}
