//! Turns filters on names, files, lines and modules into filters on function ids, which Parquet can evaluate.
//!
//! Any condition is computed once per function: `=`, `IN`, `LIKE`, a regular expression. If only one function is
//! left, the other conditions receive its id.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator, lit};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::lookups::{IdColumn, source, values};
use crate::functions::IdSet;

/// Most ids that are listed one by one, so that footers of row groups and pages can be used.
const LISTED_IDS: usize = 16;

/// The rule.
#[derive(Debug)]
pub struct FilterById;

impl OptimizerRule for FilterById {
    fn name(&self) -> &str {
        "filter_by_function_id"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else {
            return Ok(Transformed::no(plan));
        };
        let predicate = rewrite(filter.predicate)?;
        let changed = predicate.transformed;
        let filter = Filter::try_new(predicate.data, filter.input)?;
        Ok(Transformed::new_transformed(
            LogicalPlan::Filter(filter),
            changed,
        ))
    }
}

/// Rewrites a condition whose null counts as false: only below AND and OR, where that holds.
/// Conditions on one id column become one, which comes first: it is the cheapest to check.
fn rewrite(condition: Expr) -> Result<Transformed<Expr>> {
    let mut by_source: Vec<(IdColumn, Vec<Expr>)> = Vec::new();
    let mut others = Vec::new();
    let mut changed = false;
    for part in split_conjunction_owned(condition) {
        match source(&part) {
            Some(source) => match by_source.iter_mut().find(|(known, _)| *known == source) {
                Some((_, parts)) => parts.push(part),
                None => by_source.push((source, vec![part])),
            },
            None => {
                let part = rewrite_sides(part)?;
                changed |= part.transformed;
                others.push(part.data);
            }
        }
    }
    let mut parts = Vec::new();
    for (source, conditions) in by_source {
        let all = conjunction(conditions).expect("each source has a condition");
        parts.push(match selected(&all, &source)? {
            Some(selected) => {
                changed = true;
                membership(&source, selected)
            }
            None => all,
        });
    }
    parts.append(&mut others);
    changed |= put_known_ids(&mut parts)?;
    let all = conjunction(parts).expect("a condition has a part");
    Ok(Transformed::new_transformed(all, changed))
}

/// If one condition fixes the id of a column, puts it into the others: they then need one column less, and no branch
/// for each row. Returns whether there was such a place.
fn put_known_ids(parts: &mut [Expr]) -> Result<bool> {
    let known: Vec<_> = (0..parts.len())
        .filter_map(|index| Some((index, known_id(&parts[index])?)))
        .collect();
    let mut changed = false;
    for (from, (column, id)) in &known {
        for (index, part) in parts.iter_mut().enumerate() {
            if index == *from || part.is_volatile() || known_id(part).is_some() {
                continue;
            }
            let with_id = std::mem::take(part).transform_up(|node| match &node {
                Expr::Column(found) if found == column => Ok(Transformed::yes(id.clone())),
                _ => Ok(Transformed::no(node)),
            })?;
            changed |= with_id.transformed;
            *part = with_id.data;
        }
    }
    Ok(changed)
}

/// Returns the column and the literal of an equality between an integer column as wide as ids and a literal.
fn known_id(condition: &Expr) -> Option<(Column, Expr)> {
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Eq,
        right,
    }) = condition
    else {
        return None;
    };
    match (&**left, &**right) {
        (Expr::Column(column), id @ Expr::Literal(ScalarValue::Int32(Some(_)), _)) => {
            Some((column.clone(), id.clone()))
        }
        _ => None,
    }
}

/// Rewrites both sides of an OR.
fn rewrite_sides(condition: Expr) -> Result<Transformed<Expr>> {
    match condition {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Or,
            right,
        }) => {
            let left = rewrite(*left)?;
            let right = rewrite(*right)?;
            let changed = left.transformed || right.transformed;
            Ok(Transformed::new_transformed(
                left.data.or(right.data),
                changed,
            ))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Returns the ids for which the condition holds, or `None` when it also holds for ids without a definition.
fn selected(condition: &Expr, source: &IdColumn) -> Result<Option<Vec<bool>>> {
    let values = values(condition, source)?;
    let Some(values) = values.as_boolean_opt() else {
        return Ok(None);
    };
    let holds = |values: &BooleanArray, id| values.is_valid(id) && values.value(id);
    if holds(values, source.id_limit) {
        return Ok(None);
    }
    Ok(Some(
        (0..source.id_limit).map(|id| holds(values, id)).collect(),
    ))
}

fn membership(source: &IdColumn, selected: Vec<bool>) -> Expr {
    let column = || Expr::Column(source.column.clone());
    let ids: Vec<i32> = (0..)
        .zip(&selected)
        .filter(|(_, s)| **s)
        .map(|(id, _)| id)
        .collect();
    let (Some(&first), Some(&last)) = (ids.first(), ids.last()) else {
        return lit(false);
    };
    if first == last {
        return column().eq(lit(first));
    }
    if ids.len() <= LISTED_IDS {
        return column().in_list(ids.into_iter().map(lit).collect(), false);
    }
    IdSet::function(Arc::from(selected)).call(vec![column()])
}
