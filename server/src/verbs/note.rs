//! `note`: appends a text to the recording, to be found again in its events.

use serde::{Deserialize, Serialize};

use super::{Call, Nothing, Verb};
use crate::protocol::Failure;
use crate::session::of_recorder;

/// The verb.
pub struct Note;

/// Its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteArgs {
    /// The text.
    pub text: String,
}

impl Verb for Note {
    const NAME: &'static str = "note";
    type Args = NoteArgs;
    type Reply = Nothing;

    fn run(call: &Call<'_>, args: NoteArgs) -> Result<Nothing, Failure> {
        let session = call.session()?;
        session.must_run()?;
        session
            .live
            .note(&args.text)
            .map_err(|error| of_recorder(&error))?;
        Ok(Nothing {})
    }
}
