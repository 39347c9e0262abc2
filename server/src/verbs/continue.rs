//! `continue`: resumes all stopped threads, or only the selected one, until the next stop. A thread whose stop no
//! answer has shown yet is not resumed; that stop is the answer. In a recording, moves to the next stop.

use recorder::live::{Motion, Reason, Stop};
use replay::moves::Direction;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, Word, stepping};
use crate::protocol::Failure;
use crate::session::{LiveSession, MotionReport, Session, of_recorder};

/// The `continue` verb.
pub struct Continue;

/// The arguments of `continue`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContinueArgs {
    /// Stop only at this arrival at the breakpoint where the thread stands, of any thread, counted from 1, or at another stop. In a
    /// recording: how often to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Resume only the selected thread; the others stay stopped.
    pub thread_only: bool,
    /// Also resume the threads whose stops no answer has shown.
    pub all: bool,
    /// Return at once instead of waiting for a stop.
    pub no_wait: bool,
    /// How long to wait, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

impl Verb for Continue {
    const NAME: &'static str = "continue";
    const DOC: &'static str = "Continue until something stops the program; in a recording, go to the next stop\n\nA thread that has stopped, but was not shown yet, does not go on: its stop is shown. gdb's run is start here, and restart once there is a session.";
    const ALIASES: &'static [&'static str] = &["c"];
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Move;
    type Args = ContinueArgs;
    type Reply = MotionReport;

    fn run(call: &Call<'_>, args: ContinueArgs) -> Result<MotionReport, Failure> {
        let session = match call.target()? {
            Session::Live(session) => session,
            Session::Recorded(past) => {
                let mut came = past.run(Direction::Forward, &|| call.is_gone())?;
                for _ in 1..args.count.unwrap_or(1) {
                    came = past.run(Direction::Forward, &|| call.is_gone())?;
                }
                return Ok(came);
            }
        };
        let timeout = match args.no_wait {
            true => std::time::Duration::ZERO,
            false => stepping::patience(call, args.timeout_secs)?,
        };
        let stop = session.stopped()?;
        if let Some(count) = args.count.filter(|count| *count > 1) {
            pass(&session, &stop, count - 1, !args.thread_only)?;
        }
        let came = match (args.all, args.thread_only) {
            (true, true) => {
                let message = "resume either all threads or the current one alone";
                return Err(Failure::bad_request(message));
            }
            (true, false) => stepping::go_all(call, &session, &stop, timeout)?,
            (false, alone) => {
                stepping::go(call, &session, &stop, Motion::Continue, !alone, timeout)?
            }
        };
        Ok(MotionReport {
            timed_out: came.report.timed_out && !args.no_wait,
            ..came.report
        })
    }
}

/// Has the breakpoint where the thread stands pass its next hits. If the `others` go on too, the first of these are those that they
/// have made already, at stops that no answer has shown.
fn pass(session: &LiveSession, stop: &Stop, count: u64, others: bool) -> Result<(), Failure> {
    let Reason::Breakpoint { probe, .. } = stop.reason else {
        let what = "the thread is not at a breakpoint, so there are no hits to count";
        return Err(Failure::bad_request(what).hint("continue without a number"));
    };
    let passed = match others {
        true => session.live.pass_arrivals(probe, count),
        false => session.live.pass_probe(probe, count),
    };
    passed.map(drop).map_err(|error| of_recorder(&error))
}

impl Command for Continue {
    const WORDS: &'static [Word] = &[
        Word::new(
            "count",
            "N",
            Form::NumberOperand,
            "Stop at the Nth arrival at this breakpoint only",
        )
        .optional(),
        Word::flag(
            "all",
            None,
            "Also the threads whose stops were not shown yet",
        ),
        Word::flag(
            "thread_only",
            None,
            "Only the current thread; the others stay stopped",
        )
        .named("thread"),
        Word::flag("no_wait", None, "Return at once").named("no-wait"),
        stepping::TIMEOUT,
    ];

    fn text(reply: &MotionReport, _: &Self::Args) -> Text {
        Text::stepping(reply)
    }
}
