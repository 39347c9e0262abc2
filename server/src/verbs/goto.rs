//! `goto`: moves to a place in time. For a program under control, this enters the past; `goto live` returns.

use recorder::live::Status;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, r#await, stepping};
use crate::protocol::Failure;
use crate::session::{LiveSession, MotionReport, Session, StateWord};

/// The `goto` verb.
pub struct Goto;

/// The arguments of `goto`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GotoArgs {
    /// An event's number, `first`, `last`, `crash`, `50%`, `1.5s`, `@note`, `output:17`, `12+300` or `live`.
    pub to: String,
}

impl Verb for Goto {
    const NAME: &'static str = "goto";
    const DOC: &'static str = "Go to a moment of the recording";
    const NEEDS: Needs = Needs::Recording;
    const DOES: Does = Does::Move;
    const TAKES: Takes = Takes::Moment;
    type Args = GotoArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: GotoArgs) -> Result<MotionReport, Failure> {
        match call.session()? {
            Session::Live(session) if args.to == "live" => now(call, &session),
            _ => call.travel(|past| {
                past.go_to_target(&args.to)?;
                past.motion()
            }),
        }
    }
}

/// Returns to the program's current state.
fn now(call: &Call<'_>, session: &LiveSession) -> Result<MotionReport, Failure> {
    session.leave_past();
    match session.live.status() {
        Status::Stopped(_) => r#await::stopped(call, session),
        Status::Running => Ok(stepping::report(session, StateWord::Running, None)),
        Status::Ended(exit) => Ok(MotionReport {
            exit: Some(exit.into()),
            ..stepping::report(session, StateWord::Ended, None)
        }),
    }
}

impl Command for Goto {
    const WORDS: &'static [Word] = &[Word::new(
        "to",
        "PLACE",
        Form::Rest,
        "An event's number, first, last, crash, 50%, 1.5s, @NOTE or output:LINE; EVENT+INSTRUCTIONS if every instruction is recorded; live: back to the program as it is now",
    )];

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
