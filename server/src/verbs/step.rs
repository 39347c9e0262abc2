//! `step`: runs to another line, also in a called function that has line information. In a recording, moves to the next
//! event of any thread.

use recorder::live::Motion;
use replay::moves::Direction;

use super::{Call, Command, Does, Needs, StepArgs, Text, Verb, Word, stepping};
use crate::protocol::Failure;
use crate::session::{MotionReport, Session};

/// The `step` verb.
pub struct Step;

impl Verb for Step {
    const NAME: &'static str = "step";
    const DOC: &'static str = "Go to the next line, into calls; in a recording, to the next event";
    const ALIASES: &'static [&'static str] = &["s"];
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Move;
    type Args = StepArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: StepArgs) -> Result<MotionReport, Failure> {
        match call.target()? {
            Session::Live(session) => {
                stepping::step(call, &session, &args, Motion::Step, Motion::Instruction)
            }
            Session::Recorded(past) => past.step(&args, Direction::Forward, &|| call.is_gone()),
        }
    }
}

impl Command for Step {
    const WORDS: &'static [Word] = stepping::STEPS;

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
