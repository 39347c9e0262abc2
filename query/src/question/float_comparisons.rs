//! Comparisons of floating-point numbers with decimals are ones of floating-point numbers: the engine would make decimals of both, which
//! a large number does not fit.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};

use super::exact::turned;

/// Plans such comparisons.
#[derive(Debug)]
pub struct FloatComparisons;

impl ExprPlanner for FloatComparisons {
    fn plan_binary_op(
        &self,
        mut own: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let is = |of: &Expr, kind: fn(&DataType) -> bool| {
            of.get_type(schema).is_ok_and(|known| kind(&known))
        };
        let is_float = |of: &Expr| is(of, DataType::is_floating);
        let is_decimal = |of: &Expr| is(of, DataType::is_decimal);
        if turned(&own.op).is_some() {
            if is_float(&own.left) && is_decimal(&own.right) {
                own.right = cast(own.right, DataType::Float64);
            } else if is_decimal(&own.left) && is_float(&own.right) {
                own.left = cast(own.left, DataType::Float64);
            }
        }
        Ok(PlannerResult::Original(own))
    }
}
