//! The tree of the single calls below one call, each with its event, its times and its arguments.

use std::io::{self, Write};

use query::overview::within;
use query::report::{Below, CallBelow};
use server::quantity::{count, duration, grouped};
use values::one_line::fitted;

use super::entries;
use super::text::{NAME_COLUMNS, columns, layout};
use crate::error::Error;
use crate::render::{Table, Terminal, escaped};

/// The most columns of arguments; --json has them whole.
const ARGUMENT_COLUMNS: usize = 60;

/// Returns what was found, if there is a call and it is known what it called.
///
/// # Errors
/// There is not, or that is not known.
pub fn checked(found: Option<Below>, seq: u64) -> Result<Below, Error> {
    match found {
        Some(found) if found.only_entries => Err(entries::refused()),
        Some(found) => Ok(found),
        None => Err(Error::usage(
            format!("no recorded call begins at event {seq}"),
            Some(
                "where calls begin: SELECT start_seq, function, args FROM calls; which calls are around an event: \
                 hindsight repl RECORDING --cmd 'goto SEQ' --cmd backtrace"
                    .to_owned(),
            ),
        )),
    }
}

/// Writes the tree.
///
/// # Errors
/// Those of `out`.
pub fn tree(
    out: &mut dyn Write,
    found: &Below,
    depth: usize,
    terminal: &Terminal,
) -> io::Result<()> {
    let mut table = Table::new(columns(&["event", "inclusive", "self", "call"]));
    let ns = |ns: Option<u64>| ns.map_or_else(|| "not ended".to_owned(), duration);
    for call in &found.calls {
        table.push(vec![
            Some(call.start_seq.to_string()),
            Some(ns(call.dur_ns)),
            Some(ns(call.self_ns)),
            Some(format!("{}{}", "  ".repeat(call.level), text(call))),
        ]);
    }
    table.flush(out, layout(terminal), terminal.stdout_colour)?;
    let shown = found.calls.len() as u64;
    if found.call_count > shown {
        writeln!(
            out,
            "{} of {} shown: the longest, at most {depth} deep; --limit and --depth show more",
            grouped(shown),
            count(found.call_count, "call"),
        )?;
    }
    writeln!(out, "times are as measured, with what recording cost")
}

/// `parse(text=0x55d0c3a4b2a0, len=5)`, shortened.
fn text(call: &CallBelow) -> String {
    let name = within(&call.function, NAME_COLUMNS);
    let args = escaped(call.args.as_deref().unwrap_or_default());
    format!("{name}({})", fitted(&args, ARGUMENT_COLUMNS))
}
