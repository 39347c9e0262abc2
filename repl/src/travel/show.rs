//! How replies that only recordings give are written: trees of calls, histories, lines of output, notes.

use std::fmt::Write;

use server::past::{
    Break, CallsReply, Change, HistoryReply, LastWriteReply, NotesReply, OutputLines, Past,
    WatchLine, WatchesReply,
};

use server::inspect::Shown;

use crate::commands::live::table;
use crate::render::{Align, Terminal, duration, escaped};

/// Writes a tree of calls.
pub fn calls(reply: &CallsReply) -> String {
    let mut text = String::new();
    if reply.calls.is_empty() {
        return format!(
            "Thread {} is in no recorded call at event {}.\n",
            reply.thread, reply.seq
        );
    }
    for call in &reply.calls {
        let mark = if call.around { '*' } else { ' ' };
        let indent = "  ".repeat(call.depth as usize);
        let end = match call.end_seq {
            Some(end) => format!("..{end}"),
            None => "..".to_owned(),
        };
        let time = match u64::try_from(call.dur_ns) {
            Ok(ns) => format!("  {}", duration(ns)),
            Err(_) => "  (not ended)".to_owned(),
        };
        let unwound = if call.unwound { "  (unwound)" } else { "" };
        _ = writeln!(
            text,
            "{mark} {indent}{}  {}{end}{time}{unwound}",
            escaped(&call.function),
            call.start_seq
        );
    }
    if reply.more {
        text += "  (more calls follow: --limit)\n";
    }
    text
}

/// Writes the changes of a value.
pub fn history(reply: &HistoryReply, terminal: &Terminal) -> String {
    if reply.changes.is_empty() {
        return format!(
            "The recording shows no value of {}: it is known at no stop, at no copy of memory, at no capture, and at no entry of this function.\n",
            escaped(&reply.expression)
        );
    }
    let rows = reply.changes.iter().map(|change| {
        vec![
            Some(change.seq.to_string()),
            Some(change.thread.to_string()),
            Some(change.value.clone()),
            Some(place(change)),
        ]
    });
    let headings = [
        ("Event", Align::Right),
        ("Thread", Align::Right),
        ("Value", Align::Left),
        ("Place", Align::Left),
    ];
    table(&headings, rows.collect(), terminal)
}

fn place(change: &Change) -> String {
    let mut text = change.function.clone().unwrap_or_default();
    if let (Some(file), Some(line)) = (&change.file, change.line) {
        _ = write!(text, " at {file}:{line}");
    }
    text
}

/// Writes between which events a value was written.
pub fn last_write(reply: &LastWriteReply) -> String {
    let name = escaped(&reply.expression);
    let since = match &reply.now {
        Some(Shown {
            stale_since: Some(event),
            ..
        }) => format!("It was last seen at event {event}, and may have changed since.\n"),
        Some(Shown {
            unknown: Some(_), ..
        }) => "What it is now is not known.\n".to_owned(),
        _ => String::new(),
    };
    let is_known = since.is_empty();
    let said = match (&reply.before, &reply.after) {
        (Some(before), Some(after)) => format!(
            "{name} became {} between event {} and event {}.\n",
            escaped(&after.value),
            told(before),
            told(after),
        ),
        (None, Some(after)) if is_known => format!(
            "{name} is {} since it was first seen, at event {}.\n",
            escaped(&after.value),
            told(after),
        ),
        (None, Some(after)) => format!(
            "{name} was {} when it was first seen, at event {}.\n",
            escaped(&after.value),
            told(after),
        ),
        (_, None) => format!("The recording shows no value of {name} up to here.\n"),
    };
    match &reply.after {
        Some(_) => said + &since,
        None => said,
    }
}

/// An event, and where the thread stood if that is known.
fn told(change: &Change) -> String {
    let place = place(change);
    match place.is_empty() {
        true => change.seq.to_string(),
        false => format!("{} ({})", change.seq, escaped(&place)),
    }
}

