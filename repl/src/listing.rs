//! Lists of recordings, as `ls` and `runs` show them: when each began, how it ended, how large it is.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use server::inspect::signal_name;
use server::quantity::{duration, grouped};
use store::Summary;
use store::catalog::Entry;
use store::labels::Labels;
use store::recording::RecordingState;
use store::seal::End;
use store::summary::{Totals, name_of};

use crate::error::Error;
use crate::json::answer;
use crate::output::{self, to_stdout};
use crate::recording::size_on_disk;
use crate::render::{Align, Column, Layout, Table, Terminal, bytes, date};
use crate::sets::Whole;

/// A recording in a list.
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub path: PathBuf,
    /// When it began, in ns since 1970.
    pub start_unix_ns: i64,
    /// The command line of the program.
    pub argv: Vec<String>,
    /// Its labels.
    pub labels: Labels,
    state: State,
    totals: Option<Totals>,
    /// Of a set of recordings: what is in it.
    members: Option<Members>,
}

/// What is in a set.
struct Members {
    processes: usize,
    recordings: Vec<Row>,
    newest_unix_ns: i64,
    /// Any process did.
    has_crashed: bool,
}

/// The state of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// It is being recorded.
    Live,
    /// Its recorder did not close it.
    Open,
    /// It is not where it was.
    Gone,
}

impl Row {
    /// Returns the row of a recording.
    pub fn of(summary: Summary) -> Row {
        let manifest = summary.manifest();
        Row {
            name: name_of(summary.dir()),
            path: summary.dir().to_owned(),
            start_unix_ns: manifest.start_unix_ns,
            argv: manifest.argv.clone(),
            state: match summary.recording.state() {
                RecordingState::Closed => State::Closed,
                RecordingState::Live => State::Live,
                RecordingState::Interrupted => State::Open,
            },
            labels: summary.labels,
            totals: summary.totals,
            members: None,
        }
    }

    /// Returns the row of a set as a whole.
    pub fn of_set(set: Whole) -> Row {
        let ending = set.ending();
        let has_ended = ending.is_some_and(|process| process.end_unix_ns.is_some());
        let end = ending.and_then(|process| match (process.exit_code, process.exit_signal) {
            (Some(code), _) => Some(End::Code(code)),
            (None, Some(signal)) => Some(End::Signal(signal_name(signal))),
            (None, None) => None,
        });
        let (calls, events, is_partly) = set.rows();
        let is = |state: State| set.recordings.iter().any(|row| row.state == state);
        let state = match is(State::Live) || !has_ended && set.recordings.is_empty() {
            true => State::Live,
            false if is(State::Open) => State::Open,
            false => State::Closed,
        };
        let duration_ns = set.duration_ns().and_then(|ns| i64::try_from(ns).ok());
        Row {
            name: name_of(&set.dir),
            start_unix_ns: set.start_unix_ns(),
            argv: set
                .first()
                .map(|first| first.argv.clone())
                .unwrap_or_default(),
            state,
            totals: duration_ns
                .filter(|_| !is_partly)
                .map(|duration_ns| Totals {
                    events,
                    calls,
                    duration_ns,
                    end,
                    builds: None,
                }),
            members: Some(Members {
                processes: store::set::number(&set.processes),
                newest_unix_ns: set.newest_unix_ns(),
                has_crashed: set.has_crashed(),
                recordings: set.recordings,
            }),
            path: set.dir,
            labels: set.labels,
        }
    }

    /// Returns what is known of it as a whole.
    pub fn totals(&self) -> Option<&Totals> {
        self.totals.as_ref()
    }

    /// Returns the row of an entry of the catalog: the recording's own facts, or if it is gone those that are known.
    pub fn of_entry(entry: Entry) -> Row {
        match Summary::read(&entry.path) {
            Ok(summary) => Row::of(summary),
            Err(_) => Row {
                name: name_of(&entry.path),
                state: match entry.is_there() {
                    true => State::Open,
                    false => State::Gone,
                },
                path: entry.path,
                start_unix_ns: entry.start_unix_ns,
                argv: entry.argv,
                labels: entry.labels,
                totals: entry.totals,
                members: None,
            },
        }
    }

