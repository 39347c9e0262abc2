//! `open`: opens a recording as a session, for the verbs that examine it and move through time.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word, show};
use crate::os_text::OsText;
use crate::past::{self, Past};
use crate::protocol::{Code, Failure, Notice, NoticeKind};
use crate::session::SessionReport;

/// The `open` verb.
pub struct Open;

/// The arguments of `open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenArgs {
    /// The recording, with or without `.hindsight`, or a core file.
    pub recording: OsText,
    /// With a core file: the program, if it is not where the core file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<OsText>,
    /// Begin at the first call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_first_call: bool,
}

impl Verb for Open {
    const NAME: &'static str = "open";
    const DOC: &'static str = "Open a recording or a core file as a session: goto, step-back, print, history

Later commands use this session: those that inspect, and those that move in time. It opens at its first event, or where a signal ended the program. `hindsight close` closes it.";
    const NEEDS: Needs = Needs::Daemon;
    const DOES: Does = Does::Change;
    type Args = OpenArgs;
    type Reply = SessionReport;

    fn run(call: &Call<'_>, args: OpenArgs) -> Result<SessionReport, Failure> {
        let folder = call.folder();
        let name = folder.join(PathBuf::from(OsString::from(&args.recording)));
        let program = args
            .program
            .as_ref()
            .map(|program| folder.join(PathBuf::from(OsString::from(program))));
        let is_recording = store::recording::resolve(&name).is_ok();
        let path = past::located(&name, program).map_err(|failure| Failure {
            code: match is_recording {
                true => failure.code,
                false => Code::BadRequest,
            },
            ..failure
        })?;
        let open = || match Past::open(&path, &store::temp_dir()) {
            Ok(past) if args.at_first_call => past.at_first_call(),
            opened => opened,
        };
        let past = call.told("reading the recording", open)?;
        tell_remarks(call, &past)?;
        let id = call.sessions.next_id();
        call.sessions
            .insert_recorded(past.numbered(id, &folder))
            .report()
    }
}

/// Warns of what a core file lacks.
fn tell_remarks(call: &Call<'_>, past: &Past) -> Result<(), Failure> {
    let remarks = replay::remarks(past.timeline());
    for text in remarks.map_err(|error| past::of_replay(&error))? {
        (call.notify)(Notice::new(NoticeKind::Warning, text));
    }
    Ok(())
}

impl Command for Open {
    const WORDS: &'static [Word] = &[
        Word::new(
            "recording",
            "RECORDING",
            Form::Path,
            "The recording, with or without .hindsight, or a core file",
        ),
        Word::new(
            "program",
            "FILE",
            Form::TextOption(None),
            "With a core file: the program, if it is not where the core file says",
        ),
    ];

    fn text(reply: &SessionReport, _: &Self::Args) -> Text {
        show::session(reply)
    }

    fn begun(reply: &SessionReport) -> Option<&SessionReport> {
        Some(reply)
    }
}
