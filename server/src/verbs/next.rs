//! `next`: runs to another line of this function, or of its caller if the function returns. Calls are stepped over. In
//! a recording, moves to the next event of this thread, over calls.

use recorder::live::Motion;
use replay::moves::Direction;

use super::{Call, Command, Does, Needs, StepArgs, Text, Verb, Word, stepping};
use crate::protocol::Failure;
use crate::session::{MotionReport, Session};

/// The `next` verb.
pub struct Next;

impl Verb for Next {
    const NAME: &'static str = "next";
    const DOC: &'static str =
        "Go to the next line, over calls; in a recording, to the next event of this thread

At the end of a function that a system library has called, it runs on to a line outside such libraries: from the end of main, to the end of the program. gdb stops in the library.";
    const ALIASES: &'static [&'static str] = &["n"];
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Move;
    type Args = StepArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: StepArgs) -> Result<MotionReport, Failure> {
        match call.target()? {
            Session::Live(session) => {
                stepping::step(call, &session, &args, Motion::Next, Motion::NextInstruction)
            }
            Session::Recorded(past) => past.next(&args, Direction::Forward, &|| call.is_gone()),
        }
    }
}

impl Command for Next {
    const WORDS: &'static [Word] = stepping::STEPS;

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
