//! Computes columns after ORDER BY with LIMIT, for the rows that are left: a text of arguments costs more than the sort.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Sort, SortExpr};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

use super::id_group::{aliased, projected, replace_columns};

/// The rule.
#[derive(Debug)]
pub struct ComputeLate;

impl OptimizerRule for ComputeLate {
    fn name(&self) -> &str {
        "compute_after_limit"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let later = match &plan {
            LogicalPlan::Sort(sort) if sort.fetch.is_some() => computed_later(sort)?,
            _ => None,
        };
        Ok(later.map_or_else(|| Transformed::no(plan), Transformed::yes))
    }
}

/// Puts a sort below the nodes that compute its columns; `None` if that saves nothing.
fn computed_later(sort: &Sort) -> Result<Option<LogicalPlan>> {
    let mut computing: Vec<&LogicalPlan> = Vec::new();
    let mut keys: Vec<Expr> = sort.expr.iter().map(|key| key.expr.clone()).collect();
    let mut base = sort.input.as_ref();
    while let Some(input) = computed_from(base) {
        keys = keys
            .into_iter()
            .map(|key| below(base, key))
            .collect::<Result<_>>()?;
        computing.push(base);
        base = input;
    }
    let saves = computing.iter().any(|plan| calls_functions(plan));
    if !saves || !keys.iter().all(|key| can_sort(key, base)) {
        return Ok(None);
    }
    let mut plan = LogicalPlan::Sort(Sort {
        expr: with_keys(&sort.expr, keys),
        input: Arc::new(base.clone()),
        fetch: sort.fetch,
    });
    for node in computing.into_iter().rev() {
        plan = node.with_new_exprs(node.expressions(), vec![plan])?;
    }
    Ok(Some(plan))
}

/// Returns the input of a node that gives one row for each of its input, in their order.
fn computed_from(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::Projection(own) if own.expr.iter().all(depends_on_its_row) => {
            Some(own.input.as_ref())
        }
        LogicalPlan::SubqueryAlias(own) => Some(own.input.as_ref()),
        _ => None,
    }
}

fn depends_on_its_row(expr: &Expr) -> bool {
    let is_other = |node: &Expr| {
        matches!(
            node,
            Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::ScalarSubquery(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Unnest(_)
        )
    };
    !expr.is_volatile() && !expr.exists(|node| Ok(is_other(node))).unwrap_or(true)
}

/// Returns an expression over the columns of such a node as one over those of its input.
fn below(plan: &LogicalPlan, key: Expr) -> Result<Expr> {
    replace_columns(key, &|column| match plan {
        LogicalPlan::Projection(own) => projected(own, column),
        LogicalPlan::SubqueryAlias(own) => aliased(own, column),
        _ => None,
    })
}

fn calls_functions(plan: &LogicalPlan) -> bool {
    let is_call = |node: &Expr| matches!(node, Expr::ScalarFunction(_));
    let calls = |expr: &Expr| expr.exists(|node| Ok(is_call(node))).unwrap_or(false);
    plan.expressions().iter().any(calls)
}

/// Returns whether a plan's rows are sorted by this as cheaply as by a column. A text would be computed for each comparison with the rows
/// that are kept.
fn can_sort(key: &Expr, base: &LogicalPlan) -> bool {
    let is_text = |kind: &DataType| {
        matches!(
            kind,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        )
    };
    let schema = base.schema();
    let are_known = || {
        key.column_refs()
            .into_iter()
            .all(|column| schema.has_column(column))
    };
    let is_cheap = || key.get_type(schema).is_ok_and(|kind| !is_text(&kind));
    are_known() && (matches!(key, Expr::Column(_)) || is_cheap())
}

fn with_keys(by: &[SortExpr], keys: Vec<Expr>) -> Vec<SortExpr> {
    let keys = by.iter().zip(keys);
    keys.map(|(own, key)| SortExpr::new(key, own.asc, own.nulls_first))
        .collect()
}

/// The engine's rule that moves projections towards the tables. Where one has fewer columns than a sort below it, as if it names the
/// sort's key, that rule would have its columns computed for all rows again: what [`ComputeLate`] put above a sort stays there.
#[derive(Debug, Default)]
pub struct KeepLate(ProjectionPushdown);

impl PhysicalOptimizerRule for KeepLate {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // The engine's rule changes these two kinds of nodes only.
        let is_for_engine = match plan.downcast_ref::<ProjectionExec>() {
            Some(projection) => !is_late(projection),
            None => plan.is::<NestedLoopJoinExec>(),
        };
        if is_for_engine {
            return self.0.optimize(plan, config);
        }
        let plan = plan.map_children(|input| {
            let input = self.optimize(input, config)?;
            Ok(Transformed::yes(input))
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Returns whether a projection computes columns of the rows that a sort with LIMIT leaves.
fn is_late(projection: &ProjectionExec) -> bool {
    let input = projection.input();
    let merged = input.downcast_ref::<SortPreservingMergeExec>();
    let sorted = merged.map_or(input, SortPreservingMergeExec::input);
    let sort = sorted.downcast_ref::<SortExec>();
    let is_limited = sort.is_some_and(|sort| sort.fetch().is_some());
    is_limited && projection.expr().iter().any(|own| calls(&own.expr))
}

fn calls(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.is::<ScalarFunctionExpr>() || expr.children().into_iter().any(calls)
}
