//! The scalar function that computes the columns `function`, `file`, `line` and `module`: one value per function id,
//! looked up.
//!
//! The optimizer rules recognise this function by its type: an expression that depends only on lookups of one id column
//! can be computed once per function instead of once per call.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int32Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Name of the functions that map ids to grouping keys.
const GROUP_KEY: &str = "function_key";

/// A scalar function `name(function_id)` that returns `values[function_id]`, null outside.
#[derive(Debug)]
pub struct Lookup {
    name: String,
    values: ArrayRef,
    signature: Signature,
}

impl Lookup {
    /// Returns the function that maps an id to its value in `values`.
    pub fn function(name: impl Into<String>, values: ArrayRef) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self {
            name: name.into(),
            values,
            signature: Signature::exact(vec![DataType::Int32], Volatility::Immutable),
        })
    }

    /// Returns the function that maps an id to its grouping key.
    pub fn group_key(keys: ArrayRef) -> ScalarUDF {
        Self::function(GROUP_KEY, keys)
    }

    /// Returns whether this maps ids to grouping keys; looking through that gains nothing.
    pub fn is_group_key(&self) -> bool {
        self.name == GROUP_KEY
    }

    /// Returns one more than the largest id that has a value.
    pub fn id_limit(&self) -> usize {
        self.values.len()
    }

    fn look_up(&self, ids: &Int32Array) -> Result<ArrayRef> {
        let limit = self.values.len();
        let all_known =
            ids.null_count() == 0 && ids.values().iter().all(|&id| (id as usize) < limit);
        if all_known {
            return Ok(take(&self.values, ids, None)?);
        }
        let known = |id: Option<i32>| id.map(|id| id as u32).filter(|&id| (id as usize) < limit);
        let indices: UInt32Array = ids.iter().map(known).collect();
        Ok(take(&self.values, &indices, None)?)
    }
}

impl PartialEq for Lookup {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.values, &other.values)
    }
}

impl Eq for Lookup {}

impl Hash for Lookup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.values.len().hash(state);
    }
}

impl ScalarUDFImpl for Lookup {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.values.data_type().clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &args.args[0] {
            ColumnarValue::Array(ids) => Ok(ColumnarValue::Array(
                self.look_up(ids.as_primitive::<Int32Type>())?,
            )),
            ColumnarValue::Scalar(id) => {
                let ids = id.to_array()?;
                let values = self.look_up(ids.as_primitive::<Int32Type>())?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                    &values, 0,
                )?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;

    use super::*;

    #[test]
    fn ids_without_a_definition_are_null() {
        let lookup = Lookup {
            name: "f".into(),
            values: Arc::new(StringViewArray::from(vec![Some("a"), None, Some("c")])),
            signature: Signature::any(1, Volatility::Immutable),
        };
        let ids = Int32Array::from(vec![Some(2), None, Some(0), Some(7), Some(-1), Some(1)]);
        let found = lookup.look_up(&ids).unwrap();
        let found: Vec<_> = found.as_string_view().iter().collect();
        assert_eq!(found, [Some("c"), None, Some("a"), None, None, None]);
    }
}
