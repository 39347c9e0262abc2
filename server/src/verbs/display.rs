//! `display`: shows and records the value of an expression at every stop. Without an expression, lists all displayed
//! ones with their values.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, locals, show};
use crate::inspect::{self, DisplayedAs, Manner, View};
use crate::past::frames_for;
use crate::protocol::{Code, Failure};
use crate::session::{DisplayReport, LiveSession, Session, of_recorder};

/// The `display` verb.
pub struct Display;

/// The arguments of `display`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DisplayArgs {
    /// The expression to add. Default: add none and list all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// All of the values, however long they are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// Displayed expressions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisplaysReply {
    /// The added expression, or all, by number.
    pub displays: Vec<DisplayReport>,
}

impl Verb for Display {
    const NAME: &'static str = "display";
    const DOC: &'static str = "Show and record an expression at every stop; without one, list the displays\n\n  display n        its value; in a recording after every move\n  display /x n     in hexadecimal; display/x n at the prompt\n  display /i $pc   the instruction there\n  display /4xw &a  memory, as x/4xw &a shows it";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Expression;
    type Args = DisplayArgs;
    type Reply = DisplaysReply;

    fn run(call: &Call<'_>, args: DisplayArgs) -> Result<DisplaysReply, Failure> {
        let target = call.target()?;
        let displays = match (args.expression, call.session()?) {
            (Some(expression), _) if let Session::Recorded(past) = &target => {
                vec![past.add_display(&expression)?]
            }
            (Some(expression), _) => {
                let session = call.live()?;
                session.must_run()?;
                vec![add(&session, &expression)?]
            }
            (None, Session::Live(session)) => session.live.displays(),
            (None, Session::Recorded(past)) => past.displays().all(),
        };
        let displays = match target {
            _ if displays.is_empty() => Vec::new(),
            // Still list the expressions when the program has ended.
            Session::Live(session) if session.has_ended() => {
                displays.iter().map(DisplayReport::without_value).collect()
            }
            _ => {
                let frames = displays
                    .iter()
                    .map(|display| frames_for(&display.expression));
                let frames = frames.max().unwrap_or(1);
                call.look(frames, |view| Ok(values(view, &displays, args.full)))?
            }
        };
        Ok(DisplaysReply { displays })
    }
}

impl Command for Display {
    const WORDS: &'static [Word] = &[
        locals::FULL,
        Word::new(
            "expression",
            "EXPRESSION",
            Form::Operand,
            "The expression, as for print; of the innermost frame of the thread that stops",
        )
        .optional(),
    ];

    fn text(reply: &DisplaysReply, _: &DisplayArgs) -> Text {
        match reply.displays.is_empty() {
            true => Text::line("Nothing is displayed."),
            false => show::displays(&reply.displays),
        }
    }
}

pub(super) fn add(
    session: &LiveSession,
    expression: &str,
) -> Result<recorder::live::Display, Failure> {
    let parsed = inspect::displayable(expression.trim())?;
    let added = session.live.display(parsed);
    added.map_err(|error| of_recorder(&error))
}

/// Returns the displayed expressions with their values at the current position.
pub(crate) fn values(
    view: &View<'_>,
    displays: &[recorder::live::Display],
    is_full: bool,
) -> Vec<DisplayReport> {
    let shown = displays.iter().map(|display| DisplayReport {
        id: display.id,
        expression: display.expression.clone(),
        value: Some(match value(view, &display.expression, is_full) {
            Ok(value) => value,
            Err(failure) => format!("<{}>", failure.message),
        }),
    });
    shown.collect()
}

fn value(view: &View<'_>, text: &str, is_full: bool) -> Result<String, Failure> {
    match inspect::display_parts(text)? {
        (DisplayedAs::Value(format), expression) => {
            let manner = Manner::of_one(is_full).in_format(format);
            let value = inspect::evaluate(view, expression, manner, None)?;
            Ok(value.shown.text())
        }
        (DisplayedAs::Memory(_) | DisplayedAs::Instructions(_), _) => {
            let what = inspect::displayable(text)?;
            let value = what.value(&inspect::context(view, None));
            value.map_err(|why| Failure::new(Code::EvalFailed, why))
        }
    }
}
