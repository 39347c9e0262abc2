//! `close`: ends the session of an opened recording. The recording itself is kept.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Needs, Nothing, Text, Verb};
use crate::protocol::{Code, Failure};
use crate::session::Session;

/// The `close` verb.
pub struct Close;

/// The reply of `close`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseReply {
    /// The session.
    pub session: u32,
}

impl Verb for Close {
    const NAME: &'static str = "close";
    const DOC: &'static str = "Close an open recording; closing the last session ends the daemon";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    type Args = Nothing;
    type Reply = CloseReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<CloseReply, Failure> {
        let session = call.session()?;
        if let Some(past) = call.sessions.alone() {
            return Err(past.needs_the_program("close").hint("leave it with: quit"));
        }
        if let Session::Live(session) = &session {
            let message = format!("session {} is a program, and not a recording", session.id);
            return Err(Failure::new(Code::NotAllowed, message)
                .hint("end it with: hindsight stop, or leave it running with: hindsight detach"));
        }
        call.sessions.remove(session.id());
        call.sessions.end_if_none_are_left();
        Ok(CloseReply {
            session: session.id(),
        })
    }
}

impl Command for Close {
    fn text(reply: &CloseReply, _: &Self::Args) -> Text {
        Text::line(format!("Session {} is closed.", reply.session))
    }
}
