//! `next_back`: moves to the previous event of this thread, over calls.

use replay::moves::Direction;

use super::{Call, Command, CountArgs, Does, Form, Needs, Text, Verb, Word};
use crate::protocol::Failure;
use crate::session::MotionReport;

/// The `next_back` verb.
pub struct NextBack;

impl Verb for NextBack {
    const NAME: &'static str = "next_back";
    const DOC: &'static str = "Go to the event of this thread before, over calls";
    const ALIASES: &'static [&'static str] = &["reverse_next", "rn"];
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Move;
    type Args = CountArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: CountArgs) -> Result<MotionReport, Failure> {
        call.travel(|past| past.next(args.count, Direction::Back))
    }
}

impl Command for NextBack {
    const WORDS: &'static [Word] = &[Word::new("count", "COUNT", Form::Number, "How often")];

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
