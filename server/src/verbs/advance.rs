//! `advance`: runs until a place is reached, in whatever function, or the selected frame returns.

use recorder::live::Motion;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, probes, stepping};
use crate::location::Target;
use crate::protocol::Failure;
use crate::session::{MotionReport, Session};

/// The `advance` verb.
pub struct Advance;

/// The arguments of `advance`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdvanceArgs {
    /// The place.
    pub at: Target,
    /// How long to wait, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

impl Verb for Advance {
    const NAME: &'static str = "advance";
    const DOC: &'static str =
        "Run to a location, also in callees, or until the selected frame returns";
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Move;
    const TAKES: Takes = Takes::Location;
    type Args = AdvanceArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: AdvanceArgs) -> Result<MotionReport, Failure> {
        if let Session::Recorded(past) = call.target()? {
            return past.run_until(Some(&args.at), true, &|| call.is_gone());
        }
        let session = call.live()?;
        let timeout = stepping::patience(call, args.timeout_secs)?;
        let stop = session.stopped()?;
        let motion = Motion::Until {
            place: probes::located(&session, &args.at, false)?,
            frame: session.frame_of(&stop),
            deeper: true,
        };
        let came = stepping::go(call, &session, &stop, motion, false, timeout)?;
        Ok(came.report)
    }
}

impl Command for Advance {
    const WORDS: &'static [Word] = &[
        Word::new(
            "at",
            "LOCATION",
            Form::Text,
            "function, file:line or 0xADDRESS",
        ),
        stepping::TIMEOUT,
    ];

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
