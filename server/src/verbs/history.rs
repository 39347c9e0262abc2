//! `history`: every change of a value that the recording shows.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{Call, Column, Command, Does, Form, Needs, Takes, Text, Verb, Word};
use crate::past::Change;
use crate::protocol::Failure;

/// The verb.
pub struct History;

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryArgs {
    /// What to look for, as `print` takes it.
    pub expression: String,
}

/// All changes that the recording shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryReply {
    /// The expression.
    pub expression: String,
    /// In order.
    pub changes: Vec<Change>,
    /// At how many events the value is known.
    pub known_at: usize,
}

impl Verb for History {
    const NAME: &'static str = "history";
    const DOC: &'static str = "Show every change of a value that the recording shows";
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = HistoryArgs;
    type Reply = HistoryReply;

    fn run(call: &Call<'_>, args: HistoryArgs) -> Result<HistoryReply, Failure> {
        let past = call.recording()?;
        past.history(&args.expression, &|| call.is_gone())
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
    const WORDS: &'static [Word] = &[EXPRESSION];

    fn text(reply: &HistoryReply, _: &Self::Args) -> Text {
        if reply.changes.is_empty() {
            return Text::line(format!(
                "The recording shows no value of {}: it is known at no stop, at no copy of memory, at no capture, and at no entry of this function.",
                reply.expression
            ));
        }
        let rows = reply.changes.iter().map(|change| {
            vec![
                change.seq.to_string(),
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
        Text::table(&columns, rows.collect())
    }
}

/// Writes where the thread stood, if that is known.
pub(super) fn place(change: &Change) -> String {
    let mut text = change.function.clone().unwrap_or_default();
    if let (Some(file), Some(line)) = (&change.file, change.line) {
        // Writing to a String cannot fail.
        _ = write!(text, " at {file}:{line}");
    }
    text
}