/// Writes notes.
pub fn notes(reply: &NotesReply, terminal: &Terminal) -> String {
    if reply.notes.is_empty() {
        return "The recording has no notes.\n".to_owned();
    }
    let row =
        |note: &server::past::NoteLine| vec![Some(note.seq.to_string()), Some(note.text.clone())];
    let headings = [("Event", Align::Right), ("Note", Align::Left)];
    table(&headings, reply.notes.iter().map(row).collect(), terminal)
}

/// Writes lines of output, each with its event.
pub fn output(reply: &OutputLines, terminal: &Terminal) -> String {
    if reply.lines.is_empty() && !reply.more {
        return "The program had written nothing up to here.\n".to_owned();
    }
    let row = |line: &server::past::OutputLine| {
        vec![
            Some(line.line.to_string()),
            Some(line.seq.to_string()),
            Some(line.stream.clone()),
            Some(line.text.clone()),
        ]
    };
    let headings = [
        ("Line", Align::Right),
        ("Event", Align::Right),
        ("Stream", Align::Left),
        ("Text", Align::Left),
    ];
    let rows = match reply.lines.is_empty() {
        true => String::new(),
        false => table(&headings, reply.lines.iter().map(row).collect(), terminal),
    };
    match reply.more {
        true => rows + "(earlier lines are not shown: --tail N)\n",
        false => rows,
    }
}

/// Says where a new breakpoint stops.
pub fn added(added: &Break, past: &Past) -> String {
    let count = added.functions.len();
    let noun = if count == 1 { "function" } else { "functions" };
    let live = match past.is_of_a_session() {
        true => "It stops runs through the past; to stop the program, first: goto live\n",
        false => "",
    };
    format!(
        "Breakpoint {}: {} ({count} {noun})\n{live}",
        added.id,
        escaped(&added.location)
    )
}

/// Writes all breakpoints.
pub fn stops(breaks: &[Break], terminal: &Terminal) -> String {
    if breaks.is_empty() {
        return "There are no breakpoints; runs through time stop where the recording did.\n"
            .to_owned();
    }
    let row = |known: &Break| {
        vec![
            Some(known.id.to_string()),
            Some(known.location.clone()),
            Some(known.functions.len().to_string()),
        ]
    };
    let headings = [
        ("ID", Align::Right),
        ("Location", Align::Left),
        ("Functions", Align::Right),
    ];
    table(&headings, breaks.iter().map(row).collect(), terminal)
}

/// Says what is watched from now on.
pub fn watched(line: &WatchLine) -> String {
    let scope = match &line.function {
        Some(function) => format!("in {}", escaped(function)),
        None => "everywhere".to_owned(),
    };
    format!(
        "Watch {}: {} ({scope})\n",
        line.id,
        escaped(&line.expression)
    )
}

/// Writes all watches.
pub fn watches(reply: &WatchesReply, terminal: &Terminal) -> String {
    if reply.watches.is_empty() {
        return "Nothing is watched.\n".to_owned();
    }
    let row = |line: &WatchLine| {
        let function = line.function.clone();
        vec![
            Some(line.id.to_string()),
            Some(line.expression.clone()),
            Some(line.hits.to_string()),
            Some(function.map_or_else(|| "everywhere".to_owned(), |name| format!("in {name}"))),
        ]
    };
    let headings = [
        ("ID", Align::Right),
        ("Expression", Align::Left),
        ("Hits", Align::Right),
        ("Where", Align::Left),
    ];
    table(&headings, reply.watches.iter().map(row).collect(), terminal)
}

/// Says what is watched no more.
pub fn unwatched(reply: &WatchesReply) -> String {
    match reply.watches.as_slice() {
        [] => "Nothing was watched.\n".to_owned(),
        removed => removed
            .iter()
            .map(|line| format!("Watch {} removed: {}\n", line.id, escaped(&line.expression)))
            .collect(),
    }
}
