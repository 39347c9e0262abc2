//! `next`: goes to another line of this function or, when it returns, of its caller; calls are stepped over.

use recorder::live::Motion;

use super::{Call, StepArgs, Verb, motion};
use crate::protocol::Failure;
use crate::session::MotionReport;

/// The verb.
pub struct Next;

impl Verb for Next {
    const NAME: &'static str = "next";
    type Args = StepArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: StepArgs) -> Result<MotionReport, Failure> {
        motion::step(call, &args, Motion::Next, Motion::NextInstruction)
    }
}
