//! `step_back`: moves to the previous event of any thread.

use replay::moves::Direction;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, StepArgs, Text, Verb, Word};
use crate::protocol::Failure;
use crate::session::MotionReport;

/// The `step_back` verb.
pub struct StepBack;

/// The option to go by instructions.
pub(super) const INSTRUCTION: Word = Word::flag(
    "instruction",
    Some('i'),
    "Machine instructions, if every instruction is recorded",
);

/// Arguments: the number of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CountArgs {
    /// How many steps. Default: one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Step by machine instructions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub instruction: bool,
}

impl CountArgs {
    /// The same as arguments of the verbs that move forwards.
    pub(super) fn as_steps(&self) -> StepArgs {
        StepArgs {
            count: self.count,
            instruction: self.instruction,
            timeout_secs: None,
        }
    }
}

impl Verb for StepBack {
    const NAME: &'static str = "step_back";
    const DOC: &'static str = "Go to the previous event\n\nIf every instruction is recorded: to the beginning of the previous line, or with -i to the previous instruction.";
    const ALIASES: &'static [&'static str] = &["reverse_step", "rs"];
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Move;
    type Args = CountArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: CountArgs) -> Result<MotionReport, Failure> {
        call.travel(|past| past.step(&args.as_steps(), Direction::Back, &|| call.is_gone()))
    }
}

impl Command for StepBack {
    const WORDS: &'static [Word] = &[
        Word::new("count", "COUNT", Form::Number, "How many events"),
        INSTRUCTION,
    ];

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
