//! `up`: selects the caller of the selected frame.

use super::{Call, Command, Does, DownArgs, FrameReply, Needs, Text, Verb, Word, down, frame};
use crate::protocol::{Code, Failure};

/// The `up` verb.
pub struct Up;

impl Verb for Up {
    const NAME: &'static str = "up";
    const DOC: &'static str = "Select the caller's frame";
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Look;
    type Args = DownArgs;
    type Reply = FrameReply;

    fn run(call: &Call<'_>, args: DownArgs) -> Result<FrameReply, Failure> {
        frame::look_at(call, |chosen, count| {
            let last = count.saturating_sub(1);
            match chosen < last {
                true => Ok(chosen.saturating_add(args.count.unwrap_or(1)).min(last)),
                false => Err(Failure::new(Code::NoFrame, "this is the outermost frame")),
            }
        })
    }
}

impl Command for Up {
    const WORDS: &'static [Word] = &[down::COUNT];

    fn text(reply: &FrameReply, _: &DownArgs) -> Text {
        reply.text()
    }
}
