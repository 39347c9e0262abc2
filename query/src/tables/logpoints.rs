//! The table `logpoints`: the messages of logpoints.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col, lit};

use super::doc::TableDoc;
use super::sources::Sources;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "logpoints",
    doc: "one row per message of a logpoint",
    columns: &[
        ("seq", "number in the recording's order"),
        ("ts_ns", "time, ns since the recording began"),
        ("tid", "thread that passed it"),
        ("probe", "id of the live probe"),
        ("message", "the message; null when its format is not known"),
        ("captured", "expressions and their values, as JSON"),
    ],
};

/// Returns the plan that computes the table.
pub fn plan(sources: &Sources) -> Result<LogicalPlan> {
    LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
        .filter(col("kind").eq(lit("logpoint")))?
        .project(vec![
            col("seq"),
            col("ts_ns"),
            col("tid"),
            col("probe"),
            col("text").alias("message"),
            col("detail").alias("captured"),
        ])?
        .build()
}
