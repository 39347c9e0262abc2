//! The table `pauses`: where threads were stopped, and their state there.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col};

use super::doc::TableDoc;
use super::sources::Sources;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "pauses",
    doc: "one row per stop of a thread",
    columns: &[
        ("seq", "number in the recording's order"),
        ("ts_ns", "time, ns since the recording began"),
        ("tid", "thread that was stopped"),
        (
            "reason",
            "breakpoint, step, watch, exception, user, entry, signal or all_threads",
        ),
        ("probe", "id of the live probe that stopped it"),
        ("hits", "how often that probe was hit, this time included"),
        ("function", "name of the function it stood in"),
        ("file", "source file"),
        ("line", "source line"),
        ("pc", "address of the next instruction"),
        ("captured", "expressions and their values, as JSON"),
        ("watch_addr", "address of the watched place that was used"),
        ("watch_old", "its bytes before, in hexadecimal"),
        ("watch_new", "its bytes then, in hexadecimal"),
        ("r15", "the register, bit pattern; null when not known"),
        ("r14", "as r15"),
        ("r13", "as r15"),
        ("r12", "as r15"),
        ("rbp", "as r15"),
        ("rbx", "as r15"),
        ("r11", "as r15"),
        ("r10", "as r15"),
        ("r9", "as r15"),
        ("r8", "as r15"),
        ("rax", "as r15"),
        ("rcx", "as r15"),
        ("rdx", "as r15"),
        ("rsi", "as r15"),
        ("rdi", "as r15"),
        ("orig_rax", "number of the system call it was in"),
        ("rip", "as r15"),
        ("cs", "as r15"),
        ("eflags", "as r15"),
        ("rsp", "as r15"),
        ("ss", "as r15"),
        ("fs_base", "as r15"),
        ("gs_base", "as r15"),
        ("ds", "as r15"),
        ("es", "as r15"),
        ("fs", "as r15"),
        ("gs", "as r15"),
        ("stack_addr", "where the saved bytes of the stack begin"),
        ("stack_len", "how many bytes of the stack were saved"),
    ],
};

/// Returns the plan that computes the table.
pub fn plan(sources: &Sources) -> Result<LogicalPlan> {
    let column = |name: &str| match name {
        "watch_old" | "watch_new" => sources.hex.call(vec![col(name)]).alias(name),
        _ => col(name),
    };
    let columns: Vec<_> = DOC.columns.iter().map(|(name, _)| column(name)).collect();
    LogicalPlanBuilder::scan("states", Arc::clone(&sources.states), None)?
        .project(columns)?
        .build()
}
