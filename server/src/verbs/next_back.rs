//! `next_back`: moves to the previous event of this thread, over calls.

use replay::moves::Direction;

use super::step_back::INSTRUCTION;
use super::{Call, Command, CountArgs, Does, Form, Needs, Text, Verb, Word};
use crate::protocol::Failure;
use crate::session::MotionReport;

/// The `next_back` verb.
pub struct NextBack;

impl Verb for NextBack {
    const NAME: &'static str = "next_back";
    const DOC: &'static str = "Go to this thread's previous event, over calls\n\nIf every instruction is recorded: to the beginning of the previous line, or with -i to the previous instruction.";
    const ALIASES: &'static [&'static str] = &["reverse_next", "rn"];
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Move;
    type Args = CountArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: CountArgs) -> Result<MotionReport, Failure> {
        call.travel(|past| past.next(&args.as_steps(), Direction::Back, &|| call.is_gone()))
    }
}

impl Command for NextBack {
    const WORDS: &'static [Word] = &[
        Word::new("count", "COUNT", Form::Number, "How often"),
        INSTRUCTION,
    ];

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
