//! The table `writes`: changes that users made in the running program.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col, lit};

use super::doc::TableDoc;
use super::sources::Sources;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "writes",
    doc: "one row per change that somebody made to the program",
    columns: &[
        ("seq", "number in the recording's order"),
        ("ts_ns", "time, ns since the recording began"),
        ("tid", "thread that it was made in; null when in none"),
        ("target", "what was written to, as the command names it"),
        ("addr", "its address; null when it lies in a register"),
        ("register", "its register; null when it lies in memory"),
        (
            "old",
            "its bytes before, in hexadecimal; null when not known",
        ),
        ("new", "its bytes since then, in hexadecimal"),
        ("by", "who made it"),
    ],
};

/// Returns the plan that computes the table.
pub fn plan(sources: &Sources) -> Result<LogicalPlan> {
    LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
        .filter(col("kind").eq(lit("write")))?
        .project(vec![
            col("seq"),
            col("ts_ns"),
            col("tid"),
            col("text").alias("target"),
            col("addr"),
            col("aux").alias("register"),
            sources.hex.call(vec![col("old")]).alias("old"),
            sources.hex.call(vec![col("bytes")]).alias("new"),
            col("detail").alias("by"),
        ])?
        .build()
}
