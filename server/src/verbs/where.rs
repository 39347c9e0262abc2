//! `where`: the selected thread, the source lines around its position and its variables: a first overview.

use serde::{Deserialize, Serialize};

use super::display::values;
use super::{Call, Command, Does, Form, Needs, Text, Verb, Word, locals, show};
use crate::inspect::{
    self, FrameReport, FrameVariables, Manner, SourceReport, VariableReport, View,
};
use crate::protocol::Failure;
use crate::session::{Session, StopReport};

/// The `where` verb.
pub struct Where;

/// The arguments of `where`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WhereArgs {
    /// How many lines before and after. Default: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// All of the values, however long they are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// The reply of `where`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WhereReply {
    /// Why and where the thread stopped.
    pub stop: StopReport,
    /// The selected frame.
    pub frame: FrameReport,
    /// The source lines around the position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceReport>,
    /// Why there are no source lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_source: Option<String>,
    /// The variables, innermost scope first.
    pub locals: Vec<VariableReport>,
    /// Why there are no variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_locals: Option<String>,
    /// The variables of the first frame of the program's own code, if the frame is the innermost and one of a library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<FrameVariables>,
}

const CONTEXT: u32 = 5;

impl Verb for Where {
    const NAME: &'static str = "where";
    const DOC: &'static str = "Show where the program stands: source and variables";
    const ALIASES: &'static [&'static str] = &["context"];
    const NEEDS: Needs = Needs::Frame;
    const DOES: Does = Does::Look;
    type Args = WhereArgs;
    type Reply = WhereReply;

    fn run(call: &Call<'_>, args: WhereArgs) -> Result<WhereReply, Failure> {
        match call.target()? {
            Session::Live(session) => {
                let moment = session.moment()?;
                let view = moment.view();
                let mut stop = session.report_stop(&moment.stop);
                session.live.mark_shown(moment.stop.number);
                // In the selected frame and with current values: something may have changed since the stop.
                stop.displays = values(&view, &session.live.displays(), args.full);
                described(&view, stop, &args)
            }
            Session::Recorded(past) => past.look(1, |looked| {
                let view = looked.view();
                view.frame()?;
                let mut stop = looked.stop()?;
                stop.displays = values(&view, &past.displays().all(), args.full);
                described(&view, stop, &args)
            }),
        }
    }
}

/// The option of verbs that show source.
pub(super) const LINES: Word = Word::new(
    "context",
    "LINES",
    Form::NumberOption,
    "Lines before and after [default: 5]",
);

impl Command for Where {
    const WORDS: &'static [Word] = &[LINES, locals::FULL];

    fn text(reply: &WhereReply, asked: &WhereArgs) -> Text {
        let mut text = show::heading(&reply.stop);
        if reply.frame.index > 0 {
            text.push(show::frame(&reply.frame));
        }
        text.push("");
        match (&reply.source, &reply.no_source) {
            (Some(source), _) => text = text.and(show::source(source)),
            (None, Some(reason)) => {
                text.push(format!("No source: {reason}"));
                if reply.frame.line.is_none() {
                    text = text.and(Text::hint("(look at the code: hindsight disassemble)"));
                }
            }
            (None, None) => {}
        }
        text.push("");
        if let Some(own) = &reply.own {
            text = text.and(show::own_variables(own, asked.full));
            text.push("");
        }
        match (&reply.no_locals, reply.locals.is_empty()) {
            (Some(reason), _) => text.push(format!("No variables: {reason}")),
            (None, true) => text.push("No variables are known here."),
            (None, false) => {
                text.push("Locals:");
                text = text.and(show::variables(&reply.locals, asked.full));
            }
        }
        if !reply.stop.displays.is_empty() {
            text.push("");
        }
        text.and(show::displays(&reply.stop.displays))
    }
}

/// Describes a view, with the reason for the stop.
fn described(view: &View<'_>, stop: StopReport, args: &WhereArgs) -> Result<WhereReply, Failure> {
    let frame = view.frame()?;
    let context = args.context.unwrap_or(CONTEXT);
    let (source, no_source) = match &frame.source {
        None => (None, Some("no line is known here".to_owned())),
        Some(place) => {
            match inspect::line_source(view.space, &place.file, place.line, context, None) {
                Ok(source) => (Some(source), None),
                Err(failure) => (None, Some(failure.message)),
            }
        }
    };
    let (locals, no_locals) = match inspect::variables(view, Manner::of_many(args.full)) {
        Ok(locals) => (locals, None),
        Err(failure) => (Vec::new(), Some(failure.message)),
    };
    Ok(WhereReply {
        stop,
        frame: FrameReport::of(view.space, frame, view.frame, true),
        source,
        no_source,
        locals,
        no_locals,
        own: inspect::own_variables(view, Manner::of_many(args.full)),
    })
}
