//! `frame`: selects a frame, or describes the selected one. `up` and `down` move by a number of frames.

use debuginfo::Frame as StackFrame;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word, show};
use crate::inspect::{self, FrameReport, View};
use crate::protocol::{Code, Failure};
use crate::session::MAX_FRAMES;

/// The `frame` verb.
pub struct Frame;

/// The arguments of `frame`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FrameArgs {
    /// The frame, counted from 0 for the innermost. Default: the selected one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Instead: the innermost frame of this function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

/// The selected frame.
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
    const DOC: &'static str = "Select a frame, or show the current one";
    const NEEDS: Needs = Needs::Frame;
    const DOES: Does = Does::Look;
    type Args = FrameArgs;
    type Reply = FrameReply;

    fn run(call: &Call<'_>, args: FrameArgs) -> Result<FrameReply, Failure> {
        let index = match &args.function {
            None => args.index,
            Some(name) => Some(call.look(MAX_FRAMES, |view| of_function(view, name))?),
        };
        look_at(call, |chosen, _| Ok(index.unwrap_or(chosen)))
    }
}

impl Command for Frame {
    const WORDS: &'static [Word] = &[
        Word::new("index", "N", Form::Number, "Its number; 0 is the innermost"),
        Word::new(
            "function",
            "NAME",
            Form::TextOption(None),
            "Instead: the innermost frame of this function",
        )
        .against("index"),
    ];

    fn text(reply: &FrameReply, _: &FrameArgs) -> Text {
        reply.text()
    }
}

/// Finds the innermost frame of a function.
pub(super) fn of_function(view: &View<'_>, name: &str) -> Result<usize, Failure> {
    let mut names = view.frames.iter().map(|frame| frame.function.as_deref());
    let found =
        names.position(|function| function.is_some_and(|function| expr::is_called(function, name)));
    found.ok_or_else(|| {
        let message = format!("no frame of this thread is one of {name}");
        Failure::new(Code::NoFrame, message).hint("see which there are: backtrace")
    })
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

/// Selects a frame. `choose` receives the selected frame's index and the number of frames, and returns the new index.
pub(super) fn look_at(
    call: &Call<'_>,
    choose: impl FnOnce(usize, usize) -> Result<usize, Failure>,
) -> Result<FrameReply, Failure> {
    // A wrong frame number is the user's mistake. Keep it from `look`, which would blame a missing module.
    let chosen = call.look(MAX_FRAMES, |view| {
        view.frame()?;
        Ok(match choose(view.frame, view.frames.len()) {
            Ok(index) => Ok((index, described(view, index)?)),
            Err(refused) => Err(refused),
        })
    })?;
    let (index, reply) = chosen?;
    // Another thread's frame is shown, and not selected.
    if call.other_thread().is_none() {
        call.target()?.select_frame(index)?;
    }
    Ok(reply)
}

/// Describes frame `index` as the selected one.
fn described(view: &View<'_>, index: usize) -> Result<FrameReply, Failure> {
    let frame = frame_at(view, index)?;
    let report = FrameReport::of(view.space, frame, index, true);
    Ok(FrameReply {
        source_line: match (&report.file, report.line) {
            (Some(file), Some(line)) => inspect::source_line(file, line),
            _ => None,
        },
        frame: report,
    })
}

/// Returns frame `index`.
///
/// # Errors
/// [`Code::NoFrame`]; the hint tells which there are.
pub(super) fn frame_at<'a>(view: &View<'a>, index: usize) -> Result<&'a StackFrame, Failure> {
    let frames = view.frames;
    frames.get(index).ok_or_else(|| {
        let message = format!("there is no frame {index}");
        Failure::new(Code::NoFrame, message).hint(match frames.len() {
            0 => "no frame of this thread is known".to_owned(),
            1 => "frame 0 is the only one".to_owned(),
            count => format!("frames are 0 to {}", count - 1),
        })
    })
}
