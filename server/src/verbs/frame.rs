//! `frame`: looks at another frame, or says which one is looked at. `up` and `down` go by steps.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word, show};
use crate::inspect::{self, FrameReport, View};
use crate::protocol::{Code, Failure};
use crate::session::MAX_FRAMES;

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
    const DOC: &'static str = "Look at another frame, or show the current one";
    const NEEDS: Needs = Needs::Frame;
    const DOES: Does = Does::Look;
    type Args = FrameArgs;
    type Reply = FrameReply;

    fn run(call: &Call<'_>, args: FrameArgs) -> Result<FrameReply, Failure> {
        look_at(call, |chosen, _| Ok(args.index.unwrap_or(chosen)))
    }
}

impl Command for Frame {
    const WORDS: &'static [Word] = &[Word::new(
        "index",
        "N",
        Form::Number,
        "Its number; 0 is the innermost",
    )];

    fn text(reply: &FrameReply, _: &FrameArgs) -> Text {
        reply.text()
    }
}

impl FrameReply {
    pub(super) fn text(&self) -> Text {
        let mut text = Text::line(show::frame(&self.frame));
        if let (Some(source), Some(line)) = (&self.source_line, self.frame.line) {
            text.pieces.push(show::code(true, line, '|', source));
        }
        text
    }
}

/// Looks at the frame that is chosen by the number of the one that is looked at and how many there are.
pub(super) fn look_at(
    call: &Call<'_>,
    choose: impl FnOnce(usize, usize) -> Result<usize, Failure>,
) -> Result<FrameReply, Failure> {
    // That there is no such frame is no mystery of the recording, which would be explained.
    let chosen = call.look(MAX_FRAMES, |view| {
        Ok(match choose(view.frame, view.frames.len()) {
            Ok(index) => Ok((index, described(view, index)?)),
            Err(refused) => Err(refused),
        })
    })?;
    let (index, reply) = chosen?;
    call.target()?.select_frame(index)?;
    Ok(reply)
}

/// Describes frame `index` as the one that is looked at.
fn described(view: &View<'_>, index: usize) -> Result<FrameReply, Failure> {
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
