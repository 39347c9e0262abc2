//! `notes`: all notes of the recording, to go to with `goto @TEXT`.

use serde::{Deserialize, Serialize};

use super::{Call, Column, Command, Does, Needs, Nothing, Text, Verb};
use crate::protocol::Failure;

/// The verb.
pub struct Notes;

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteLine {
    /// Its event.
    pub seq: u64,
    /// What it says.
    pub text: String,
    /// It was added after the program had ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub added: bool,
}

/// All notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotesReply {
    /// In order.
    pub notes: Vec<NoteLine>,
}

impl Verb for Notes {
    const NAME: &'static str = "notes";
    const DOC: &'static str = "Show all notes";
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Look;
    type Args = Nothing;
    type Reply = NotesReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<NotesReply, Failure> {
        call.recording()?.notes()
    }
}

impl Command for Notes {
    fn text(reply: &NotesReply, _: &Self::Args) -> Text {
        if reply.notes.is_empty() {
            return Text::line("The recording has no notes.");
        }
        let rows = reply.notes.iter();
        let rows = rows.map(|note| vec![note.seq.to_string(), note.text.clone()]);
        let columns = [Column::number("Event"), Column::text("Note")];
        Text::table(&columns, rows.collect())
    }
}
