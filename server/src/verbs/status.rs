//! `status`: the daemon and all its sessions.

use serde::{Deserialize, Serialize};

use super::{Call, Nothing, Verb};
use crate::protocol::Failure;
use crate::session::SessionReport;

/// The verb.
pub struct Status;

/// Its reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReply {
    /// The daemon's process id.
    pub daemon_pid: u32,
    /// Its version.
    pub version: String,
    /// All sessions, or the one that was named.
    pub sessions: Vec<SessionReport>,
}

impl Verb for Status {
    const NAME: &'static str = "status";
    type Args = Nothing;
    type Reply = StatusReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<StatusReply, Failure> {
        let sessions = match call.session {
            Some(_) => vec![call.session()?],
            None => call.sessions.all(),
        };
        Ok(StatusReply {
            daemon_pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sessions: sessions.iter().map(|session| session.report()).collect(),
        })
    }
}
