//! The scalar functions that turn bits into text and numbers: `hex`, `f32`, `f64`, and the text of an output event.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, StringViewBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The kind of one of these functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Action {
    /// `hex(x)`: an integer's bit pattern or bytes, in hexadecimal.
    Hex,
    /// `f32(bits)`: the low 32 bits as a float.
    Single,
    /// `f64(bits)`: 64 bits as a double.
    Double,
    /// `utf8_text(bytes)`: bytes as text; invalid UTF-8 becomes U+FFFD.
    Utf8Text,
}

/// A function of one argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bits {
    action: Action,
    signature: Signature,
}

fn make(action: Action) -> ScalarUDF {
    let signature = match action {
        Action::Hex => Signature::user_defined(Volatility::Immutable),
        Action::Single | Action::Double => {
            Signature::exact(vec![DataType::Int64], Volatility::Immutable)
        }
        Action::Utf8Text => Signature::exact(vec![DataType::BinaryView], Volatility::Immutable),
    };
    ScalarUDF::new_from_impl(Bits { action, signature })
}

/// Returns the functions that users call by name.
pub fn public_functions() -> Vec<ScalarUDF> {
    [
        Action::Hex,
        Action::Single,
        Action::Double,
        Action::Utf8Text,
    ]
    .map(make)
    .to_vec()
}

/// Returns the function that shows bytes in hexadecimal.
pub fn hex_text() -> ScalarUDF {
    make(Action::Hex)
}

/// Returns the function that shows bytes as text.
pub fn utf8_text() -> ScalarUDF {
    make(Action::Utf8Text)
}

impl ScalarUDFImpl for Bits {
    fn name(&self) -> &str {
        match self.action {
            Action::Hex => "hex",
            Action::Single => "f32",
            Action::Double => "f64",
            Action::Utf8Text => "utf8_text",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(match self.action {
            Action::Hex | Action::Utf8Text => DataType::Utf8View,
            Action::Single => DataType::Float32,
            Action::Double => DataType::Float64,
        })
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types {
            [kind] if kind.is_integer() || *kind == DataType::Null => Ok(vec![kind.clone()]),
            [
                DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View,
            ] => Ok(vec![DataType::BinaryView]),
            [other] => plan_err!("'hex' takes an integer, bytes or text, not {other}"),
            others => plan_err!("'hex' takes one argument, not {}", others.len()),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(args.number_rows)?;
        let values: ArrayRef = match self.action {
            Action::Hex => hex(&array)?,
            Action::Single => {
                let bits = array.as_primitive::<Int64Type>();
                let floats: Float32Array = bits.unary(|bits| f32::from_bits(bits as u32));
                Arc::new(floats)
            }
            Action::Double => {
                let bits = array.as_primitive::<Int64Type>();
                let floats: Float64Array = bits.unary(|bits| f64::from_bits(bits as u64));
                Arc::new(floats)
            }
            Action::Utf8Text => {
                let mut texts = StringViewBuilder::with_capacity(array.len());
                for bytes in array.as_binary_view() {
                    texts.append_option(bytes.map(String::from_utf8_lossy));
                }
                Arc::new(texts.finish())
            }
        };
        Ok(ColumnarValue::Array(values))
    }
}

/// Writes integers as `0x` and the digits of their bit pattern, bytes and text as two digits a byte.
fn hex(array: &ArrayRef) -> Result<ArrayRef> {
    let mut texts = StringViewBuilder::with_capacity(array.len());
    let mut text = String::new();
    match array.data_type() {
        kind if kind.is_integer() => {
            for value in integers(array)? {
                texts.append_option(value.map(|value| {
                    text.clear();
                    write!(text, "{value:#x}").expect("a string takes whatever is written to it");
                    text.as_str()
                }));
            }
        }
        DataType::Null => (0..array.len()).for_each(|_| texts.append_null()),
        DataType::BinaryView => {
            for value in array.as_binary_view() {
                texts.append_option(value.map(|bytes| {
                    text.clear();
                    for byte in bytes {
                        write!(text, "{byte:02x}")
                            .expect("a string takes whatever is written to it");
                    }
                    text.as_str()
                }));
            }
        }
        other => return internal_err!("hex of {other}"),
    }
    Ok(Arc::new(texts.finish()))
}

/// Returns the bit patterns of integers; narrow negative ones keep their own width.
fn integers(array: &ArrayRef) -> Result<Vec<Option<u64>>> {
    if let Some(width) = array.data_type().primitive_width()
        && array.data_type().is_signed_integer()
    {
        let wide = cast(array, &DataType::Int64)?;
        let mask = u64::MAX >> (64 - 8 * width);
        let bits = |value: Option<i64>| value.map(|value| value as u64 & mask);
        return Ok(wide.as_primitive::<Int64Type>().iter().map(bits).collect());
    }
    let wide = cast(array, &DataType::UInt64)?;
    Ok(wide.as_primitive::<UInt64Type>().iter().collect())
}
