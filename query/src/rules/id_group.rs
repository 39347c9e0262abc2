//! Turns GROUP BY on names, files, lines and modules into GROUP BY on a small integer, and looks up the names
//! afterwards.
//!
//! The integer is the function id if the grouped values distinguish all functions; otherwise functions with equal
//! values share a number. So every aggregate, percentiles included, sees exactly the groups of the query.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, UInt32Array};
use arrow::compute::take;
use arrow::row::{RowConverter, SortField};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection, SubqueryAlias};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::lookups::{IdColumn, source, values};
use crate::functions::Lookup;

/// Name of the column that carries ids up to the aggregation.
const ID_COLUMN: &str = "__function_id";

/// Name of the grouping column.
const KEY_COLUMN: &str = "__function_key";

/// The rule.
#[derive(Debug)]
pub struct GroupById;

impl OptimizerRule for GroupById {
    fn name(&self) -> &str {
        "group_by_function_id"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = plan else {
            return Ok(Transformed::no(plan));
        };
        match group_by_id(&aggregate)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => Ok(Transformed::no(LogicalPlan::Aggregate(aggregate))),
        }
    }
}

fn group_by_id(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let groups = &aggregate.group_expr;
    if groups.iter().any(|g| matches!(g, Expr::GroupingSet(_))) {
        return Ok(None);
    }
    let mut chosen = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        if expose(&aggregate.input, vec![group.clone()])?.is_some() {
            chosen.push(index);
        }
    }
    let exprs = |chosen: &[usize]| chosen.iter().map(|&index| groups[index].clone()).collect();
    let mut exposed = expose(&aggregate.input, exprs(&chosen))?;
    if exposed.is_none() && chosen.len() > 1 {
        chosen.truncate(1); // They come from different tables: one integer is better than none.
        exposed = expose(&aggregate.input, exprs(&chosen))?;
    }
    let Some(exposed) = exposed else {
        return Ok(None);
    };
    let Some(keys) = Keys::new(&exposed)? else {
        return Ok(None);
    };
    rebuild(aggregate, &chosen, exposed, keys).map(Some)
}

/// An aggregation's input that also has the ids on which some expressions depend.
struct Exposed {
    plan: LogicalPlan,
    /// The expressions in terms of the id column.
    exprs: Vec<Expr>,
    ids: IdColumn,
}

