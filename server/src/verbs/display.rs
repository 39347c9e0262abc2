//! `display`: an expression whose value is shown, and recorded, at every stop; without one, all that are, with their values.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, show};
use crate::inspect::{self, ValueFormat, View};
use crate::protocol::{Code, Failure};
use crate::session::{DisplayReport, LiveSession, of_recorder};

/// The verb.
pub struct Display;

/// Its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DisplayArgs {
    /// The expression; left out: none is added, and all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
}

/// What is displayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisplaysReply {
    /// The one that was added, or all, by number.
    pub displays: Vec<DisplayReport>,
}

impl Verb for Display {
    const NAME: &'static str = "display";
    const DOC: &'static str = "Show and record the value of an expression at every stop; without one, list what is displayed";
    const NEEDS: Needs = Needs::Program;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Expression;
    type Args = DisplayArgs;
    type Reply = DisplaysReply;

    fn run(call: &Call<'_>, args: DisplayArgs) -> Result<DisplaysReply, Failure> {
        let session = call.live()?;
        let displays = match args.expression {
            None => session.live.displays(),
            Some(expression) => {
                session.must_run()?;
                vec![add(&session, &expression)?]
            }
        };
        if displays.is_empty() {
            return Ok(DisplaysReply {
                displays: Vec::new(),
            });
        }
        let shown = session.look(|view| Ok(values(view, &displays)));
        let displays = match shown {
            Ok(shown) => shown,
            // What was displayed is still told when there is nothing to look at any more.
            Err(failure) if failure.code == Code::NotRunning => {
                displays.iter().map(DisplayReport::without_value).collect()
            }
            Err(failure) => return Err(failure),
        };
        Ok(DisplaysReply { displays })
    }
}

impl Command for Display {
    const WORDS: &'static [Word] = &[Word::new(
        "expression",
        "EXPRESSION",
        Form::Operand,
        "The expression, as for print; of the innermost frame of the thread that stops",
    )
    .optional()];

    fn text(reply: &DisplaysReply, _: &DisplayArgs) -> Text {
        match reply.displays.is_empty() {
            true => Text::line("Nothing is displayed."),
            false => show::displays(&reply.displays),
        }
    }
}

/// Displays an expression from now on.
pub(super) fn add(
    session: &LiveSession,
    expression: &str,
) -> Result<recorder::live::Display, Failure> {
    let parsed = inspect::displayable(expression.trim())?;
    let added = session.live.display(parsed);
    added.map_err(|error| of_recorder(&error))
}

/// Returns what is displayed with the values where somebody looks.
pub(super) fn values(view: &View<'_>, displays: &[recorder::live::Display]) -> Vec<DisplayReport> {
    let shown = displays.iter().map(|display| {
        let value = inspect::evaluate(view, &display.expression, ValueFormat::Natural, None);
        DisplayReport {
            id: display.id,
            expression: display.expression.clone(),
            value: Some(match value {
                Ok(value) => value.shown.text(),
                Err(failure) => format!("<{}>", failure.message),
            }),
        }
    });
    shown.collect()
}
