//! `position`: the current position, which a prompt shows before its input.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Call, Does, Needs, Nothing, Verb, thread};
use crate::past::Past;
use crate::protocol::Failure;
use crate::session::{ExitReport, LiveSession, Session, StateWord};

/// The `position` verb.
pub struct Position;

/// The reply of `position`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PositionReply {
    /// The session.
    pub session: u32,
    /// The recording's folder.
    #[serde(with = "store::os_path")]
    pub recording: PathBuf,
    /// The recording of the instructions that led here, if questions about the past are about them: they are recorded at a stop of a
    /// program.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "store::os_path::optional"
    )]
    pub instructions: Option<PathBuf>,
    /// The kind of the current moment.
    pub when: When,
    /// The program's state, if there is a program.
    pub status: StateWord,
    /// The current event; for a stopped program, the event of its stop, or the last one of the recorded instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The moment is this many instructions later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// The selected thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// Its function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// How the program has ended, at the end of a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitReport>,
}

/// The kind of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The program's current state.
    Now,
    /// An event of the program's past.
    Past,
    /// An event of a recording.
    Recorded,
}

impl Verb for Position {
    const NAME: &'static str = "position";
    const DOC: &'static str = "Show the current moment";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    type Args = Nothing;
    type Reply = PositionReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<PositionReply, Failure> {
        Ok(match call.target()? {
            Session::Live(session) => live(&session),
            Session::Recorded(past) => {
                let status = match call.session()? {
                    Session::Live(session) => session.report().status,
                    Session::Recorded(_) => StateWord::Recorded,
                };
                recorded(&past, status)
            }
        })
    }
}

fn live(session: &LiveSession) -> PositionReply {
    let status = session.report().status;
    let thread = match status {
        StateWord::Stopped => thread::live(session, None).ok(),
        StateWord::Running | StateWord::Ended | StateWord::Recorded => None,
    };
    let tid = thread.as_ref().map(|thread| thread.thread as u32);
    let exact = match status {
        StateWord::Running => None,
        StateWord::Stopped | StateWord::Ended | StateWord::Recorded => session.exact_recording(),
    };
    let (instructions, last) = exact.unzip();
    PositionReply {
        session: session.id,
        recording: session.live.recording().to_owned(),
        instructions,
        when: When::Now,
        status,
        seq: last.or_else(|| session.last_stop_event(tid?)),
        steps: None,
        thread: tid,
        function: thread.and_then(|thread| thread.place?.function),
        exit: None,
    }
}

fn recorded(past: &Past, status: StateWord) -> PositionReply {
    let position = past.position();
    let timeline = past.timeline();
    let function = match timeline.has_every_instruction() {
        true => past.look(1, |looked| Ok(looked.place().function)).ok(),
        false => {
            let call = timeline.innermost(position.tid, position.seq);
            Some(call.ok().flatten().map(|call| timeline.name(&call)))
        }
    };
    PositionReply {
        session: past.id(),
        recording: past.path(),
        instructions: None,
        when: match past.is_of_a_session() {
            true => When::Past,
            false => When::Recorded,
        },
        status,
        seq: Some(position.seq),
        steps: Some(position.steps).filter(|steps| *steps > 0),
        thread: Some(position.tid),
        function: function.flatten(),
        exit: past.ended_at(position.seq).ok().flatten(),
    }
}
