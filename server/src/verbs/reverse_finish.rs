//! `reverse_finish`: moves to the beginning of this call; from there, to the beginning of the call around it.

use replay::moves::Direction;

use super::{Call, Command, Does, Needs, Nothing, Text, Verb};
use crate::protocol::Failure;
use crate::session::{MotionReport, Session};

/// The `reverse_finish` verb.
pub struct ReverseFinish;

impl Verb for ReverseFinish {
    const NAME: &'static str = "reverse_finish";
    const DOC: &'static str =
        "Go back to the entry of this call, or from there to its caller's entry";
    const ALIASES: &'static [&'static str] = &["rf"];
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Move;
    type Args = Nothing;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, _: Nothing) -> Result<MotionReport, Failure> {
        let target = call.target()?;
        call.travel(|past| {
            if let Session::Live(session) = &target {
                session.select_frame_in(past, "")?;
            }
            past.finish(Direction::Back, &|| call.is_gone())
        })
    }
}

impl Command for ReverseFinish {
    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
