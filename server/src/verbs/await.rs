//! `await`: waits for a stop. Returns at once if there is one already, preferring stops that no answer has shown yet,
//! unless `after` asks for a later one.

use std::time::Duration;

use recorder::live::Status;
use serde::{Deserialize, Serialize};

use super::stepping::{self, Came, Waiting};
use super::{Call, Command, Does, Form, Needs, Text, Verb, Word};
use crate::protocol::Failure;
use crate::session::{LiveSession, MotionReport, StateWord};

/// The `await` verb.
pub struct Await;

/// The arguments of `await`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AwaitArgs {
    /// Only a stop with a greater number counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// How long to wait, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

impl Verb for Await {
    const NAME: &'static str = "await";
    const DOC: &'static str =
        "Wait for the next stop; return at once if the program has stopped already";
    const NEEDS: Needs = Needs::Program;
    const DOES: Does = Does::Look;
    type Args = AwaitArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: AwaitArgs) -> Result<MotionReport, Failure> {
        let session = call.live()?;
        let timeout = stepping::patience(call, args.timeout_secs)?;
        let came = match args.after {
            Some(after) => stepping::wait(call, &session, after, timeout)?,
            None => newest(call, &session, timeout)?,
        };
        Ok(came.report)
    }
}

impl Command for Await {
    const WORDS: &'static [Word] = &[
        Word::new(
            "after",
            "STOP",
            Form::NumberOption,
            "Only a stop with a greater number counts",
        ),
        stepping::TIMEOUT,
    ];

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}

/// Returns the stop of a stopped program, preferring the oldest that no answer has shown yet.
pub(super) fn stopped(call: &Call<'_>, session: &LiveSession) -> Result<MotionReport, Failure> {
    Ok(newest(call, session, Duration::ZERO)?.report)
}

/// Returns the oldest stop that no answer has shown yet, else the last one shown if its thread still exists, else
/// waits for one. A thread that `eval` uses for a call is back at its stop when the call has ended.
fn newest(call: &Call<'_>, session: &LiveSession, timeout: Duration) -> Result<Came, Failure> {
    let waiting = Waiting::begin(session, timeout);
    loop {
        if let Some(came) = waiting.at_fork(call)? {
            return Ok(came);
        }
        let woken = session.live.woken();
        if let Some(first) = session.live.unshown().first() {
            return stepping::wait(call, session, first - 1, timeout);
        }
        if let Status::Stopped(stop) = session.live.status() {
            let report = stepping::report(session, StateWord::Stopped, Some(&stop));
            return Ok(Came::at(report, stop));
        }
        let after = session.live.newest_stop();
        if let Some(came) = stepping::wait_until_woken(call, &waiting, after, None, woken)? {
            return Ok(came);
        }
    }
}
