//! The table `writes`: changes that users made in the running program, and what the program wrote to places whose writes are
//! logged.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::core::expr_fn::nullif;
use datafusion::functions::string::expr_fn::split_part;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, col, lit, when};

use super::doc::TableDoc;
use super::sources::Sources;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "writes",
    doc: "one row per change made from outside the program, and per logged write of its own",
    columns: &[
        ("seq", "number in the recording's order"),
        ("ts_ns", "time, ns since the recording began"),
        ("tid", "thread that it was made in; null when in none"),
        ("target", "what was written to, as the command names it"),
        ("addr", "its address; null when it lies in a register"),
        ("register", "its register; null when it lies in memory"),
        (
            "old",
            "its bytes before, in hexadecimal; null when not known; logged: those after the last logged write",
        ),
        ("new", "its bytes since then, in hexadecimal"),
        ("by", "who made it; program: the program itself"),
        ("probe", "logged: id of the live probe"),
        (
            "pc",
            "logged: address of the instruction that wrote; null when unknown",
        ),
        (
            "function",
            "logged: the function of the program's own code that wrote, or had called the one that did",
        ),
        ("file", "logged: its source file"),
        ("line", "logged: the line in it"),
        (
            "via",
            "logged: the function that wrote, where it is another one",
        ),
        (
            "shared",
            "logged: other threads wrote there too before the bytes were read, which may be theirs",
        ),
    ],
};

/// Returns the plan that computes the table.
pub fn plan(sources: &Sources) -> Result<LogicalPlan> {
    let is_logged = || col("kind").eq(lit("logged_write"));
    let of_logged = |value: Expr| when(is_logged(), value).end();
    // Texts separated by tabs; an empty one is absent.
    let part = |number: i64| {
        let text = split_part(col("detail"), lit("\t"), lit(number));
        of_logged(nullif(text, lit("")))
    };
    let by = when(is_logged(), lit("program")).otherwise(col("detail"))?;
    let register = when(is_logged(), lit(ScalarValue::Utf8(None))).otherwise(col("aux"))?;
    LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
        .filter(col("kind").eq(lit("write")).or(is_logged()))?
        .project(vec![
            col("seq"),
            col("ts_ns"),
            col("tid"),
            col("text").alias("target"),
            col("addr"),
            register.alias("register"),
            sources.hex.call(vec![col("old")]).alias("old"),
            sources.hex.call(vec![col("bytes")]).alias("new"),
            by.alias("by"),
            col("probe"),
            of_logged(col("value"))?.alias("pc"),
            of_logged(col("aux"))?.alias("function"),
            part(1)?.alias("file"),
            cast(part(2)?, DataType::Int64).alias("line"),
            part(3)?.alias("via"),
            part(4)?.is_not_null().alias("shared"),
        ])?
        .build()
}
