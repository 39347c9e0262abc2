//! `frame`: looks at another frame, or says which one is looked at. `up` and `down` go by steps.

use serde::{Deserialize, Serialize};

use super::{Call, Verb};
use crate::inspect::{self, FrameReport, View};
use crate::protocol::{Code, Failure};
use crate::session::{Moment, Session};

/// The verb.
pub struct Frame;

/// Its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FrameArgs {
    /// From 0, the innermost; left out: stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
}

/// The frame that is looked at now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameReply {
    /// The frame.
    pub frame: FrameReport,
    /// The text of its line, if the file can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_line: Option<String>,
}

impl Verb for Frame {
    const NAME: &'static str = "frame";
    type Args = FrameArgs;
    type Reply = FrameReply;

    fn run(call: &Call<'_>, args: FrameArgs) -> Result<FrameReply, Failure> {
        let session = call.session()?;
        let moment = session.moment()?;
        let index = args.index.unwrap_or(moment.frame);
        look_at(&session, &moment, index)
    }
}

/// Looks at frame `index`.
pub(super) fn look_at(
    session: &Session,
    moment: &Moment,
    index: usize,
) -> Result<FrameReply, Failure> {
    let reply = described(&moment.view(), index)?;
    session.select_frame(moment.stop.tid, moment.stop.number, index);
    Ok(reply)
}

/// Describes frame `index` as the one that is looked at.
pub(crate) fn described(view: &View<'_>, index: usize) -> Result<FrameReply, Failure> {
    let Some(frame) = view.frames.get(index) else {
        let message = format!("there is no frame {index}");
        return Err(
            Failure::new(Code::NoFrame, message).hint(match view.frames.len() {
                0 => "no frame of this thread is known".to_owned(),
                1 => "frame 0 is the only one".to_owned(),
                count => format!("frames are 0 to {}", count - 1),
            }),
        );
    };
    let report = FrameReport::of(view.space, frame, index, true);
    Ok(FrameReply {
        source_line: match (&report.file, report.line) {
            (Some(file), Some(line)) => inspect::source_line(file, line),
            _ => None,
        },
        frame: report,
    })
}
