//! `note`: adds a note. For a program, the note becomes an event of its recording. In a recording, the note belongs to
//! the current event. `goto @TEXT` finds it again.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, NoteLine, Nothing, Text, Verb, Word};
use crate::protocol::Failure;
use crate::session::{Session, of_recorder};

/// The `note` verb.
pub struct Note;

/// The arguments of `note`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteArgs {
    /// The text.
    pub text: String,
}

/// The reply of `note`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NoteReply {
    /// The note belongs to a recorded event.
    At(NoteLine),
    /// The note comes after everything recorded so far.
    Now(Nothing),
}

impl Verb for Note {
    const NAME: &'static str = "note";
    const DOC: &'static str = "Append a note to the recording

In a recording it is kept at this event: a bookmark for goto @TEXT.";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    type Args = NoteArgs;
    type Reply = NoteReply;

    fn run(call: &Call<'_>, args: NoteArgs) -> Result<NoteReply, Failure> {
        let session = match call.target()? {
            Session::Live(session) => session,
            Session::Recorded(past) => return past.add_note(&args.text).map(NoteReply::At),
        };
        session.must_run()?;
        session
            .live
            .note(&args.text)
            .map_err(|error| of_recorder(&error))?;
        Ok(NoteReply::Now(Nothing {}))
    }
}

impl Command for Note {
    const WORDS: &'static [Word] = &[Word::new("text", "TEXT", Form::Rest, "The text")];

    fn text(reply: &NoteReply, _: &NoteArgs) -> Text {
        match reply {
            NoteReply::Now(_) => Text::default(),
            NoteReply::At(note) => Text::line(format!("Note at event {}: {}", note.seq, note.text)),
        }
    }
}
