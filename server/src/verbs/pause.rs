//! `pause`: stops all threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Needs, Text, Verb, stepping};
use crate::protocol::Failure;
use crate::session::{LiveSession, MotionReport, of_recorder};

/// The `pause` verb.
pub struct Pause;

/// The arguments of `pause`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PauseArgs {
    /// If a client that waits for this program's stop has turned to a copy of it that is followed, stop that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub what_is_waited_for: bool,
}

/// Stopping threads takes milliseconds, unless the kernel holds one of them.
const PATIENCE: Duration = Duration::from_secs(10);

impl Verb for Pause {
    const NAME: &'static str = "pause";
    const DOC: &'static str = "Stop all threads";
    const NEEDS: Needs = Needs::Program;
    const DOES: Does = Does::Move;
    type Args = PauseArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: PauseArgs) -> Result<MotionReport, Failure> {
        let mut session = call.live()?;
        if args.what_is_waited_for {
            session = waited_for(call, session);
        }
        session.must_run()?;
        let before = session.live.newest_stop();
        let number = session.live.pause().map_err(|error| of_recorder(&error))?;
        let came = stepping::wait_here(call, &session, number.saturating_sub(1), PATIENCE)?;
        Ok(MotionReport {
            already: number <= before,
            ..came.report
        })
    }
}

/// Returns the session for whose stop the clients that wait for this one wait now.
fn waited_for(call: &Call<'_>, mut session: Arc<LiveSession>) -> Arc<LiveSession> {
    let until = Instant::now() + PATIENCE;
    while session.follow.has_waiting()
        && let Some((copy, _)) = session.follow.followed(until, &call.gone)
    {
        session = copy;
    }
    session
}

impl Command for Pause {
    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
