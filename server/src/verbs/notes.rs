//! `notes`: all notes of the recording, for `goto @TEXT`.

use serde::{Deserialize, Serialize};

use super::{Call, Column, Command, Does, Needs, PageArgs, Text, Verb, Word, page};
use crate::protocol::Failure;

/// The `notes` verb.
pub struct Notes;

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteLine {
    /// Its event.
    pub seq: u64,
    /// Its text.
    pub text: String,
    /// The note was added after the program had ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub added: bool,
}

/// All notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotesReply {
    /// The notes, in order.
    pub notes: Vec<NoteLine>,
    /// How many more follow these.
    #[serde(default, skip_serializing_if = "page::is_nothing")]
    pub left_out: usize,
}

impl Verb for Notes {
    const NAME: &'static str = "notes";
    const DOC: &'static str = "Show all notes";
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Look;
    type Args = PageArgs;
    type Reply = NotesReply;

    fn run(call: &Call<'_>, args: PageArgs) -> Result<NotesReply, Failure> {
        let mut reply = call.recording()?.notes()?;
        reply.left_out = args.page().cut(&mut reply.notes);
        Ok(reply)
    }
}

impl Command for Notes {
    const WORDS: &'static [Word] = &page::WORDS;

    fn text(reply: &NotesReply, asked: &Self::Args) -> Text {
        if reply.notes.is_empty() && asked.skip > 0 {
            return Text::line("There are no more notes.");
        }
        if reply.notes.is_empty() {
            return Text::line("The recording has no notes.");
        }
        let (notes, more) = asked.page().shown(&reply.notes, reply.left_out);
        let rows = notes.iter();
        let rows = rows.map(|note| vec![note.seq.to_string(), note.text.clone()]);
        let columns = [Column::number("Event"), Column::text("Note")];
        Text::table(&columns, rows.collect()).and(more)
    }
}
