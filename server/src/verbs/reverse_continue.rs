//! `reverse_continue`: moves back to the last stop, breakpoint, or change of a watched value.

use replay::moves::Direction;

use super::{Call, Command, Does, Needs, Nothing, Text, Verb};
use crate::protocol::Failure;
use crate::session::MotionReport;

/// The `reverse_continue` verb.
pub struct ReverseContinue;

impl Verb for ReverseContinue {
    const NAME: &'static str = "reverse_continue";
    const DOC: &'static str = "Go back to the last stop or breakpoint";
    const ALIASES: &'static [&'static str] = &["rc"];
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Move;
    type Args = Nothing;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, _: Nothing) -> Result<MotionReport, Failure> {
        call.travel(|past| past.run(Direction::Back, &|| call.is_gone()))
    }
}

impl Command for ReverseContinue {
    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
