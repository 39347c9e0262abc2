//! Shows the answer to one query, as a table or in another format.

use std::io::{self, Read, Seek, Write};
use std::time::Instant;

use query::output::Format as Writer;
use query::{Answer, Extent};
use store::recording::RecordingState;

use super::asker::Asker;
use super::cells;
use server::quantity::duration;
use server::quantity::{count, grouped};

use crate::error::Error;
use crate::format::Format;
use crate::output::{self, to_stdout};
use crate::render::{Colour, Layout, Paint, Table, Terminal, escaped};

/// The number of rows in a group that is written to a pipe. The first group determines the widths of the columns.
const GROUP: usize = 1_000;
/// Rows of a JSON document that are collected in memory, in bytes.
const ROWS_IN_MEMORY: usize = 16 << 20;

/// Whether a row is shown as a record, one column per line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// When the table does not fit the terminal.
    Auto,
    On,
    Off,
}

/// How answers are shown.
#[derive(Clone, Debug)]
pub struct View {
    pub format: Format,
    /// The maximum number of rows of a table; `None` shows all.
    pub rows: Option<usize>,
    pub records: Records,
    /// Say how long the answer took.
    pub timing: bool,
    pub terminal: Terminal,
}

/// Runs `sql` and shows the answer on stdout. Ends silently if the reader of stdout has gone.
///
/// # Errors
/// When the query is wrong or cannot be answered, or Ctrl-C is pressed.
pub fn show(asker: &mut Asker, sql: &str, view: &View) -> Result<(), Error> {
    let shown = show_answer(asker, sql, view);
    warn(asker, &view.terminal);
    if shown.is_ok() {
        for note in asker.not_recorded(sql) {
            let word = view.terminal.stderr_colour.paint(Paint::Warning, "note:");
            eprintln!("hindsight: {word} {}", escaped(&note));
        }
    }
    shown
}

/// Prints the answer as a response whose result is the rows. A query may fail after its first rows, so all of them are
/// collected first, in a file if they are many.
///
/// # Errors
/// When the query is wrong or cannot be answered, or stdout cannot be written to.
pub fn show_document(asker: &mut Asker, sql: &str) -> Result<(), Error> {
    let answer = asker.ask(sql, None)?;
    let mut rows = tempfile::spooled_tempfile(ROWS_IN_MEMORY);
    asker.write(answer, Writer::Json, &mut rows, true)?;
    let mut out = output::stdout();
    // The writer ends the array with a newline, and a document is one line.
    let len = rows.stream_position().map_err(to_stdout)?.saturating_sub(1);
    rows.rewind()
        .and_then(|()| out.write_all(b"{\"id\":1,\"result\":"))
        .and_then(|()| io::copy(&mut rows.take(len), &mut out))
        .and_then(|_| out.write_all(b",\"success\":true}\n"))
        .and_then(|()| out.flush())
        .map_err(to_stdout)
}

/// Reports on stderr which recordings could not be read.
pub fn warn(asker: &Asker, terminal: &Terminal) {
    for warning in asker.warnings() {
        let word = terminal.stderr_colour.paint(Paint::Warning, "warning:");
        eprintln!("hindsight: {word} {}", escaped(&warning));
    }
}

fn show_answer(asker: &mut Asker, sql: &str, view: &View) -> Result<(), Error> {
    let started = Instant::now();
    match view.format {
        Format::Table => show_table(asker, sql, view, started),
        other => {
            let writer = other.writer().ok_or_else(parquet_needs_a_file)?;
            let answer = asker.ask(sql, None)?;
            let mut out = output::Watched::stdout();
            let written = asker.write(answer, writer, &mut out, !view.terminal.stdout);
            if out.is_gone() {
                return Err(Error::ReaderGone);
            }
            written?;
            out.flush().map_err(to_stdout)?;
            if view.timing {
                eprintln!("{}", took(started));
            }
            Ok(())
        }
    }
}

fn show_table(asker: &mut Asker, sql: &str, view: &View, started: Instant) -> Result<(), Error> {
    let mut answer = asker.ask(sql, view.rows)?;
    if is_plan(&answer) {
        return show_plan(asker, &mut answer);
    }
    if view.terminal.stdout {
        show_on_terminal(asker, &mut answer, view, started)
    } else {
        stream_to_pipe(asker, &mut answer, view)?;
        if view.timing {
            eprintln!("{}", took(started));
        }
        Ok(())
    }
}

