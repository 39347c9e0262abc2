//! What the verbs that make the program run have in common: let go, wait, say how it came out.
//!
//! The wait is cut into slices, between which is looked whether the client is still there: one that was killed leaves the
//! program running, and no thread of ours waiting for it.

use std::time::{Duration, Instant};

use recorder::live::{Motion, Status, Stop, Tid, Waited};
use serde::{Deserialize, Serialize};

use super::Call;
use crate::protocol::{Code, Failure};
use crate::session::{MotionReport, Session, StateWord, of_recorder};

/// How long a client that went away may go unnoticed.
const SLICE: Duration = Duration::from_millis(250);
/// A thread that ends may be the first one to go of a program that ends.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// No wait is longer: sums of times must not overflow.
const LONGEST: Duration = Duration::from_secs(100_000_000);

/// Arguments of verbs that wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeoutArgs {
    /// How long to wait for a stop, in seconds; left out: `await_default_secs` of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

/// Arguments of `next` and `step`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepArgs {
    /// How many steps; ends early at anything else that stops the program. Left out: one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Machine instructions instead of lines.
    pub instruction: bool,
    /// How long to wait for each, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

/// Reads a time that came over the wire.
pub(super) fn patience(call: &Call<'_>, secs: Option<f64>) -> Result<Duration, Failure> {
    match secs {
        None => Ok(call.config.await_timeout()),
        Some(secs) => Duration::try_from_secs_f64(secs)
            .map(|time| time.min(LONGEST))
            .map_err(|_| Failure::bad_request(format!("{secs} s is no time to wait for"))),
    }
}

/// Lets the thread of `stop` go on and waits for what comes of it.
pub(super) fn go(
    call: &Call<'_>,
    session: &Session,
    stop: &Stop,
    motion: Motion,
    others: bool,
    timeout: Duration,
) -> Result<MotionReport, Failure> {
    let moved = (motion != Motion::Continue || !others).then_some(stop.tid);
    let after = session
        .live
        .resume(stop.tid, motion, others)
        .map_err(|error| of_recorder(&error))?;
    wait_for(call, session, after, moved, timeout)
}

/// Steps as often as was asked for, as long as nothing else stops the program.
pub(super) fn step(
    call: &Call<'_>,
    args: &StepArgs,
    line: Motion,
    instruction: Motion,
) -> Result<MotionReport, Failure> {
    let session = call.session()?;
    let timeout = patience(call, args.timeout_secs)?;
    let motion = match args.instruction {
        true => instruction,
        false => line,
    };
    let count = match args.count {
        Some(0) => return Err(Failure::bad_request("zero steps lead nowhere")),
        count => count.unwrap_or(1),
    };
    let mut stop = session.stopped()?;
    let mut report = go(call, &session, &stop, motion.clone(), false, timeout)?;
    for _ in 1..count {
        match session.live.status() {
            Status::Stopped(newest) if is_step_of(&newest, stop.tid) && !report.timed_out => {
                stop = newest;
            }
            _ => break,
        }
        report = go(call, &session, &stop, motion.clone(), false, timeout)?;
    }
    Ok(report)
}

fn is_step_of(stop: &Stop, tid: Tid) -> bool {
    stop.tid == tid && stop.reason == recorder::live::Reason::Step
}

/// Waits for a stop that is numbered after `after`, or the end.
pub(super) fn wait(
    call: &Call<'_>,
    session: &Session,
    after: u64,
    timeout: Duration,
) -> Result<MotionReport, Failure> {
    wait_for(call, session, after, None, timeout)
}

/// As [`wait`], and also for the end of the thread that was moved.
fn wait_for(
    call: &Call<'_>,
    session: &Session,
    after: u64,
    moved: Option<Tid>,
    timeout: Duration,
) -> Result<MotionReport, Failure> {
    let until = Instant::now() + timeout;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let waited = match moved {
            Some(tid) => session.live.wait_for_thread(after, tid, left.min(SLICE)),
            None => session.live.wait(after, left.min(SLICE)),
        };
        let waited = match waited {
            Waited::ThreadEnded(tid) => match session.live.wait(after, LAST_WORDS) {
                Waited::TimedOut => Waited::ThreadEnded(tid),
                other => other,
            },
            other => other,
        };
        match waited {
            Waited::Stopped(stop) => {
                session.select_thread(stop.tid);
                return Ok(report(session, StateWord::Stopped, Some(&stop)));
            }
            Waited::Ended(exit) => {
                let ended = report(session, StateWord::Ended, None);
                return Ok(MotionReport {
                    exit: Some(exit.into()),
                    ..ended
                });
            }
            Waited::ThreadEnded(tid) => {
                let status = match session.live.status() {
                    Status::Running => StateWord::Running,
                    Status::Stopped(_) => StateWord::Stopped,
                    Status::Ended(_) => StateWord::Ended,
                };
                return Ok(MotionReport {
                    thread_ended: Some(tid),
                    ..report(session, status, None)
                });
            }
            Waited::TimedOut if call.is_gone() => {
                return Err(Failure::new(Code::Failed, "the client has gone"));
            }
            Waited::TimedOut if left.is_zero() => {
                let running = report(session, StateWord::Running, None);
                return Ok(MotionReport {
                    timed_out: true,
                    ..running
                });
            }
            Waited::TimedOut => {}
        }
    }
}

/// Says how things are, without waiting.
pub(super) fn report(session: &Session, status: StateWord, stop: Option<&Stop>) -> MotionReport {
    MotionReport {
        session: session.id,
        status,
        stop: stop.map(|stop| session.report_stop(stop)),
        exit: None,
        thread_ended: None,
        already: false,
        returned: None,
        timed_out: false,
        recording: session.live.recording().to_owned(),
    }
}
