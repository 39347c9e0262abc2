//! `step_back`: moves to the previous event of any thread.

use replay::moves::Direction;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word};
use crate::protocol::Failure;
use crate::session::MotionReport;

/// The `step_back` verb.
pub struct StepBack;

/// Arguments: the number of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CountArgs {
    /// How many steps. Default: one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

impl Verb for StepBack {
    const NAME: &'static str = "step_back";
    const DOC: &'static str = "Go to the event before";
    const ALIASES: &'static [&'static str] = &["reverse_step", "rs"];
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Move;
    type Args = CountArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: CountArgs) -> Result<MotionReport, Failure> {
        call.travel(|past| past.step(args.count, Direction::Back))
    }
}

impl Command for StepBack {
    const WORDS: &'static [Word] = &[Word::new("count", "COUNT", Form::Number, "How many events")];

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
