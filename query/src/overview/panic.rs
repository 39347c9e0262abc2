//! A panic of Rust that ended the main thread: which call of the program's own source panicked.

use replay::CallHead;
use store::control::FunctionDef;

use super::source::{Source, told};
use crate::error::Result;
use crate::short_names::last_part;

/// Functions of the standard library that begin a panic or carry it on.
const RAISERS: [&str; 16] = [
    "__rust_start_panic",
    "assert_failed",
    "assert_failed_inner",
    "begin_panic",
    "begin_panic_handler",
    "expect_failed",
    "panic_bounds_check",
    "panic_display",
    "panic_explicit",
    "panic_fmt",
    "panic_handler",
    "panic_with_hook",
    "rust_begin_unwind",
    "rust_panic",
    "rust_panic_with_hook",
    "unwrap_failed",
];

/// A panic.
pub struct Panic {
    /// The event at which it began.
    pub seq: u64,
    /// The calls of the program's own source that were open then, the innermost first.
    pub open: Vec<CallHead>,
}

/// Returns whether a function is the standard library's code for panics.
pub fn is_raiser(function: &FunctionDef) -> bool {
    let is_of_library = function
        .file
        .as_deref()
        .is_some_and(debuginfo::is_library_source);
    is_of_library && RAISERS.contains(&last_part(&function.name).as_str())
}

/// Finds the last panic of the main thread, if no call of the program's own source caught it.
///
/// # Errors
/// The recording cannot be read.
pub fn of_main(source: &Source<'_>) -> Result<Option<Panic>> {
    let Some(timeline) = source.timeline() else {
        return Ok(None);
    };
    let threads = told(timeline.threads())?;
    let raisers = timeline.functions().filter(|function| is_raiser(function));
    let ids: Vec<String> = raisers.map(|function| function.id.to_string()).collect();
    let (Some(main), false) = (threads.first(), ids.is_empty()) else {
        return Ok(None);
    };
    let sql = format!(
        "select max(start_seq) from calls where function_id in ({}) and tid = {}",
        ids.join(", "),
        main.tid
    );
    let rows = source.ask(&sql)?;
    let Some(last) = rows.first().and_then(|row| row.count(0)) else {
        return Ok(None);
    };
    let around = source.around(main.tid, last)?;
    let is_own = |call: &CallHead| source.has_own_source(call.function);
    let raising = around.iter().take_while(|call| !is_own(call));
    let begun = raising
        .filter(|call| source.function(call.function).is_some_and(is_raiser))
        .last();
    let open: Vec<CallHead> = around.iter().copied().filter(is_own).collect();
    let is_uncaught = !open.is_empty() && open.iter().all(|call| call.unwound);
    Ok(begun.filter(|_| is_uncaught).map(|begun| Panic {
        seq: begun.start,
        open,
    }))
}
