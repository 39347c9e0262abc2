//! The table `threads`: when each thread ran, and how many calls and events it made.

use std::sync::Arc;

use datafusion::common::{JoinType, Result};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::{count, max, min};
use datafusion::functions_aggregate::first_last::last_value_udaf;
use datafusion::logical_expr::{ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, cast, col, lit};

use super::doc::TableDoc;
use super::sources::Sources;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "threads",
    doc: "one row per thread id",
    columns: &[
        ("tid", "thread id"),
        (
            "name",
            "the last name that it is known to have had; null when it had none",
        ),
        (
            "start_ts_ns",
            "when it was first seen, ns since the recording began",
        ),
        (
            "end_ts_ns",
            "when it ended; null when it did not or that was not seen",
        ),
        ("outputs", "number of its rows in the table output"),
        ("lost", "number of its events that were lost"),
        (
            "calls",
            "number of its recorded calls; counted only when the query uses it",
        ),
    ],
};

/// Returns the plan of all columns but `calls`, and that of all columns.
pub fn plans(sources: &Sources) -> Result<(LogicalPlan, LogicalPlan)> {
    let seen = seen(sources)?;
    let counts = LogicalPlanBuilder::scan("calls", Arc::clone(&sources.calls), None)?
        .aggregate(
            vec![col("tid").alias("counted_tid")],
            vec![count(lit(1i64)).alias("counted")],
        )?
        .build()?;
    let mut columns: Vec<_> = DOC.columns[1..DOC.columns.len() - 1]
        .iter()
        .map(|(name, _)| col(*name))
        .collect();
    columns.insert(
        0,
        coalesce(vec![col("tid"), col("counted_tid")]).alias("tid"),
    );
    columns.push(coalesce(vec![col("counted"), lit(0i64)]).alias("calls"));
    let counted = LogicalPlanBuilder::from(seen.clone())
        .join(
            counts,
            JoinType::Full,
            (vec!["tid"], vec!["counted_tid"]),
            None,
        )?
        .project(columns)?
        .build()?;
    Ok((seen, counted))
}

/// The data of threads from events other than calls.
fn seen(sources: &Sources) -> Result<LogicalPlan> {
    let kind = |kind: &str| col("kind").eq(lit(kind));
    let of = |aggregate: datafusion::logical_expr::Expr, filter| aggregate.filter(filter).build();
    let output = kind("stdout").or(kind("stderr"));
    let names = kind("thread_start").or(kind("thread_name"));
    let name = last_value_udaf()
        .call(vec![col("text")])
        .order_by(vec![col("seq").sort(true, false)])
        .filter(names.and(col("text").not_eq(lit(""))))
        .build()?
        .alias("name");
    LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
        .filter(col("tid").is_not_null())?
        .aggregate(
            vec![col("tid")],
            vec![
                name,
                min(col("ts_ns")).alias("start_ts_ns"),
                of(max(col("ts_ns")), kind("thread_exit"))?.alias("end_ts_ns"),
                of(count(lit(1i64)), output)?.alias("outputs"),
                of(
                    datafusion::functions_aggregate::expr_fn::sum(col("value")),
                    kind("gap"),
                )?
                .alias("lost"),
            ],
        )?
        .project(vec![
            col("tid"),
            col("name"),
            col("start_ts_ns"),
            col("end_ts_ns"),
            col("outputs"),
            cast(
                coalesce(vec![col("lost"), lit(0i64)]),
                arrow::datatypes::DataType::Int64,
            )
            .alias("lost"),
        ])?
        .build()
}
