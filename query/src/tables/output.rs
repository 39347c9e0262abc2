//! The table `output`: what the program wrote to its standard output and standard error.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col, lit, when};

use super::doc::TableDoc;
use super::sources::Sources;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "output",
    doc: "one row per write to stdout or stderr, or 4,096 bytes of it",
    columns: &[
        ("seq", "number in the recording's order"),
        ("ts_ns", "time, ns since the recording began"),
        ("tid", "thread id of the writer"),
        ("stream", "stdout or stderr"),
        ("fd", "1 or 2"),
        ("text", "the bytes as text; what is not UTF-8 as U+FFFD"),
        ("bytes", "the bytes written"),
        ("size", "number of bytes"),
    ],
};

/// Returns the plan that computes the table.
pub fn plan(sources: &Sources) -> Result<LogicalPlan> {
    let fd = when(col("kind").eq(lit("stdout")), lit(1)).otherwise(lit(2))?;
    LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
        .filter(col("kind").in_list(vec![lit("stdout"), lit("stderr")], false))?
        .project(vec![
            col("seq"),
            col("ts_ns"),
            col("tid"),
            col("kind").alias("stream"),
            fd.alias("fd"),
            sources.utf8_text.call(vec![col("bytes")]).alias("text"),
            col("bytes"),
            col("size"),
        ])?
        .build()
}
