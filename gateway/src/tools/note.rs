//! `debug_note`: keeps a text in a recording.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use server::protocol::Failure;
use server::verbs::{self, NoteArgs, NoteReply};

use super::state::{Moment, go_to};
use crate::answer::{Answer, object};
use crate::context::Context;
use crate::tool::Tool;

/// The tool.
pub struct Note;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// The text
    text: String,
    /// At this event of a recording [default: the current one]
    at: Option<Moment>,
}

impl Tool for Note {
    const NAME: &'static str = "debug_note";
    const DOC: &'static str = "Keep a finding at an event of a recording: people find it again with goto @TEXT and in the table notes. In a live program it becomes an event.";
    const READ_ONLY: bool = false;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session()?;
        go_to(context, session, args.at.as_ref())?;
        let reply = context.ask::<verbs::Note>(session, &NoteArgs { text: args.text })?;
        let seq = match &reply {
            NoteReply::At(note) => json!(note.seq),
            NoteReply::Now(_) => json!(null),
        };
        Ok(Answer::Object(object([
            ("kept", json!(true)),
            ("seq", seq),
        ])))
    }
}
