//! `up`: looks at the caller of the frame that is looked at.

use super::{Call, DownArgs, FrameReply, Verb, frame};
use crate::protocol::{Code, Failure};

/// The verb.
pub struct Up;

impl Verb for Up {
    const NAME: &'static str = "up";
    type Args = DownArgs;
    type Reply = FrameReply;

    fn run(call: &Call<'_>, args: DownArgs) -> Result<FrameReply, Failure> {
        let session = call.session()?;
        let moment = session.moment()?;
        let last = moment.backtrace.frames.len().saturating_sub(1);
        if moment.frame == last {
            return Err(Failure::new(Code::NoFrame, "this is the outermost frame"));
        }
        let index = moment
            .frame
            .saturating_add(args.count.unwrap_or(1))
            .min(last);
        frame::look_at(&session, &moment, index)
    }
}
