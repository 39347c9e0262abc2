//! The table `exceptions`: exceptions, panics and signals that live control saw, and the signal that ended the program.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col, lit};

use super::doc::TableDoc;
use super::sources::Sources;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "exceptions",
    doc: "one row per exception, panic or signal that was seen: live, or as it ended the program",
    columns: &[
        ("seq", "number in the recording's order"),
        ("ts_ns", "time, ns since the recording began"),
        ("tid", "thread that it came up in"),
        ("signal", "number of the signal; null when it is none"),
        ("type", "the thrown type, panic, or the signal's name"),
        (
            "phase",
            "first_chance: may still be handled; unhandled: the program ends",
        ),
        ("addr", "the address that it is about"),
        ("message", "what it says; null when not known"),
    ],
};

/// Returns the plan that computes the table.
pub fn plan(sources: &Sources) -> Result<LogicalPlan> {
    LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
        .filter(col("kind").eq(lit("exception")))?
        .project(vec![
            col("seq"),
            col("ts_ns"),
            col("tid"),
            col("value").alias("signal"),
            col("aux").alias("type"),
            col("detail").alias("phase"),
            col("addr"),
            col("text").alias("message"),
        ])?
        .build()
}
