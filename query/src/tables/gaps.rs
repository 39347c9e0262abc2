//! The table `gaps`: where events were lost, how many and why.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col, lit};

use super::doc::TableDoc;
use super::sources::Sources;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "gaps",
    doc: "one row per place where events were lost, or copies of memory left out",
    columns: &[
        ("seq", "number in the recording's order"),
        ("ts_ns", "time, ns since the recording began"),
        ("tid", "thread that lost them; null when not known"),
        (
            "lost",
            "how many events, or copies of memory; null when not known",
        ),
        ("reason", "why"),
    ],
};

/// Returns the plan that computes the table.
pub fn plan(sources: &Sources) -> Result<LogicalPlan> {
    LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
        .filter(col("kind").eq(lit("gap")))?
        .project(vec![
            col("seq"),
            col("ts_ns"),
            col("tid"),
            col("value").alias("lost"),
            col("text").alias("reason"),
        ])?
        .build()
}
