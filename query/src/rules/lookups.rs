//! Finds expressions that depend only on lookups of one id column, and computes them once per id.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array};
use arrow::datatypes::{DataType, Field};
use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, expr::ScalarFunction};
use datafusion::physical_expr::create_physical_expr;

use crate::functions::Lookup;

/// The one column of ids that an expression depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdColumn {
    /// The column.
    pub column: Column,
    /// One more than the largest id with a definition.
    pub id_limit: usize,
}

/// Returns the id column that `expr` depends on through at least one lookup, if it depends on nothing else.
pub fn source(expr: &Expr) -> Option<IdColumn> {
    let mut columns = expr.column_refs().into_iter();
    let column = columns.next()?.clone();
    if columns.next().is_some() || expr.is_volatile() {
        return None;
    }
    let mut limit = None;
    let mut pure = true;
    expr.apply(|node| {
        match node {
            Expr::ScalarFunction(call) => match lookup(call) {
                Some(found) if limit.is_some_and(|l| l != found.id_limit()) => pure = false,
                Some(found) if found.is_group_key() => pure = false,
                Some(found) => limit = Some(found.id_limit()),
                None => {}
            },
            Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_)
            | Expr::ScalarSubquery(_)
            | Expr::AggregateFunction(_)
            | Expr::WindowFunction(_)
            | Expr::GroupingSet(_)
            | Expr::Placeholder(_)
            | Expr::OuterReferenceColumn(..)
            | Expr::Unnest(_)
            | Expr::HigherOrderFunction(_)
            | Expr::Lambda(_)
            | Expr::LambdaVariable(_)
            | Expr::ScalarVariable(..) => pure = false,
            _ => {}
        }
        Ok(match pure {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    })
    .ok()?;
    let id_limit = limit.filter(|_| pure)?;
    Some(IdColumn { column, id_limit })
}

fn lookup(call: &ScalarFunction) -> Option<&Lookup> {
    call.func.inner().downcast_ref::<Lookup>()
}

/// Computes `expr` for each id below the limit of its `source`; the last value is for ids without a definition.
pub fn values(expr: &Expr, source: &IdColumn) -> Result<ArrayRef> {
    let Column { relation, name, .. } = &source.column;
    let field = Arc::new(Field::new(name, DataType::Int32, true));
    let schema = DFSchema::new_with_metadata(vec![(relation.clone(), field)], Default::default())?;
    let physical = create_physical_expr(
        expr,
        &schema,
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    )?;
    let ids = Int32Array::from_iter_values(0..=source.id_limit as i32);
    let rows = ids.len();
    let batch = RecordBatch::try_new(Arc::clone(schema.inner()), vec![Arc::new(ids)])?;
    physical.evaluate(&batch)?.into_array(rows)
}
