//! The report of a recording that has only entries of functions: how often each was called. Times and callers are not known.

use std::io::{self, Write};

use query::Report;
use query::report::FunctionTime;
use serde_json::json;
use server::quantity::{count, grouped};

use super::Args;
use super::text::{columns, layout, place};
use crate::error::Error;
use crate::exit;
use crate::json::answer;
use crate::output::{self, to_stdout};
use crate::render::{Table, Terminal};

const WHY: &str = "times and callers are not known: only entries of functions are recorded";

/// Writes the report.
///
/// # Errors
/// What was asked for needs times or callers, or cannot be written.
pub fn run(found: &Report, args: &Args, terminal: &Terminal) -> Result<u8, Error> {
    let needs_times = args.tree
        || args.folded
        || args.flamegraph.is_some()
        || args.speedscope.is_some()
        || args.function.is_some();
    if needs_times {
        return Err(refused());
    }
    let mut out = output::stdout();
    let written = match args.json {
        true => writeln!(out, "{:#}", answer(json_of(found, args))),
        false => functions(&mut out, found, args, terminal),
    };
    written.and_then(|()| out.flush()).map_err(to_stdout)?;
    Ok(exit::DONE)
}

/// What needs times or callers is refused.
pub fn refused() -> Error {
    let hint = "calls by function: hindsight report RECORDING";
    Error::usage(WHY, Some(hint.to_owned()))
}

/// Writes the functions with the most calls, of all threads together or of each.
///
/// # Errors
/// Those of `out`.
pub fn functions(
    out: &mut dyn Write,
    found: &Report,
    args: &Args,
    terminal: &Terminal,
) -> io::Result<()> {
    if !args.threads {
        table(out, &found.functions, args, terminal)?;
    }
    for thread in found.threads.iter().filter(|_| args.threads) {
        let name = found.thread_name(thread.tid);
        writeln!(out, "{name}: {}", count(thread.calls, "call"))?;
        table(out, &found.of_thread(thread.tid), args, terminal)?;
        writeln!(out)?;
    }
    writeln!(out, "{WHY}")
}

fn by_calls(functions: &[FunctionTime]) -> Vec<&FunctionTime> {
    let mut sorted: Vec<&FunctionTime> = functions.iter().collect();
    sorted.sort_by_key(|f| (u64::MAX - f.calls, f.function_id));
    sorted
}

fn table(
    out: &mut dyn Write,
    functions: &[FunctionTime],
    args: &Args,
    terminal: &Terminal,
) -> io::Result<()> {
    let sorted = by_calls(functions);
    let mut table = Table::new(columns(&["calls", "function"]));
    for function in sorted.iter().take(args.most()) {
        table.push(vec![Some(grouped(function.calls)), Some(place(function))]);
    }
    table.flush(out, layout(terminal), terminal.stdout_colour)?;
    if sorted.len() > args.most() {
        let more = count((sorted.len() - args.most()) as u64, "function");
        writeln!(out, "{more} more; --limit {} shows them", sorted.len())?;
    }
    Ok(())
}

fn json_of(found: &Report, args: &Args) -> serde_json::Value {
    let one = |f: &FunctionTime| {
        json!({
            "function": f.function,
            "module": f.module,
            "file": f.file,
            "line": f.line,
            "function_id": f.function_id,
            "calls": f.calls,
        })
    };
    let limited = |functions: &[FunctionTime]| -> Vec<serde_json::Value> {
        by_calls(functions)
            .into_iter()
            .take(args.most())
            .map(one)
            .collect()
    };
    let threads = found.threads.iter().map(|thread| {
        let mut of = json!({ "tid": thread.tid, "name": thread.name, "calls": thread.calls });
        if args.threads {
            of["functions"] = json!(limited(&found.of_thread(thread.tid)));
        }
        of
    });
    json!({
        "only_entries": true,
        "function_count": found.functions.len(),
        "functions": limited(&found.functions),
        "threads": threads.collect::<Vec<_>>(),
    })
}
