//! The predicate that a filter on names becomes when it selects many functions: membership of a bitmap of ids.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Int32Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// A scalar function `in_id_set(function_id)`: true for the ids of the set, null for null.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct IdSet {
    selected: Arc<[bool]>,
    signature: Signature,
}

impl IdSet {
    /// Returns the function that is true where `selected[id]` is.
    pub fn function(selected: Arc<[bool]>) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self {
            selected,
            signature: Signature::exact(vec![DataType::Int32], Volatility::Immutable),
        })
    }

    fn contains(&self, id: i32) -> bool {
        self.selected.get(id as usize).copied().unwrap_or(false)
    }
}

impl ScalarUDFImpl for IdSet {
    fn name(&self) -> &str {
        "in_id_set"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ids = args.args[0].to_array(args.number_rows)?;
        let ids = ids.as_primitive::<Int32Type>();
        let values = ids.values();
        let bits = BooleanBuffer::collect_bool(values.len(), |row| self.contains(values[row]));
        let found = BooleanArray::new(bits, ids.nulls().cloned());
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}