/// Adds to the output of `plan` the id column on which all of `exprs` depend, or returns `None` if there is none.
fn expose(plan: &LogicalPlan, exprs: Vec<Expr>) -> Result<Option<Exposed>> {
    if exprs.is_empty() {
        return Ok(None);
    }
    if let Some(ids) = common_source(&exprs) {
        let plan = plan.clone();
        return Ok(Some(Exposed { plan, exprs, ids }));
    }
    match plan {
        LogicalPlan::Projection(projection) => expose_projection(projection, exprs),
        LogicalPlan::SubqueryAlias(alias) => expose_alias(alias, exprs),
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => {
            expose_child(plan, 0, exprs)
        }
        LogicalPlan::Join(join) => {
            let all_in = |side: &LogicalPlan| {
                let schema = side.schema();
                exprs
                    .iter()
                    .flat_map(Expr::column_refs)
                    .all(|column| schema.has_column(column))
            };
            match (all_in(&join.left), all_in(&join.right)) {
                (true, false) => expose_child(plan, 0, exprs),
                (false, true) => expose_child(plan, 1, exprs),
                _ => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Passes a node whose output has the columns of its inputs unchanged.
fn expose_child(plan: &LogicalPlan, child: usize, exprs: Vec<Expr>) -> Result<Option<Exposed>> {
    let mut inputs: Vec<LogicalPlan> = plan.inputs().into_iter().cloned().collect();
    let Some(exposed) = expose(&inputs[child], exprs)? else {
        return Ok(None);
    };
    inputs[child] = exposed.plan;
    let plan = plan.with_new_exprs(plan.expressions(), inputs)?;
    if !plan.schema().has_column(&exposed.ids.column) {
        return Ok(None); // A semi-join shows one of its sides only.
    }
    Ok(Some(Exposed { plan, ..exposed }))
}

fn expose_projection(projection: &Projection, exprs: Vec<Expr>) -> Result<Option<Exposed>> {
    let below = exprs
        .into_iter()
        .map(|expr| replace_columns(expr, &|column| projected(projection, column)))
        .collect::<Result<Vec<_>>>()?;
    let Some(exposed) = expose(&projection.input, below)? else {
        return Ok(None);
    };
    let shown = Column::from_name(ID_COLUMN);
    if projection.schema.has_column(&shown) {
        return Ok(None);
    }
    let mut columns = projection.expr.clone();
    columns.push(Expr::Column(exposed.ids.column).alias(ID_COLUMN));
    let exprs = exposed
        .exprs
        .into_iter()
        .map(|expr| replace_columns(expr, &|_| Some(Expr::Column(shown.clone()))))
        .collect::<Result<_>>()?;
    let plan = Projection::try_new(columns, Arc::new(exposed.plan))?;
    Ok(Some(Exposed {
        plan: LogicalPlan::Projection(plan),
        exprs,
        ids: IdColumn {
            column: shown,
            id_limit: exposed.ids.id_limit,
        },
    }))
}

fn expose_alias(alias: &SubqueryAlias, exprs: Vec<Expr>) -> Result<Option<Exposed>> {
    let below = exprs
        .into_iter()
        .map(|expr| replace_columns(expr, &|column| aliased(alias, column)))
        .collect::<Result<Vec<_>>>()?;
    let Some(exposed) = expose(&alias.input, below)? else {
        return Ok(None);
    };
    let shown = Column::new(Some(alias.alias.clone()), exposed.ids.column.name.clone());
    let exprs = exposed
        .exprs
        .into_iter()
        .map(|expr| replace_columns(expr, &|_| Some(Expr::Column(shown.clone()))))
        .collect::<Result<_>>()?;
    let plan = SubqueryAlias::try_new(Arc::new(exposed.plan), alias.alias.clone())?;
    Ok(Some(Exposed {
        plan: LogicalPlan::SubqueryAlias(plan),
        exprs,
        ids: IdColumn {
            column: shown,
            id_limit: exposed.ids.id_limit,
        },
    }))
}

/// Returns the source of all of `exprs` if they share one.
fn common_source(exprs: &[Expr]) -> Option<IdColumn> {
    let first = source(exprs.first()?)?;
    exprs[1..]
        .iter()
        .all(|expr| source(expr).as_ref() == Some(&first))
        .then_some(first)
}

/// Returns the column that an alias gives as `column`.
pub fn aliased(alias: &SubqueryAlias, column: &Column) -> Option<Expr> {
    let index = alias.schema.maybe_index_of_column(column)?;
    let field = alias.input.schema().qualified_field(index);
    Some(Expr::Column(Column::from(field)))
}

/// Returns the expression of a projection's column `column`.
pub fn projected(projection: &Projection, column: &Column) -> Option<Expr> {
    let index = projection.schema.maybe_index_of_column(column)?;
    Some(projection.expr[index].clone().unalias())
}

/// Replaces each column of `expr` by its `replacement`; columns without one stay.
pub fn replace_columns(expr: Expr, replacement: &dyn Fn(&Column) -> Option<Expr>) -> Result<Expr> {
    let replaced = expr.transform_up(|node| {
        Ok(match &node {
            Expr::Column(column) => match replacement(column) {
                Some(new) => Transformed::yes(new),
                None => Transformed::no(node),
            },
            _ => Transformed::no(node),
        })
    })?;
    Ok(replaced.data)
}

/// The integer keys of equal values.
struct Keys {
    /// One key per id, or `None` when the ids are the keys.
    by_id: Option<ArrayRef>,
    /// For each expression, its value for each key.
    values: Vec<ArrayRef>,
}

impl Keys {
    /// Computes keys, or returns `None` if an id without a definition has a value.
    fn new(exposed: &Exposed) -> Result<Option<Self>> {
        let ids = &exposed.ids;
        let mut columns = Vec::new();
        for expr in &exposed.exprs {
            let values = values(expr, ids)?;
            if values.is_valid(ids.id_limit) {
                return Ok(None);
            }
            columns.push(values.slice(0, ids.id_limit));
        }
        let fields = columns
            .iter()
            .map(|column| SortField::new(column.data_type().clone()))
            .collect();
        let rows = RowConverter::new(fields)?.convert_columns(&columns)?;
        let mut seen = HashMap::new();
        let mut first_ids: Vec<u32> = Vec::new();
        let keys: Vec<i32> = (0u32..)
            .zip(rows.iter())
            .map(|(id, row)| {
                *seen.entry(row).or_insert_with(|| {
                    first_ids.push(id);
                    first_ids.len() as i32 - 1
                })
            })
            .collect();
        if first_ids.len() == ids.id_limit {
            return Ok(Some(Self {
                by_id: None,
                values: columns,
            }));
        }
        let first_ids = UInt32Array::from(first_ids);
        let values = columns
            .iter()
            .map(|column| take(column, &first_ids, None))
            .collect::<std::result::Result<_, _>>()?;
        Ok(Some(Self {
            by_id: Some(Arc::new(Int32Array::from(keys))),
            values,
        }))
    }
}

/// Builds the aggregation by key, and above it the projection that has the original's columns.
fn rebuild(
    aggregate: &Aggregate,
    chosen: &[usize],
    exposed: Exposed,
    keys: Keys,
) -> Result<LogicalPlan> {
    let ids = Expr::Column(exposed.ids.column);
    let key = match keys.by_id {
        Some(by_id) => Lookup::group_key(by_id).call(vec![ids]),
        None => ids,
    };
    let mut groups = vec![key.alias(KEY_COLUMN)];
    let kept = |index: &usize| !chosen.contains(index);
    groups.extend(
        (0..aggregate.group_expr.len())
            .filter(kept)
            .map(|index| aggregate.group_expr[index].clone()),
    );
    let grouped = Aggregate::try_new(Arc::new(exposed.plan), groups, aggregate.aggr_expr.clone())?;
    let mut columns = Vec::new();
    for (index, (relation, field)) in aggregate.schema.iter().enumerate() {
        let column = match chosen.iter().position(|&c| c == index) {
            Some(place) => Lookup::function(field.name(), Arc::clone(&keys.values[place]))
                .call(vec![Expr::Column(Column::from_name(KEY_COLUMN))])
                .alias_qualified(relation.cloned(), field.name()),
            None => Expr::Column(Column::new(relation.cloned(), field.name())),
        };
        columns.push(column);
    }
    let grouped = Arc::new(LogicalPlan::Aggregate(grouped));
    Ok(LogicalPlan::Projection(Projection::try_new(
        columns, grouped,
    )?))
}
