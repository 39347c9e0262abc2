//! How breakpoints and watches of a recording are written.

use server::past::{Break, WatchLine, WatchesReply};

use super::show::table;
use crate::render::{Align, Terminal, count, escaped};

/// Says where a new breakpoint stops.
pub fn added(added: &Break, of_a_program: bool) -> String {
    let live = match of_a_program {
        true => "It stops runs through the past; to stop the program, first: goto live\n",
        false => "",
    };
    format!(
        "Breakpoint {}: {} ({})\n{live}",
        added.id,
        escaped(&added.location),
        count(added.functions.len() as u64, "function")
    )
}

/// Writes all breakpoints.
pub fn breaks(breaks: &[Break], terminal: &Terminal) -> String {
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
