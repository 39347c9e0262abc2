//! Additions, subtractions and multiplications of integers and decimals that fail where the result does not fit. The engine's own wrap
//! around, or have a digit more than a decimal has.

use arrow::array::{Array, ArrayRef, AsArray, Datum};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Field, FieldRef};
use arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;
use debuginfo::Diagnostic;

use crate::state::told;

/// Begins the engine's message about a result that does not fit.
const OVERFLOW: &str = "Overflow happened on: ";

/// Returns the sum, difference or product of two integers of one type, or of two decimals of as many bits.
pub fn checked(of: BinaryExpr) -> Expr {
    let function = ScalarUDF::new_from_impl(Arithmetic {
        operator: of.op,
        signature: Signature::any(2, Volatility::Immutable),
    });
    function.call(vec![*of.left, *of.right])
}

/// Returns whether an operator is one of these.
pub fn is_checked(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Plus | Operator::Minus | Operator::Multiply
    )
}

/// Returns the two summands of an addition, be it checked or the engine's own.
pub fn summands(expr: &Expr) -> Option<[&Expr; 2]> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Plus,
            right,
        }) => Some([left.as_ref(), right.as_ref()]),
        Expr::ScalarFunction(call) => {
            let function = call.func.inner().downcast_ref::<Arithmetic>()?;
            match (function.operator, call.args.as_slice()) {
                (Operator::Plus, [left, right]) => Some([left, right]),
                _ => None,
            }
        }
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    operator: Operator,
    signature: Signature,
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        match self.operator {
            Operator::Plus => "plus",
            Operator::Minus => "minus",
            _ => "times",
        }
    }

    /// The name that the engine's own expression has.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else {
            return internal_err!("{} of {} values", self.name(), args.len());
        };
        let (left, right) = (left.schema_name(), right.schema_name());
        Ok(format!("{left} {} {right}", self.operator))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [left, right] if left.is_decimal() => {
                BinaryTypeCoercer::new(left, &self.operator, right).get_result_type()
            }
            [kind, _] => Ok(kind.clone()),
            _ => internal_err!("{} of {} values", self.name(), arg_types.len()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let kinds: Vec<DataType> = args
            .arg_fields
            .iter()
            .map(|field| field.data_type().clone())
            .collect();
        let is_optional = args.arg_fields.iter().any(|field| field.is_nullable());
        let field = Field::new(self.name(), self.return_type(&kinds)?, is_optional);
        Ok(field.into())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return internal_err!("{} of {} values", self.name(), args.args.len());
        };
        let kernel: Kernel = match self.operator {
            Operator::Plus => numeric::add,
            Operator::Minus => numeric::sub,
            _ => numeric::mul,
        };
        let kind = args.return_type();
        let result = apply(left, right, kernel).map_err(|error| in_our_words(error, kind))?;
        match kind.is_decimal() && !has_its_digits(&result)? {
            true => Err(told(too_large(String::new(), kind))),
            false => Ok(result),
        }
    }
}

type Kernel = fn(&dyn Datum, &dyn Datum) -> std::result::Result<ArrayRef, ArrowError>;

/// Returns whether decimals have no more digits than their type.
fn has_its_digits(values: &ColumnarValue) -> Result<bool> {
    let values = match values {
        ColumnarValue::Array(values) => ArrayRef::clone(values),
        ColumnarValue::Scalar(value) => ScalarValue::to_array(value)?,
    };
    let checked = match values.data_type() {
        DataType::Decimal128(digits, _) => values
            .as_primitive::<Decimal128Type>()
            .validate_decimal_precision(*digits),
        DataType::Decimal256(digits, _) => values
            .as_primitive::<Decimal256Type>()
            .validate_decimal_precision(*digits),
        _ => Ok(()),
    };
    Ok(checked.is_ok())
}

fn in_our_words(error: DataFusionError, kind: &DataType) -> DataFusionError {
    let overflow = match &error {
        DataFusionError::ArrowError(own, _) => overflow(own),
        _ => None,
    };
    overflow.map_or(error, |what| told(too_large(what, kind)))
}

/// Returns the operation whose result does not fit.
fn overflow(error: &ArrowError) -> Option<String> {
    let ArrowError::ArithmeticOverflow(message) = error else {
        return None;
    };
    let what = message.strip_prefix(OVERFLOW).unwrap_or(message);
    Some(what.to_owned())
}

fn too_large(what: String, kind: &DataType) -> Diagnostic {
    // The numbers of a message about decimals lack the point.
    if let DataType::Decimal128(digits, _) | DataType::Decimal256(digits, _) = kind {
        let what = format!("a sum, difference or product of decimals exceeds {digits} digits");
        return Diagnostic::new(what).with_hint("write: CAST(x AS DOUBLE), which rounds");
    }
    let bits = 8 * kind.primitive_width().unwrap_or_default();
    match kind.is_unsigned_integer() {
        true => Diagnostic::new(format!("{what} is no unsigned number of {bits} bits"))
            .with_hint("write: CAST(x AS DECIMAL(38,0))"),
        false => Diagnostic::new(format!("{what} exceeds {bits} bits")).with_hint(
            "write: CAST(x AS DECIMAL(38,0)), or CAST(x AS DOUBLE) where rounding does not matter",
        ),
    }
}
