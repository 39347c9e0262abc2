//! `pause`: stops all threads.

use std::time::Duration;

use super::{Call, Command, Does, Needs, Nothing, Text, Verb, stepping};
use crate::protocol::Failure;
use crate::session::{MotionReport, of_recorder};

/// The `pause` verb.
pub struct Pause;

/// Stopping threads takes milliseconds, unless the kernel holds one of them.
const PATIENCE: Duration = Duration::from_secs(10);

impl Verb for Pause {
    const NAME: &'static str = "pause";
    const DOC: &'static str = "Stop all threads";
    const NEEDS: Needs = Needs::RunningProgram;
    const DOES: Does = Does::Move;
    type Args = Nothing;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, _: Nothing) -> Result<MotionReport, Failure> {
        let session = call.live()?;
        session.must_run()?;
        let before = session.live.newest_stop();
        let number = session.live.pause().map_err(|error| of_recorder(&error))?;
        let came = stepping::wait(call, &session, number.saturating_sub(1), PATIENCE)?;
        Ok(MotionReport {
            already: number <= before,
            ..came.report
        })
    }
}

impl Command for Pause {
    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
