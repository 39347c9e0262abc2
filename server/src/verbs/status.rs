//! `status`: the daemon and all its sessions.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Needs, Nothing, Text, Verb, show};
use crate::protocol::Failure;
use crate::session::{Session, SessionReport};

/// The `status` verb.
pub struct Status;

/// The reply of `status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReply {
    /// The daemon's process id.
    pub daemon_pid: u32,
    /// The daemon's version.
    pub version: String,
    /// All sessions, or only the requested one.
    pub sessions: Vec<SessionReport>,
}

impl Verb for Status {
    const NAME: &'static str = "status";
    const DOC: &'static str = "Show the sessions";
    const NEEDS: Needs = Needs::Daemon;
    const DOES: Does = Does::Look;
    type Args = Nothing;
    type Reply = StatusReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<StatusReply, Failure> {
        let sessions = match call.asked.session {
            Some(_) => vec![call.session()?],
            None => call.sessions.all(),
        };
        let reports = sessions.iter().map(Session::report);
        Ok(StatusReply {
            daemon_pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sessions: reports.collect::<Result<_, _>>()?,
        })
    }
}

impl Command for Status {
    fn text(reply: &StatusReply, _: &Nothing) -> Text {
        match reply.sessions.is_empty() {
            true => Text::line("There is no session."),
            false => Text {
                pieces: reply
                    .sessions
                    .iter()
                    .flat_map(|report| show::session(report).pieces)
                    .collect(),
            },
        }
    }
}
