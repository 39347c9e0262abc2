//! The function around a cast that gives it a name of its own: the engine names a cast as what it casts.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// Its name, which no user writes.
pub const NAME: &str = "__cast_as";

/// Returns the function: it takes a cast, the word for it (`CAST` or `TRY_CAST`) and the name of its type, and returns the cast.
pub fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(CastAs(Signature::any(3, Volatility::Immutable)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CastAs(Signature);

impl ScalarUDFImpl for CastAs {
    fn name(&self) -> &str {
        NAME
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [
            cast,
            Expr::Literal(ScalarValue::Utf8(Some(word)), _),
            Expr::Literal(ScalarValue::Utf8(Some(kind)), _),
        ] = args
        else {
            let args: Vec<String> = args
                .iter()
                .map(|arg| arg.schema_name().to_string())
                .collect();
            return Ok(format!("{NAME}({})", args.join(",")));
        };
        Ok(format!("{word}({} AS {kind})", cast.schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types.first() {
            Some(kind) => Ok(kind.clone()),
            None => internal_err!("{NAME} of nothing"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let Some(cast) = args.arg_fields.first() else {
            return internal_err!("{NAME} of nothing");
        };
        Ok(cast.as_ref().clone().with_name(NAME).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut values = args.args.into_iter();
        match values.next() {
            Some(cast) => Ok(cast),
            None => internal_err!("{NAME} of nothing"),
        }
    }
}
