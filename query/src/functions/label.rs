//! The scalar function `label(labels, key)`: one value of the JSON object in the column `labels` of `runs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

#[derive(Debug, PartialEq, Eq, Hash)]
struct Label {
    signature: Signature,
}

/// Returns the function.
pub fn function() -> ScalarUDF {
    let text = vec![DataType::Utf8, DataType::Utf8];
    ScalarUDF::new_from_impl(Label {
        signature: Signature::exact(text, Volatility::Immutable),
    })
}

impl ScalarUDFImpl for Label {
    fn name(&self) -> &str {
        "label"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let text = |at: usize| -> Result<StringArray> {
            let array = args.args[at].to_array(args.number_rows)?;
            Ok(cast(&array, &DataType::Utf8)?.as_string().clone())
        };
        let (labels, keys) = (text(0)?, text(1)?);
        let value = |row: usize| {
            let known = labels.is_valid(row) && keys.is_valid(row);
            let labels = known.then(|| labels.value(row))?;
            let labels: BTreeMap<String, String> = serde_json::from_str(labels).ok()?;
            labels.get(keys.value(row)).cloned()
        };
        let values: StringViewArray = (0..args.number_rows).map(value).collect();
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}
