//! `until`: runs until the selected frame or one further out reaches a place, or the selected frame returns. Without a place,
//! as `next`, but not back to an earlier line: out of a loop. In a recording of every instruction it does the same.

use recorder::live::Motion;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, probes, stepping};
use crate::location::Target;
use crate::protocol::Failure;
use crate::session::{MotionReport, Session};

/// The `until` verb.
pub struct Until;

/// The arguments of `until`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UntilArgs {
    /// The place. Default: a later line of the innermost frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Target>,
    /// How long to wait, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

impl Verb for Until {
    const NAME: &'static str = "until";
    const DOC: &'static str =
        "Run to a location, or to a later line, in the selected frame or an outer one";
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Move;
    const TAKES: Takes = Takes::Location;
    type Args = UntilArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: UntilArgs) -> Result<MotionReport, Failure> {
        if let Session::Recorded(past) = call.target()? {
            return past.run_until(args.at.as_ref(), false, &|| call.is_gone());
        }
        let session = call.live()?;
        let timeout = stepping::patience(call, args.timeout_secs)?;
        let stop = session.stopped()?;
        let stepping = match &args.at {
            None => Motion::Past,
            Some(at) => Motion::Until {
                place: probes::located(&session, at, false)?,
                frame: session.frame_of(&stop),
                deeper: false,
            },
        };
        let came = stepping::go(call, &session, &stop, stepping, false, timeout)?;
        Ok(came.report)
    }
}

impl Command for Until {
    const WORDS: &'static [Word] = &[
        Word::new(
            "at",
            "LOCATION",
            Form::Text,
            "function, file:line or 0xADDRESS [default: a later line]",
        )
        .optional(),
        stepping::TIMEOUT,
    ];

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
