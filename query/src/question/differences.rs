//! Differences of unsigned numbers, as those of `rank()` and `row_number()`, are signed: the engine's own type has no negative numbers.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, binary_expr, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans such differences.
#[derive(Debug)]
pub struct SignedDifferences;

impl ExprPlanner for SignedDifferences {
    fn plan_binary_op(
        &self,
        own: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_unsigned =
            |of: &Expr| matches!(of.get_type(schema), Ok(kind) if kind.is_unsigned_integer());
        let is_difference = matches!(own.op, BinaryOperator::Minus);
        if !is_difference || !is_unsigned(&own.left) || !is_unsigned(&own.right) {
            return Ok(PlannerResult::Original(own));
        }
        let signed = |of: Expr| cast(of, DataType::Int64);
        let difference = binary_expr(signed(own.left), Operator::Minus, signed(own.right));
        Ok(PlannerResult::Planned(difference))
    }
}
