//! `step`: goes to another line, into a called function too if that has lines.

use recorder::live::Motion;

use super::{Call, StepArgs, Verb, motion};
use crate::protocol::Failure;
use crate::session::MotionReport;

/// The verb.
pub struct Step;

impl Verb for Step {
    const NAME: &'static str = "step";
    type Args = StepArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: StepArgs) -> Result<MotionReport, Failure> {
        motion::step(call, &args, Motion::Step, Motion::Instruction)
    }
}