    /// Returns whether the recording no longer exists at its path.
    pub fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// Returns whether it is being recorded.
    pub fn is_live(&self) -> bool {
        self.state == State::Live
    }

    /// Returns the recordings of a set.
    pub fn members(&self) -> Option<&[Row]> {
        let members = self.members.as_ref()?;
        Some(&members.recordings)
    }

    /// Returns when the newest recording in it began.
    pub fn newest_unix_ns(&self) -> i64 {
        let members = self.members.as_ref();
        members.map_or(self.start_unix_ns, |members| members.newest_unix_ns)
    }

    fn has_crashed(&self) -> bool {
        let members = self.members.as_ref();
        members.is_some_and(|members| members.has_crashed)
    }

    /// Returns whether the program is known to have exited with 0; of a set, the first one, and none crashed.
    pub fn has_passed(&self) -> bool {
        self.end() == Some(&End::Code(0)) && !self.has_crashed()
    }

    /// Returns whether the program is known to have failed; of a set, the first one, or that any crashed.
    pub fn has_failed(&self) -> bool {
        if self.has_crashed() {
            return true;
        }
        match self.end() {
            Some(End::Code(code)) => *code != 0,
            Some(End::Signal(_)) => true,
            _ => false,
        }
    }

    fn end(&self) -> Option<&End> {
        self.totals.as_ref()?.end.as_ref()
    }

    fn ended(&self) -> String {
        match (self.state, self.end()) {
            (State::Live, _) => "recording".to_owned(),
            (State::Open, _) => "incomplete".to_owned(),
            (State::Gone, _) => "gone".to_owned(),
            (State::Closed, Some(End::Code(code))) => format!("exit {code}"),
            (State::Closed, Some(End::Signal(signal))) => signal.clone(),
            (State::Closed, Some(End::Detached)) => "detached".to_owned(),
            (State::Closed, Some(End::Unseen) | None) => "not seen".to_owned(),
        }
    }

    /// Returns the size of its files, in bytes.
    pub fn size(&self) -> u64 {
        size_on_disk(&self.path)
    }

    /// Returns all facts as JSON.
    pub fn as_json(&self) -> Value {
        let (code, signal) = match self.end() {
            Some(End::Code(code)) => (Some(*code), None),
            Some(End::Signal(name)) => (None, Some(name)),
            _ => (None, None),
        };
        let totals = self.totals.as_ref();
        json!({
            "run": self.name,
            "path": crate::json::path(&self.path),
            "start": date(self.start_unix_ns),
            "start_unix_ns": self.start_unix_ns,
            "argv": self.argv,
            "state": match self.state {
                State::Closed => "closed",
                State::Live => "live",
                State::Open => "incomplete",
                State::Gone => "gone",
            },
            "exit_code": code,
            "exit_signal": signal,
            "duration_ns": totals.map(|totals| totals.duration_ns),
            "events": totals.map(|totals| totals.events),
            "calls": totals.map(|totals| totals.calls),
            "bytes_on_disk": (!self.is_gone()).then(|| self.size()),
            "labels": self.labels,
            "processes": self.members.as_ref().map(|members| members.processes),
            "recordings": self.members.as_ref().map(|members| {
                let rows = members.recordings.iter();
                rows.map(Row::as_json).collect::<Vec<_>>()
            }),
        })
    }
}

/// Returns labels as `ci=42 branch=main`.
pub fn labels(labels: &Labels) -> String {
    let label = |(key, value): (&String, &String)| format!("{key}={value}");
    labels.iter().map(label).collect::<Vec<_>>().join(" ")
}

/// Returns a path as people write it: relative to this folder if it lies in it. The ending stays: without it a name
/// means the newest of several.
pub fn short(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(&here).unwrap_or(path);
    path.strip_prefix("./")
        .unwrap_or(path)
        .display()
        .to_string()
}

/// The default number of rows in a text.
const ROWS: usize = 50;

/// How a list is printed.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Listing {
    /// At most the newest N, 0 for all [default: 50, and all as JSON]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,
    /// The newest rows are the last ones.
    #[arg(skip)]
    pub is_newest_last: bool,
}

