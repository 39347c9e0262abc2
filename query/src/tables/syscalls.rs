//! The table `syscalls`: the program's system calls, each with its end.

use std::sync::Arc;

use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col, lit, when};

use super::doc::TableDoc;
use super::sources::Sources;
use crate::functions::syscalls::{arguments_function, errno_function, name_function};

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "syscalls",
    doc: "one row per system call; recorded with --syscalls or --full",
    columns: &[
        ("seq", "number in the recording's order"),
        ("ts_ns", "when it began, ns since the recording began"),
        ("tid", "thread that made it"),
        ("name", "its name"),
        (
            "args",
            "arguments with texts, flags and what the kernel has written; memory that was not read by its address",
        ),
        (
            "result",
            "what it returned, -1 for an error; null when it did not return",
        ),
        ("errno", "name of the error"),
        (
            "dur_ns",
            "how long it took, ns; null when it did not return",
        ),
        ("call", "start_seq of the recorded call that it was made in"),
        ("number", "its number"),
        ("addr", "address of the instruction"),
        ("end_seq", "event of its return; null when it did not"),
    ],
};

/// Results from here on to -1 are errors.
const FIRST_ERROR: i64 = -4095;

/// Returns the plan that pairs both ends of each call, undecoded.
pub fn pairs(sources: &Sources) -> Result<LogicalPlanBuilder> {
    let of_kind = |kind: &str| {
        LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
            .filter(col("kind").eq(lit(kind)))
    };
    let ends = of_kind("syscall_end")?
        .filter(col("size").is_not_null())?
        .project(vec![
            col("size").alias("began"),
            col("seq").alias("end_seq"),
            col("ts_ns").alias("end_ts_ns"),
            col("value").alias("returned"),
            col("bytes").alias("written"),
        ])?
        .build()?;
    let begun = of_kind("syscall")?.project(vec![
        col("seq"),
        col("ts_ns"),
        col("tid"),
        col("value").alias("number"),
        col("bytes").alias("begun"),
        col("addr"),
        col("size").alias("call"),
    ])?;
    begun.join(ends, JoinType::Left, (vec!["seq"], vec!["began"]), None)
}

/// Returns the plan that computes the table.
pub fn plan(sources: &Sources) -> Result<LogicalPlan> {
    let is_error = col("returned").between(lit(FIRST_ERROR), lit(-1i64));
    let result = when(is_error.clone(), lit(-1i64)).otherwise(col("returned"))?;
    let errno = when(is_error, errno_function().call(vec![col("returned")])).end()?;
    let inputs = ["number", "begun", "written", "returned"].map(col).to_vec();
    pairs(sources)?
        .project(vec![
            col("seq"),
            col("ts_ns"),
            col("tid"),
            name_function().call(vec![col("number")]).alias("name"),
            arguments_function().call(inputs).alias("args"),
            result.alias("result"),
            errno.alias("errno"),
            (col("end_ts_ns") - col("ts_ns")).alias("dur_ns"),
            col("call"),
            col("number"),
            col("addr"),
            col("end_seq"),
        ])?
        .build()
}
