//! The table `calls`: one row per call, joined with the definition of its function.

use std::sync::Arc;

use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, lit, when};

use super::doc::TableDoc;
use super::sources::Sources;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "calls",
    doc: "one row per call of a traced function, in order of its end",
    columns: &[
        ("start_seq", "seq of the enter event; the call's id"),
        (
            "end_seq",
            "seq of the leave event; null while unfinished, and where only entries are recorded",
        ),
        ("function", "name of the function, demangled"),
        ("file", "source file of the function"),
        ("line", "source line of the function"),
        (
            "module",
            "file name of the module that the function lies in",
        ),
        ("tid", "thread id"),
        ("depth", "number of enclosing traced calls"),
        ("parent", "start_seq of the enclosing traced call"),
        (
            "ts_ns",
            "time of the enter event, ns since the recording began",
        ),
        (
            "dur_ns",
            "ns from enter to leave; -1 while unfinished, null where only entries are recorded",
        ),
        (
            "self_ns",
            "dur_ns without the traced calls made; -1 or null as dur_ns",
        ),
        (
            "args",
            "arguments as text, by the function's parameters, with captured texts and what pointers led to; ? where not \
             captured",
        ),
        (
            "ret",
            "integer, address or enumerator that came back in rax, as the return type says, rax itself where nothing \
             describes the function; null for all others, see ret_text",
        ),
        ("ret_f", "floating point return value"),
        (
            "ret_text",
            "return value as text, structures with their members; null for none and where it is not known",
        ),
        (
            "outs",
            "what pointers and references among the arguments led to at return, where --pointees kept it",
        ),
        ("unwound", "left by an exception or longjmp"),
        (
            "open_at_end",
            "not returned when its thread or the process ended; end_seq and dur_ns are then that end's",
        ),
        ("tail", "entered by a tail call in place of another call"),
        ("a0", "rdi at entry, bit pattern"),
        ("a1", "rsi at entry, bit pattern"),
        ("a2", "rdx at entry, bit pattern"),
        ("a3", "rcx at entry, bit pattern"),
        ("a4", "r8 at entry, bit pattern"),
        ("a5", "r9 at entry, bit pattern"),
        (
            "x0",
            "low 64 bits of xmm0 at entry; f64(x0) and f32(x0) read it; null if not captured",
        ),
        ("x1", "low 64 bits of xmm1 at entry"),
        ("x2", "low 64 bits of xmm2 at entry"),
        ("x3", "low 64 bits of xmm3 at entry"),
        ("x4", "low 64 bits of xmm4 at entry"),
        ("x5", "low 64 bits of xmm5 at entry"),
        ("x6", "low 64 bits of xmm6 at entry"),
        ("x7", "low 64 bits of xmm7 at entry"),
        (
            "sp",
            "address of the stack word that holds the return address",
        ),
        ("ret_addr", "return address: where the caller continues"),
        ("rax", "rax at return, bit pattern; null without a return"),
        ("rdx", "rdx at return, bit pattern"),
        ("xr0", "low 64 bits of xmm0 at return; null if not captured"),
        ("xr1", "low 64 bits of xmm1 at return"),
        ("function_id", "number of the function in this recording"),
        (
            "seq",
            "start_seq, by the name that other tables have for it",
        ),
    ],
};

/// Returns the plan that computes the table.
pub fn plan(sources: &Sources) -> Result<LogicalPlan> {
    let computed = |name: &str| match name {
        "seq" => Ok(col("start_seq").alias("seq")),
        "parent" => Ok(col("parent_seq").alias("parent")),
        "dur_ns" if sources.report.only_entries => Ok(known(col("dur_ns"))?.alias("dur_ns")),
        "self_ns" if sources.report.only_entries => Ok(known(self_ns()?)?.alias("self_ns")),
        "self_ns" => Ok(self_ns()?.alias("self_ns")),
        other => Ok(sources.of_call(other).unwrap_or_else(|| col(other))),
    };
    let columns = DOC
        .columns
        .iter()
        .map(|(name, _)| computed(name))
        .collect::<Result<Vec<_>>>()?;
    LogicalPlanBuilder::scan("calls", Arc::clone(&sources.calls), None)?
        .project(columns)?
        .build()
}

/// Leaves out the times of calls whose end is not recorded.
fn known(time: Expr) -> Result<Expr> {
    let unknown = lit(ScalarValue::Int64(None));
    when(col("child_ns").lt(lit(0i64)), unknown).otherwise(time)
}

fn self_ns() -> Result<Expr> {
    when(col("dur_ns").lt(lit(0i64)), lit(-1i64)).otherwise(col("dur_ns") - col("child_ns"))
}
