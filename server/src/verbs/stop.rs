//! `stop`: kills the program and closes its recording. Stopping the last session ends the daemon. A session whose
//! program has ended counts until it is stopped too.

use std::path::PathBuf;

use recorder::Outcome;
use serde::{Deserialize, Serialize};

use super::{Call, Does, Needs, Nothing, Verb};
use crate::protocol::Failure;
use crate::session::ExitReport;

/// The `stop` verb.
pub struct Stop;

/// How a session ended, for `stop` and `detach`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndReply {
    /// The session.
    pub session: u32,
    /// How the program ended.
    pub exit: ExitReport,
    /// The recording's folder.
    #[serde(with = "store::os_path")]
    pub recording: PathBuf,
    /// How many events the recording has.
    pub events: u64,
    /// How many calls the recording has.
    pub calls: u64,
    /// How many records were lost.
    pub lost: u64,
    /// The recording's size on disk, in bytes.
    pub bytes_on_disk: u64,
    /// Why the recording is incomplete, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

impl EndReply {
    pub(super) fn of(session: u32, outcome: Outcome) -> EndReply {
        EndReply {
            session,
            exit: outcome.exit.into(),
            recording: outcome.recording,
            events: outcome.events,
            calls: outcome.calls,
            lost: outcome.gaps_lost,
            bytes_on_disk: outcome.bytes_on_disk,
            incomplete: outcome.incomplete,
        }
    }
}

impl Verb for Stop {
    const NAME: &'static str = "stop";
    const ALIASES: &'static [&'static str] = &["kill"];
    const DOC: &'static str =
        "Kill the program and close its recording; ending the last session ends the daemon";
    const NEEDS: Needs = Needs::Control;
    const DOES: Does = Does::Change;
    type Args = Nothing;
    type Reply = EndReply;

    fn run(call: &Call<'_>, _: Nothing) -> Result<EndReply, Failure> {
        let session = call.controlled()?;
        let outcome = call.close(&session, |live| live.kill())?;
        Ok(EndReply::of(session.id, outcome))
    }
}