fn show_on_terminal(
    asker: &mut Asker,
    answer: &mut Answer,
    view: &View,
    started: Instant,
) -> Result<(), Error> {
    let mut table = Table::new(cells::columns(answer.schema()));
    while let Some(batch) = asker.next(answer)? {
        cells::rows(&batch)?
            .into_iter()
            .for_each(|row| table.push(row));
    }
    let shown = table.waiting();
    let time = if view.timing {
        format!(", {}", duration_since(started))
    } else {
        String::new()
    };
    let (columns, lines) = Terminal::size();
    let colour = view.terminal.stdout_colour;
    let mut text = Vec::new();
    let layout = match view.records {
        Records::Auto => Layout::Fit(columns),
        Records::On => Layout::Records(None),
        Records::Off => Layout::Whole,
    };
    table
        .flush(&mut text, layout, colour)
        .and_then(|()| writeln!(text, "{}", footer(shown, answer.was_cut(), &time, colour)))
        .expect("memory takes whatever is written to it");
    output::show(&text, lines).map_err(to_stdout)
}

fn footer(shown: usize, cut: bool, time: &str, colour: Colour) -> String {
    let text = if cut {
        format!(
            "(the first {} rows{time}; \\rows 0 or --rows 0 shows all, -o FILE.csv writes them)",
            grouped(shown as u64)
        )
    } else {
        format!("({}{time})", count(shown as u64, "row"))
    };
    colour.paint(Paint::Dim, text).to_string()
}

fn stream_to_pipe(asker: &mut Asker, answer: &mut Answer, view: &View) -> Result<(), Error> {
    let layout = match view.records {
        Records::On => Layout::Records(None),
        Records::Auto | Records::Off => Layout::Whole,
    };
    // None in a pipe, unless --color wants it.
    let colour = view.terminal.stdout_colour;
    let mut table = Table::new(cells::columns(answer.schema()));
    let mut out = output::stdout();
    while let Some(batch) = asker.next(answer)? {
        for row in cells::rows(&batch)? {
            table.push(row);
            if table.waiting() == GROUP {
                table.flush(&mut out, layout, colour).map_err(to_stdout)?;
            }
        }
    }
    table
        .flush(&mut out, layout, colour)
        .and_then(|()| out.flush())
        .map_err(to_stdout)?;
    if answer.was_cut() {
        eprintln!("hindsight: there are more rows; --rows 0 shows all");
    }
    Ok(())
}

/// Returns whether this is the answer to EXPLAIN: two columns, the second with a text of several lines.
fn is_plan(answer: &Answer) -> bool {
    let fields = answer.schema().fields();
    fields.len() == 2 && fields[0].name() == "plan_type" && fields[1].name() == "plan"
}

fn show_plan(asker: &mut Asker, answer: &mut Answer) -> Result<(), Error> {
    let mut text = Vec::new();
    while let Some(batch) = asker.next(answer)? {
        for row in cells::rows(&batch)? {
            for (i, cell) in row.iter().enumerate() {
                let indent = if i == 0 { "" } else { "  " };
                for line in cell.as_deref().unwrap_or_default().lines() {
                    writeln!(text, "{indent}{}", crate::render::escaped(line))
                        .expect("memory takes whatever is written to it");
                }
            }
        }
    }
    output::show(&text, usize::MAX).map_err(to_stdout)
}

fn took(started: Instant) -> String {
    format!("({})", duration_since(started))
}

fn duration_since(started: Instant) -> String {
    duration(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Returns the refusal to show Parquet.
pub fn parquet_needs_a_file() -> Error {
    Error::usage(
        "Parquet cannot be shown on a terminal",
        Some("write it to a file: hindsight sql RECORDING QUERY -o FILE.parquet".to_owned()),
    )
}

/// Returns a note on the extent of a recording that was not closed.
pub fn note_extent(extent: &Extent) -> Option<String> {
    let seen = format!(
        "seen: {} in {}",
        count(extent.events, "event"),
        duration(extent.duration_ns)
    );
    match extent.state {
        RecordingState::Closed => None,
        RecordingState::Live => Some(format!("this recording is being written; {seen}")),
        RecordingState::Interrupted => Some(format!(
            "this recording is incomplete: its end is missing; {seen}"
        )),
    }
}
