//! The scalar function that computes the column `outs`: the targets of pointer and reference arguments when the call
//! returned, as text: `*quotient=3, *rest=2`.
//!
//! The memory was captured with the return, at the addresses that were passed. `const` targets and unknown ones are
//! left out.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, AsArray, StringViewBuilder};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use store::control::{FunctionDef, ValueKind};

use crate::definitions::Definitions;
use crate::state::{CallTexts, States};

/// `out_arguments(function_id, end_seq)`.
#[derive(Debug)]
struct Outs {
    definitions: Arc<Definitions>,
    states: States,
    signature: Signature,
}

/// Returns the function that computes `outs`.
pub fn function(definitions: &Arc<Definitions>, states: &States) -> ScalarUDF {
    ScalarUDF::new_from_impl(Outs {
        definitions: Arc::clone(definitions),
        states: states.clone(),
        signature: Signature::exact(
            vec![DataType::Int32, DataType::Int64],
            Volatility::Immutable,
        ),
    })
}

impl PartialEq for Outs {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.definitions, &other.definitions)
    }
}

impl Eq for Outs {}

impl Hash for Outs {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definitions.id_limit().hash(state);
    }
}

/// The names of the parameters that may have a target.
fn addresses(function: &FunctionDef) -> Vec<&str> {
    let params = function.params.iter();
    let addresses =
        params.filter(|param| param.kind == ValueKind::Pointer && !param.name.is_empty());
    addresses.map(|param| param.name.as_str()).collect()
}

impl ScalarUDFImpl for Outs {
    fn name(&self) -> &str {
        "out_arguments"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let ids = arrays[0].as_primitive::<Int32Type>();
        let ends = arrays[1].as_primitive::<Int64Type>();
        let mut texts = StringViewBuilder::with_capacity(rows);
        let mut states = CallTexts::new(&self.states);
        let names = |row: usize| {
            let is_known = ids.is_valid(row) && ends.is_valid(row);
            let function = match is_known {
                true => self.definitions.function(ids.value(row) as usize),
                false => None,
            };
            function.map(addresses).filter(|names| !names.is_empty())
        };
        let end = |row: usize| ends.value(row) as u64;
        let turn = self.states.turn(rows, |row| names(row).map(|_| end(row)));
        for row in turn.rows(rows) {
            let text = names(row).and_then(|names| states.outs(end(row), &names));
            texts.append_option(text);
        }
        let texts = turn.restored(Arc::new(texts.finish()))?;
        Ok(ColumnarValue::Array(texts))
    }
}
