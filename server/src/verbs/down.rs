//! `down`: selects the frame that the selected one has called.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, FrameReply, Needs, Text, Verb, Word, frame};
use crate::protocol::{Code, Failure};

/// The `down` verb.
pub struct Down;

/// Arguments of `up` and `down`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DownArgs {
    /// How many frames. Default: one. A number beyond the last frame selects the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

impl Verb for Down {
    const NAME: &'static str = "down";
    const DOC: &'static str = "Select the callee's frame";
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Look;
    type Args = DownArgs;
    type Reply = FrameReply;

    fn run(call: &Call<'_>, args: DownArgs) -> Result<FrameReply, Failure> {
        frame::look_at(call, |chosen, _| match chosen {
            0 => Err(Failure::new(Code::NoFrame, "this is the innermost frame")),
            chosen => Ok(chosen.saturating_sub(args.count.unwrap_or(1))),
        })
    }
}

/// The word of `up` and `down`.
pub(super) const COUNT: Word = Word::new("count", "COUNT", Form::Number, "How many frames");

impl Command for Down {
    const WORDS: &'static [Word] = &[COUNT];

    fn text(reply: &FrameReply, _: &DownArgs) -> Text {
        reply.text()
    }
}
