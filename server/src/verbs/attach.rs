//! `attach`: takes a running process under control. The process keeps running; `pause` stops it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Call, Does, Needs, Verb};
use crate::protocol::{Code, Failure};
use crate::session::{self, LiveSession, Origin, SessionReport};

/// The `attach` verb.
pub struct Attach;

/// The arguments of `attach`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachArgs {
    /// The process to attach to.
    pub attach: session::Attach,
}

impl Verb for Attach {
    const NAME: &'static str = "attach";
    const DOC: &'static str = "Take a running process under control\n\nThe process keeps running; `hindsight pause` stops it.";
    const NEEDS: Needs = Needs::Daemon;
    const DOES: Does = Does::Change;
    type Args = AttachArgs;
    type Reply = SessionReport;

    fn run(call: &Call<'_>, args: AttachArgs) -> Result<SessionReport, Failure> {
        let pid = args.attach.pid;
        let mut all = call.sessions.live().into_iter();
        let holds = |session: &Arc<LiveSession>| !session.has_ended() && session.live.pid() == pid;
        if let Some(held) = all.find(holds) {
            let id = held.id;
            let message = format!("process {pid} is under control already: session {id}");
            let hint = format!("choose it with --session {id}, or detach it first");
            return Err(Failure::new(Code::NotAllowed, message).hint(hint));
        }
        Ok(LiveSession::begin(call, Origin::Attached(args.attach), false, None)?.report())
    }
}
