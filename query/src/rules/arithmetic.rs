//! Replaces additions, subtractions and multiplications of integers and decimals by those that fail where the result does not fit.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::functions::arithmetic::{checked, is_checked};

/// The rule. It must come before those that compute constants.
#[derive(Debug)]
pub struct CheckArithmetic;

impl OptimizerRule for CheckArithmetic {
    fn name(&self) -> &str {
        "check_arithmetic"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        // The filters of a scan come from nodes above it, where they were replaced.
        if matches!(plan, LogicalPlan::TableScan(_)) || !has_arithmetic(&plan)? {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        let replaced = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let replaced = expr.transform_up(|node| Ok(replace(node, &schema)))?;
            Ok(replaced.update_data(|expr| name.restore(expr)))
        })?;
        match replaced.transformed {
            true => replaced.map_data(LogicalPlan::recompute_schema),
            false => Ok(replaced),
        }
    }
}

fn has_arithmetic(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found |=
            expr.exists(|node| Ok(matches!(node, Expr::BinaryExpr(own) if is_checked(own.op))))?;
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

fn replace(node: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match node {
        Expr::BinaryExpr(own) if is_checked(own.op) && can_exceed(&own, schema) => {
            Transformed::yes(checked(own))
        }
        node => Transformed::no(node),
    }
}

/// Returns whether both sides are integers of one type, or decimals of as many bits.
fn can_exceed(own: &BinaryExpr, schema: &DFSchema) -> bool {
    use DataType::{Decimal128, Decimal256};
    match (own.left.get_type(schema), own.right.get_type(schema)) {
        (Ok(Decimal128(..)), Ok(Decimal128(..))) | (Ok(Decimal256(..)), Ok(Decimal256(..))) => true,
        (Ok(left), Ok(right)) => left == right && left.is_integer(),
        _ => false,
    }
}
