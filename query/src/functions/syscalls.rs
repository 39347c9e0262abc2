//! The scalar functions that turn the events of system calls into names, arguments and errors.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, Int64Array, StringViewBuilder};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::syscalls::{Call, arguments, error_name, name};

/// One of these functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Action {
    /// `syscall_name(number)`.
    Name,
    /// `syscall_errno(result)`: the name of an error; null where it is none.
    Errno,
    /// `syscall_arguments(number, begun, written, result)`.
    Arguments,
    /// `syscall_text(number, begun)`: name and arguments, as far as they were known when it began.
    Text,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfCalls {
    action: Action,
    signature: Signature,
}

fn make(action: Action) -> ScalarUDF {
    use DataType::{BinaryView, Int64};
    let inputs = match action {
        Action::Name | Action::Errno => vec![Int64],
        Action::Arguments => vec![Int64, BinaryView, BinaryView, Int64],
        Action::Text => vec![Int64, BinaryView],
    };
    ScalarUDF::new_from_impl(OfCalls {
        action,
        signature: Signature::exact(inputs, Volatility::Immutable),
    })
}

/// Returns the function that names a system call.
pub fn name_function() -> ScalarUDF {
    make(Action::Name)
}

/// Returns the function that names an error.
pub fn errno_function() -> ScalarUDF {
    make(Action::Errno)
}

/// Returns the function that writes arguments.
pub fn arguments_function() -> ScalarUDF {
    make(Action::Arguments)
}

/// Returns the function that writes a call as it began.
pub fn text_function() -> ScalarUDF {
    make(Action::Text)
}

impl ScalarUDFImpl for OfCalls {
    fn name(&self) -> &str {
        match self.action {
            Action::Name => "syscall_name",
            Action::Errno => "syscall_errno",
            Action::Arguments => "syscall_arguments",
            Action::Text => "syscall_text",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays: Vec<ArrayRef> = args
            .args
            .iter()
            .map(|value| value.to_array(rows))
            .collect::<Result<_>>()?;
        let numbers = arrays[0].as_primitive::<Int64Type>();
        let mut texts = StringViewBuilder::with_capacity(rows);
        for row in 0..rows {
            if numbers.is_null(row) {
                texts.append_null();
                continue;
            }
            let number = numbers.value(row);
            match self.action {
                Action::Name => texts.append_value(named(number)),
                Action::Errno => texts.append_option(error(number)),
                Action::Arguments => texts.append_value(arguments(&Call {
                    number: number as u64,
                    begun: bytes(arrays[1].as_binary_view(), row),
                    written: bytes(arrays[2].as_binary_view(), row),
                    result: of(arrays[3].as_primitive::<Int64Type>(), row),
                })),
                Action::Text => {
                    let call = Call {
                        number: number as u64,
                        begun: bytes(arrays[1].as_binary_view(), row),
                        written: &[],
                        result: None,
                    };
                    texts.append_value(format!("{}({})", named(number), arguments(&call)));
                }
            }
        }
        Ok(ColumnarValue::Array(Arc::new(texts.finish())))
    }
}

/// Returns the name of a system call, or a word with its number.
pub fn named(number: i64) -> String {
    let known = u64::try_from(number).ok().and_then(name);
    known.map_or_else(|| format!("syscall_{number:#x}"), str::to_owned)
}

/// Returns the name of the error in `result`. Some internal errors of the kernel never reach a program, but do reach
/// tracers.
pub fn error(result: i64) -> Option<String> {
    let number = result.checked_neg().filter(|n| (1..=4095).contains(n))?;
    let known = error_name(number).map(str::to_owned);
    Some(known.unwrap_or_else(|| number.to_string()))
}

fn bytes(array: &BinaryViewArray, row: usize) -> &[u8] {
    match array.is_valid(row) {
        true => array.value(row),
        false => &[],
    }
}

fn of(array: &Int64Array, row: usize) -> Option<i64> {
    array.is_valid(row).then(|| array.value(row))
}