impl Listing {
    /// Returns the rows that are shown, and how many are left out.
    fn page<'r, T>(&self, rows: &'r [T]) -> (&'r [T], usize) {
        let most = match self.limit {
            Some(0) => rows.len(),
            Some(limit) => limit,
            None if self.json => rows.len(),
            None => ROWS,
        };
        let left_out = rows.len().saturating_sub(most);
        match self.is_newest_last {
            true => (&rows[left_out..], left_out),
            false => (&rows[..rows.len() - left_out], left_out),
        }
    }
}

/// Prints rows as a table, or as JSON.
///
/// # Errors
/// When stdout cannot be written to.
pub fn print(rows: &[Row], list: &Listing, terminal: &Terminal) -> Result<(), Error> {
    let mut text = Vec::new();
    let (rows, left_out) = list.page(rows);
    let as_json = list.json;
    if as_json {
        let rows: Vec<Value> = rows.iter().map(Row::as_json).collect();
        writeln!(text, "{:#}", answer(Value::from(rows)))
            .expect("memory takes what is written to it");
    } else {
        let has_sets = rows.iter().any(|row| row.members.is_some());
        let columns = [
            ("recording", Align::Left),
            ("processes", Align::Right),
            ("started", Align::Left),
            ("lasted", Align::Right),
            ("ended", Align::Left),
            ("calls", Align::Right),
            ("size", Align::Right),
            ("command", Align::Left),
            ("labels", Align::Left),
        ];
        let shown = columns
            .iter()
            .filter(|(name, _)| has_sets || *name != "processes");
        let columns = shown.map(|(name, align)| Column {
            name: (*name).to_owned(),
            align: *align,
        });
        let mut table = Table::new(columns.collect());
        for row in rows {
            table.push(cells(row, has_sets));
        }
        let layout = match terminal.stdout {
            true => Layout::Fit(Terminal::size().0),
            false => Layout::Whole,
        };
        table
            .flush(&mut text, layout, terminal.stdout_colour)
            .expect("memory takes what is written to it");
        if left_out > 0 {
            let which = if list.is_newest_last { "older" } else { "more" };
            let left_out = grouped(left_out as u64);
            writeln!(text, "({left_out} {which}: --limit 0 for all)")
                .expect("memory takes what is written to it");
        }
    }
    let lines = match terminal.stdout {
        true => Terminal::size().1,
        false => usize::MAX,
    };
    output::show(&text, lines).map_err(to_stdout)
}

/// Returns the cells of a row; `has_sets`: with its number of processes.
fn cells(row: &Row, has_sets: bool) -> Vec<Option<String>> {
    let totals = row.totals.as_ref();
    let lasted = totals.and_then(|totals| u64::try_from(totals.duration_ns).ok());
    let processes = row.members.as_ref().map_or(1, |members| members.processes);
    let mut cells = vec![
        Some(short(&row.path)),
        Some(date(row.start_unix_ns)),
        Some(lasted.map_or_else(unknown, duration)),
        Some(row.ended()),
        Some(totals.map_or_else(unknown, |totals| grouped(totals.calls))),
        Some(match row.is_gone() {
            true => unknown(),
            false => bytes(row.size()),
        }),
        Some(row.argv.join(" ")),
        Some(labels(&row.labels)),
    ];
    if has_sets {
        cells.insert(1, Some(grouped(processes as u64)));
    }
    cells
}

/// What replaces an unknown fact.
fn unknown() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_shows_the_newest_rows_and_json_all() {
        let rows: Vec<usize> = (0..60).collect();
        let page = |limit, json, is_newest_last| {
            let listing = Listing {
                limit,
                json,
                is_newest_last,
            };
            let (shown, left_out) = listing.page(&rows);
            (shown[0], shown.len(), left_out)
        };
        assert_eq!(page(None, false, false), (0, 50, 10));
        assert_eq!(page(None, false, true), (10, 50, 10));
        assert_eq!(page(None, true, true), (0, 60, 0));
        assert_eq!(page(Some(0), false, true), (0, 60, 0));
        assert_eq!(page(Some(7), true, true), (53, 7, 53));
        assert_eq!(page(Some(70), false, false), (0, 60, 0));
    }
}
