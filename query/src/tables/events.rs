//! The table `events`: all events in one order; calls contribute their enter and leave events.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, col, lit, when};

use super::doc::TableDoc;
use super::sources::Sources;
use crate::functions::syscalls::text_function;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "events",
    doc: "one row per observed fact, numbered by seq",
    columns: &[
        ("seq", "number in the recording's one order, dense from 0"),
        ("ts_ns", "time, ns since the recording began"),
        ("tid", "thread id, where a thread did it"),
        (
            "kind",
            "enter, leave, stdout, stderr, thread_start, gap and so on",
        ),
        ("function", "enter, leave: name of the function"),
        ("file", "enter, leave: source file of the function"),
        ("line", "enter, leave: source line of the function"),
        ("module", "enter, leave: file name of the module"),
        ("call", "enter, leave: start_seq of the call"),
        (
            "parent",
            "enter, leave: start_seq of the enclosing traced call",
        ),
        ("depth", "enter, leave: number of enclosing traced calls"),
        ("args", "enter: arguments as text; leave: as outs of calls"),
        ("ret", "leave: return value"),
        ("ret_f", "leave: floating point return value"),
        ("ret_text", "leave: return value as text"),
        ("unwound", "leave: by an exception or longjmp"),
        (
            "open_at_end",
            "leave: the call had not returned when its thread or the process ended",
        ),
        (
            "text",
            "output, names, paths, messages, system calls, and what live control did, as text; other bytes than UTF-8 as U+FFFD",
        ),
        (
            "bytes",
            "stdout, stderr, write, logged_write: the bytes written; logpoint: the words of its record; syscall, syscall_end: arguments and memory",
        ),
        (
            "addr",
            "module_load: where it is mapped; pause: pc; probe: its place, if it has just one; write, logged_write, exception, syscall: its address",
        ),
        (
            "size",
            "module_load: its size; stdout, stderr, write, logged_write: number of bytes; snapshot: bytes that had changed; syscall: start_seq of the call around it; syscall_end: event of its beginning",
        ),
        (
            "value",
            "process_start, fork: pid; process_exit: code; gap: events lost; module_load: module number; arming, ring_wait: how long the thread waited, ns; exception: signal; snapshot: its number; logged_write: pc; syscall: its number; syscall_end: result",
        ),
        (
            "aux",
            "process_exit: signal; module_load: build id; pause: reason; probe: state; exception: type; snapshot: why; logged_write: function; logpoint: the first value that is unknown, and why; condition_error: condition",
        ),
        ("function_id", "enter, leave: number of the function"),
        (
            "probe",
            "pause, logpoint, logged_write, condition_error, probe: id of the live probe",
        ),
    ],
};

/// Returns the plan that computes the table.
pub fn plan(sources: &Sources) -> Result<LogicalPlan> {
    let calls = || LogicalPlanBuilder::scan("calls", Arc::clone(&sources.calls), None);
    let enter = calls()?.project(branch(|name| enter_column(sources, name)))?;
    let leave = calls()?
        .filter(col("end_seq").is_not_null())?
        .project(branch(|name| leave_column(sources, name)))?;
    let other = LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
        .project(branch(|name| other_column(sources, name)))?;
    enter.union(leave.build()?)?.union(other.build()?)?.build()
}

/// Returns all columns of a branch, null where `column` has none.
fn branch(column: impl Fn(&str) -> Option<Expr>) -> Vec<Expr> {
    DOC.columns
        .iter()
        .map(|(name, _)| column(name).unwrap_or_else(|| null(name)).alias(*name))
        .collect()
}

fn null(column: &str) -> Expr {
    let kind = match column {
        "tid" | "depth" | "function_id" | "probe" => DataType::Int32,
        "kind" | "function" | "file" | "module" | "args" | "ret_text" | "text" | "aux" => {
            DataType::Utf8View
        }
        "bytes" => DataType::BinaryView,
        "ret_f" => DataType::Float64,
        "unwound" | "open_at_end" => DataType::Boolean,
        _ => DataType::Int64,
    };
    let null = ScalarValue::try_from(&kind).expect("each of these types has a null");
    lit(null)
}

fn text(value: &str) -> Expr {
    lit(ScalarValue::Utf8View(Some(value.into())))
}

fn enter_column(sources: &Sources, name: &str) -> Option<Expr> {
    match name {
        "seq" | "call" => Some(col("start_seq")),
        "parent" => Some(col("parent_seq")),
        "kind" => Some(text("enter")),
        "ts_ns" | "tid" | "depth" | "function_id" => Some(col(name)),
        "function" | "file" | "line" | "module" | "args" => sources.of_call(name),
        _ => None,
    }
}

fn leave_column(sources: &Sources, name: &str) -> Option<Expr> {
    match name {
        "seq" => Some(col("end_seq")),
        "call" => Some(col("start_seq")),
        "parent" => Some(col("parent_seq")),
        "kind" => Some(text("leave")),
        "ts_ns" => Some(col("ts_ns") + col("dur_ns")),
        "tid" | "depth" | "function_id" | "unwound" | "open_at_end" => Some(col(name)),
        "args" => sources.of_call("outs"),
        "function" | "file" | "line" | "module" | "ret" | "ret_f" | "ret_text" => {
            sources.of_call(name)
        }
        _ => None,
    }
}

fn other_column(sources: &Sources, name: &str) -> Option<Expr> {
    match name {
        "text" => {
            let output = sources.utf8_text.call(vec![col("bytes")]);
            let begun = text_function().call(vec![col("value"), col("bytes")]);
            let is_end = col("kind").eq(lit("syscall_end"));
            let text = when(col("kind").eq(lit("syscall")), begun)
                .when(is_end, null("text"))
                .otherwise(coalesce(vec![col("text"), output]));
            Some(text.expect("all of these are texts"))
        }
        "kind" => Some(cast(col("kind"), DataType::Utf8View)),
        "seq" | "ts_ns" | "tid" | "bytes" | "addr" | "size" | "value" | "aux" | "probe" => {
            Some(col(name))
        }
        _ => None,
    }
}
