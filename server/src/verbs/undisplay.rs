//! `undisplay`: removes expressions that are displayed at every stop.

use serde::{Deserialize, Serialize};

use super::display::DisplaysReply;
use super::{Call, Command, Does, Form, Needs, Text, Verb, Word};
use crate::protocol::Failure;
use crate::session::{DisplayReport, Session, of_recorder};

/// The `undisplay` verb.
pub struct Undisplay;

/// The arguments of `undisplay`: numbers, or all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UndisplayArgs {
    /// The numbers of the expressions.
    pub ids: Vec<u32>,
    /// Remove all of them.
    pub all: bool,
}

impl Verb for Undisplay {
    const NAME: &'static str = "undisplay";
    const DOC: &'static str = "Remove a display: undisplay 2";
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    type Args = UndisplayArgs;
    type Reply = DisplaysReply;

    fn run(call: &Call<'_>, args: UndisplayArgs) -> Result<DisplaysReply, Failure> {
        let target = call.target()?;
        let all = match &target {
            Session::Recorded(past) if past.is_of_a_session() => {
                return Err(past.needs_the_program(Self::NAME));
            }
            Session::Recorded(past) => past.displays().all(),
            Session::Live(session) => {
                session.must_run()?;
                session.live.displays()
            }
        };
        let ids = match (args.all, args.ids) {
            (true, _) => all.iter().map(|display| display.id).collect(),
            (false, ids) if ids.is_empty() => {
                return Err(Failure::bad_request("name the numbers, or --all"));
            }
            (false, ids) => ids,
        };
        let removed = match &target {
            Session::Recorded(past) => past.displays().remove(&ids).map_err(Into::into),
            Session::Live(session) => session.live.undisplay(&ids),
        };
        let removed = removed.map_err(|error| of_recorder(&error))?;
        Ok(DisplaysReply {
            displays: removed.iter().map(DisplayReport::without_value).collect(),
        })
    }
}

impl Command for Undisplay {
    const WORDS: &'static [Word] = &[
        Word::new("ids", "N", Form::Numbers, "Their numbers").optional(),
        Word::flag("all", None, "All of them").against("ids"),
    ];

    fn text(reply: &DisplaysReply, _: &UndisplayArgs) -> Text {
        let line =
            |gone: &DisplayReport| format!("Display {} removed: {}", gone.id, gone.expression);
        Text::lines(reply.displays.iter().map(line))
    }
}
