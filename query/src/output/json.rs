//! What JSON has no form for: numbers that are none become the texts `NaN`, `inf` and `-inf`, and bytes become text, inside of
//! lists and structures, too.

use std::io::Write;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, FieldRef, Float16Type, Float32Type, Float64Type,
};
use arrow::error::ArrowError;
use arrow::json::WriterBuilder;
use arrow::json::writer::{Encoder, EncoderFactory, EncoderOptions, NullableEncoder, make_encoder};

use super::text::bytes_as_text;

/// Arrow's own way to write.
static PLAIN: LazyLock<EncoderOptions> = LazyLock::new(EncoderOptions::default);

/// Returns what makes writers of JSON, in which NULL is `null`.
pub fn builder() -> WriterBuilder {
    WriterBuilder::new()
        .with_explicit_nulls(true)
        .with_encoder_factory(Arc::new(AsText))
}

#[derive(Debug)]
struct AsText;

impl EncoderFactory for AsText {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let encoder = match array.data_type() {
            DataType::Float16 => float::<Float16Type>(field, array)?,
            DataType::Float32 => float::<Float32Type>(field, array)?,
            DataType::Float64 => float::<Float64Type>(field, array)?,
            DataType::Binary => {
                let array = array.as_binary::<i32>();
                bytes(move |row| array.value(row))
            }
            DataType::LargeBinary => {
                let array = array.as_binary::<i64>();
                bytes(move |row| array.value(row))
            }
            DataType::BinaryView => {
                let array = array.as_binary_view();
                bytes(move |row| array.value(row))
            }
            DataType::FixedSizeBinary(_) => {
                let array = array.as_fixed_size_binary();
                bytes(move |row| array.value(row))
            }
            _ => return Ok(None),
        };
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

/// Writes numbers.
struct Floats<'a, F> {
    /// Those that are numbers.
    finite: NullableEncoder<'a>,
    value: F,
}

fn float<'a, T>(
    field: &'a FieldRef,
    array: &'a dyn Array,
) -> Result<Box<dyn Encoder + 'a>, ArrowError>
where
    T: ArrowPrimitiveType,
    T::Native: Into<f64>,
{
    let values = array.as_primitive::<T>();
    Ok(Box::new(Floats {
        finite: make_encoder(field, array, &PLAIN)?,
        value: move |row| -> f64 { values.value(row).into() },
    }))
}

impl<F: Fn(usize) -> f64> Encoder for Floats<'_, F> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let value = (self.value)(row);
        match value.is_finite() {
            true => self.finite.encode(row, out),
            false => write!(out, "\"{value}\"").expect("a vector takes whatever is written to it"),
        }
    }
}

/// Writes bytes.
struct Bytes<F>(F);

fn bytes<'a, F>(value: F) -> Box<dyn Encoder + 'a>
where
    F: Fn(usize) -> &'a [u8] + 'a,
{
    Box::new(Bytes(value))
}

impl<'a, F: Fn(usize) -> &'a [u8]> Encoder for Bytes<F> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let text = bytes_as_text((self.0)(row));
        serde_json::to_writer(out, &text).expect("a vector takes whatever is written to it");
    }
}
