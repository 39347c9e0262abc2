//! Resources: the pages of documentation that models need, the tables of SQL, and the recordings of this folder.

use std::path::{Path, PathBuf};

use rmcp::model::{ReadResourceResult, Resource, ResourceContents};
use server::protocol::{Code, Failure};
use server::verbs::{Nothing, Status};

use crate::context::Context;
use crate::parts;

/// A page by its address.
const PAGES: &[(&str, &str, &str)] = &[
    (
        "hindsight://docs/agents",
        "How to begin",
        include_str!("../../docs/agents.md"),
    ),
    (
        "hindsight://docs/sql",
        "SQL over a recording",
        include_str!("../../docs/sql.md"),
    ),
    (
        "hindsight://docs/state",
        "What is known at an event",
        include_str!("../../docs/state.md"),
    ),
    (
        "hindsight://docs/live",
        "Live control",
        include_str!("../../docs/live.md"),
    ),
    (
        "hindsight://docs/limits",
        "Limits",
        include_str!("../../docs/limits.md"),
    ),
];
const SCHEMA: &str = "hindsight://schema";
const RECORDING: &str = "hindsight://recording/";

/// Lists them.
pub fn list(context: &Context) -> Vec<Resource> {
    let schema = schema();
    let all = PAGES.iter().copied();
    let all = all.chain([(SCHEMA, "Tables and columns of debug_sql", schema.as_str())]);
    let pages = all.flat_map(|(uri, title, text)| listed(uri, title, text));
    let recordings = recordings(context).into_iter().map(|path| {
        let name = path.display().to_string();
        Resource::new(format!("{RECORDING}{}", name.trim_start_matches('/')), name)
    });
    pages.chain(recordings).collect()
}

/// The parts of a page, as they are listed.
fn listed(uri: &str, title: &str, text: &str) -> Vec<Resource> {
    let parts = parts::of(text);
    let part = |(at, part): (usize, &String)| {
        let number = at + 1;
        let name = match (number, parts::title(part)) {
            (1, _) => title.to_owned(),
            (_, Some(heading)) => format!("{title}, part {number}: {heading}"),
            (_, None) => format!("{title}, part {number}"),
        };
        Resource::new(parts::address(uri, number), name)
    };
    parts.iter().enumerate().map(part).collect()
}

/// Reads a page, or a part of it: `hindsight://docs/sql/2`.
fn page(uri: &str) -> Option<String> {
    let (address, number) = match uri.rsplit_once('/') {
        Some((address, number)) if number.parse::<usize>().is_ok() => {
            (address, number.parse().ok()?)
        }
        _ => (uri, 1),
    };
    let page = PAGES.iter().find(|(known, _, _)| *known == address);
    let text = match page {
        Some((_, _, text)) => (*text).to_owned(),
        None if address == SCHEMA => schema(),
        None => return None,
    };
    parts::told(address, &parts::of(&text), number)
}

/// Reads one.
///
/// # Errors
/// There is none at this address.
pub fn read(context: &Context, uri: &str) -> Result<ReadResourceResult, Failure> {
    let text = match page(uri) {
        Some(text) => text,
        None => match uri.strip_prefix(RECORDING) {
            Some(path) => recording(context, &Path::new("/").join(path))?,
            None => {
                let message = format!("there is no resource {uri}");
                return Err(Failure::new(Code::BadRequest, message));
            }
        },
    };
    Ok(ReadResourceResult::new(vec![ResourceContents::text(
        text, uri,
    )]))
}

/// Describes all tables and functions that give one, with their columns.
pub fn schema() -> String {
    let mut text = String::new();
    for table in query::TABLES {
        text.push_str(&format!("{}: {}\n", table.name, table.doc));
        for (column, meaning) in table.columns {
            text.push_str(&format!("  {column}: {meaning}\n"));
        }
    }
    for function in query::TABLE_FUNCTIONS {
        text.push_str(&format!("{}: {}\n", function.call(false), function.doc));
        for (column, _, meaning) in function.columns {
            text.push_str(&format!("  {column}: {meaning}\n"));
        }
    }
    text
}

fn recording(context: &Context, folder: &Path) -> Result<String, Failure> {
    let session = context.gateway.recordings.open(folder)?;
    let extent = session.extent();
    Ok(format!(
        "{}\nevents: {}\nstate: {:?}\nlength: {} ms\nAsk it with debug_overview, debug_sql, debug_query and debug_state.\n",
        folder.display(),
        extent.events,
        extent.state,
        extent.last_ts_ns / 1_000_000,
    ))
}

/// Returns the recordings of this folder, and those of the sessions.
pub fn recordings(context: &Context) -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let entries = std::fs::read_dir(&here).into_iter().flatten().flatten();
    let is_recording = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "hindsight")
            && store::recording::resolve(path).is_ok()
    };
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(is_recording)
        .collect();
    if let Ok(status) = context.ask::<Status>(None, &Nothing {}) {
        found.extend(status.sessions.into_iter().map(|session| session.recording));
    }
    found.sort();
    found.dedup();
    found
}
