//! `history`: every change of a value that the recording shows.

use std::fmt::Write;

use debuginfo::short_name;
use serde::{Deserialize, Serialize};

use super::page::Page;
use super::{
    Call, Column, Command, Does, Form, Needs, Takes, Text, Verb, Word, locals, page, show,
};
use crate::inspect::Manner;
use crate::past::Change;
use crate::protocol::Failure;

/// The `history` verb.
pub struct History;

/// The arguments of `history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryArgs {
    /// The expression, as for `print`.
    pub expression: String,
    /// At most this many changes, 0 for all. Default: 100,000; a text shows the first page of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// How many changes to leave out at the start.
    #[serde(default)]
    pub skip: usize,
    /// Show all changes, and their values whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

impl HistoryArgs {
    fn page(&self) -> Page {
        Page {
            skip: self.skip,
            limit: self.limit,
            full: self.full,
        }
    }
}

/// All changes that the recording shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryReply {
    /// The expression.
    pub expression: String,
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// At how many events the value is known.
    pub known_at: usize,
    /// How many changes follow these.
    #[serde(default, skip_serializing_if = "page::is_nothing")]
    pub left_out: usize,
    /// If every instruction is recorded: where all writes were looked for: `this call of f`, `the whole run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched: Option<String>,
    /// Its address, if the changes are the logged writes to there: it is no global variable, and lies there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// A command that records, in a second run, which lines wrote, if this recording does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Verb for History {
    const NAME: &'static str = "history";
    const DOC: &'static str = "Show every recorded change of a value";
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = HistoryArgs;
    type Reply = HistoryReply;

    fn run(call: &Call<'_>, args: HistoryArgs) -> Result<HistoryReply, Failure> {
        let past = call.recording_in_frame(&args.expression)?;
        let manner = Manner::of_many(args.full);
        let wanted = args.page().range();
        past.history(&args.expression, manner, &|| call.is_gone(), &wanted)
    }
}

/// The word of `history` and `last_write`.
pub(super) const EXPRESSION: Word = Word::new(
    "expression",
    "EXPRESSION",
    Form::Expression,
    "The expression, as for print",
);

impl Command for History {
    const WORDS: &'static [Word] = &[page::LIMIT, page::SKIP, locals::FULL, EXPRESSION];

    fn text(reply: &HistoryReply, asked: &Self::Args) -> Text {
        if reply.changes.is_empty() && asked.skip > 0 {
            return Text::line("There are no more changes.");
        }
        if let Some(searched) = reply.searched.as_ref().filter(|_| reply.changes.is_empty()) {
            return Text::line(format!("Nothing wrote {} in {searched}.", reply.expression));
        }
        if reply.changes.is_empty() {
            return Text::line(format!(
                "The recording shows no value of {}: it is known at no stop, at no copy of memory, at no capture, and at no entry of this function.",
                reply.expression
            ));
        }
        let (changes, more) = asked.page().shown(&reply.changes, reply.left_out);
        let rows = changes.iter().map(|change| {
            vec![
                moment(change),
                change.thread.to_string(),
                change.value.clone(),
                place(change),
            ]
        });
        let columns = [
            Column::number("Event"),
            Column::number("Thread"),
            Column::text("Value"),
            Column::text("Place"),
        ];
        let shortened = changes.iter().map(|change| change.shortened.then_some(""));
        let table = Text::table(&columns, rows.collect())
            .and(show::left_out(shortened))
            .and(more);
        let table = match reply.searched.as_ref().filter(|_| asked.skip == 0) {
            Some(searched) => {
                let what = match reply.changes.iter().any(|change| change.only_changes) {
                    true => "changes",
                    false => "writes",
                };
                table.and(Text::line(format!(
                    "All {what} in {searched}, and what the kernel mapped there or dropped."
                )))
            }
            None => table,
        };
        let table = match reply.place.as_deref().filter(|_| asked.skip == 0) {
            Some(place) => table.and(Text::line(lies_at(&reply.expression, place))),
            None => table,
        };
        match &reply.hint {
            Some(command) => table.and(Text::line(in_a_second_run(command))),
            None => table,
        }
    }
}

/// Says that the memory of an expression is meant, as it lies now.
#[must_use]
pub fn lies_at(name: &str, place: &str) -> String {
    format!("{name} is at {place}: these are the writes to there, whatever was there before.")
}

/// Names the command that shows more.
pub(super) fn in_a_second_run(command: &str) -> String {
    format!("A second run tells which line writes it: {command}")
}

/// Writes the time: an event, and instructions after it.
#[must_use]
pub fn moment(change: &Change) -> String {
    match change.steps {
        0 => change.seq.to_string(),
        steps => format!("{}+{steps}", change.seq),
    }
}

/// Writes the thread's position, if known, the function that it had called to write, and the call that has the value if that is
/// not the innermost one.
#[must_use]
pub fn place(change: &Change) -> String {
    if let Some(gap) = &change.not_recorded {
        return format!("not recorded: {gap}");
    }
    let mut text = change
        .function
        .as_deref()
        .map(short_name)
        .unwrap_or_default();
    if let (Some(file), Some(line)) = (&change.file, change.line) {
        // Writing to a String cannot fail.
        _ = write!(text, " at {file}:{line}");
    }
    if let Some(via) = change.via.as_deref().map(short_name) {
        _ = write!(text, ", by {via}");
    }
    if change.shared {
        text += ", while other threads wrote there too";
    }
    if let Some(call) = change.of_call {
        _ = write!(text, ", value in the call of event {call}");
    }
    text
}
