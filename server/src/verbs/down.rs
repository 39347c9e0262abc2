//! `down`: looks at the frame that the one looked at has called.

use serde::{Deserialize, Serialize};

use super::{Call, FrameReply, Verb, frame};
use crate::protocol::{Code, Failure};

/// The verb.
pub struct Down;

/// Arguments of `up` and `down`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DownArgs {
    /// How many frames; left out: one. More than there are goes to the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

impl Verb for Down {
    const NAME: &'static str = "down";
    type Args = DownArgs;
    type Reply = FrameReply;

    fn run(call: &Call<'_>, args: DownArgs) -> Result<FrameReply, Failure> {
        let session = call.session()?;
        let moment = session.moment()?;
        if moment.frame == 0 {
            return Err(Failure::new(Code::NoFrame, "this is the innermost frame"));
        }
        let index = moment.frame.saturating_sub(args.count.unwrap_or(1));
        frame::look_at(&session, &moment, index)
    }
}
