//! The common part of the verbs that run the program: resume, wait, and report the outcome.
//!
//! A client that disconnects ends the wait. If a client is killed, its program keeps running and no thread of the
//! daemon waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use recorder::live::{Motion, Status, Stop, Tid, Waited};
use serde::{Deserialize, Serialize};

use super::{Call, Form, Word};
use crate::protocol::{Code, Failure, Notice, NoticeKind};
use crate::session::{FollowedReport, LiveSession, MotionReport, StateWord, Waits, of_recorder};

/// How long to wait after a thread has ended: it may be the first thread of a program that is ending.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// The longest wait, so that sums of times do not overflow.
const LONGEST: Duration = Duration::from_secs(100_000_000);

/// Arguments of verbs that wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeoutArgs {
    /// How long to wait for a stop, in seconds. Default: `await_default_secs` of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

/// Arguments of `next` and `step`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepArgs {
    /// How many steps. Stepping ends early at any other stop. Default: one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Step by machine instructions instead of lines.
    pub instruction: bool,
    /// How long to wait for each step, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

/// The option of verbs that wait.
pub(super) const TIMEOUT: Word = Word::new(
    "timeout_secs",
    "SECONDS",
    Form::SecondsOption,
    "How long to wait for a stop [default: await_default_secs of the configuration, 300]",
)
.named("timeout");
/// The words of `next` and `step`.
pub(super) const STEPS: &[Word] = &[
    Word::new("count", "COUNT", Form::Number, "How many steps"),
    Word::flag(
        "instruction",
        Some('i'),
        "Machine instructions instead of lines",
    ),
    TIMEOUT,
];

/// Parses a timeout from the wire.
pub(super) fn patience(call: &Call<'_>, secs: Option<f64>) -> Result<Duration, Failure> {
    match secs {
        None => Ok(call.config.await_timeout()),
        Some(secs) => Duration::try_from_secs_f64(secs)
            .map(|time| time.min(LONGEST))
            .map_err(|_| Failure::bad_request(format!("{secs} s is no time to wait for"))),
    }
}

/// The outcome of a motion.
pub(super) struct Came {
    /// The report for the client.
    pub report: MotionReport,
    /// The reported stop.
    pub stop: Option<Stop>,
    /// The session of the copy that was followed: the report is about that.
    pub turned_to: Option<Arc<LiveSession>>,
}

/// Resumes the thread of `stop` and waits for the outcome. A stop that no answer has shown yet is shown first.
pub(super) fn go(
    call: &Call<'_>,
    session: &LiveSession,
    stop: &Stop,
    stepping: Motion,
    others: bool,
    timeout: Duration,
) -> Result<Came, Failure> {
    let moved = (stepping != Motion::Continue || !others).then_some(stop.tid);
    let after = session
        .live
        .resume(stop.tid, stepping, others)
        .map_err(|error| of_recorder(&error))?;
    wait_for(call, session, after, moved, timeout)
}

/// Resumes all stopped threads, including those whose stops no answer has shown, and waits for the outcome.
pub(super) fn go_all(
    call: &Call<'_>,
    session: &LiveSession,
    stop: &Stop,
    timeout: Duration,
) -> Result<Came, Failure> {
    let after = session.live.resume_all(stop.tid);
    let after = after.map_err(|error| of_recorder(&error))?;
    wait(call, session, after, timeout)
}

/// Makes the requested number of steps, or fewer if something else stops the program.
pub(super) fn step(
    call: &Call<'_>,
    session: &LiveSession,
    args: &StepArgs,
    line: Motion,
    instruction: Motion,
) -> Result<MotionReport, Failure> {
    let timeout = patience(call, args.timeout_secs)?;
    let stepping = match args.instruction {
        true => instruction,
        false => line,
    };
    let count = match args.count {
        Some(0) => return Err(Failure::bad_request("zero steps lead nowhere")),
        count => count.unwrap_or(1),
    };
    let stop = session.stopped()?;
    let mut came = go(call, session, &stop, stepping.clone(), false, timeout)?;
    for _ in 1..count {
        let Some(at) = came.stop.filter(|at| is_step_of(at, stop.tid)) else {
            break;
        };
        came = go(call, session, &at, stepping.clone(), false, timeout)?;
    }
    Ok(came.report)
}

fn is_step_of(stop: &Stop, tid: Tid) -> bool {
    stop.tid == tid && stop.reason == recorder::live::Reason::Step
}

/// Waits for a stop with a number greater than `after`, or for the end.
pub(super) fn wait(
    call: &Call<'_>,
    session: &LiveSession,
    after: u64,
    timeout: Duration,
) -> Result<Came, Failure> {
    wait_for(call, session, after, None, timeout)
}

/// As [`wait`], and also ends when the moved thread ends.
pub(super) fn wait_for(
    call: &Call<'_>,
    session: &LiveSession,
    after: u64,
    moved: Option<Tid>,
    timeout: Duration,
) -> Result<Came, Failure> {
    let waiting = Waiting::begin(session, timeout);
    loop {
        if let Some(came) = waiting.at_fork(call)? {
            return Ok(came);
        }
        let woken = session.live.woken();
        if let Some(came) = wait_until_woken(call, &waiting, after, moved, woken)? {
            return Ok(came);
        }
    }
}

/// Waits for a stop of this program alone, whatever copy of it is followed.
pub(super) fn wait_here(
    call: &Call<'_>,
    session: &LiveSession,
    after: u64,
    timeout: Duration,
) -> Result<Came, Failure> {
    let waiting = Waiting {
        may_turn: false,
        ..Waiting::begin(session, timeout)
    };
    loop {
        let woken = session.live.woken();
        if let Some(came) = wait_until_woken(call, &waiting, after, None, woken)? {
            return Ok(came);
        }
    }
}

/// A wait for a stop of a program, or of the copy of it that is followed meanwhile.
pub(super) struct Waiting<'a> {
    session: &'a LiveSession,
    until: Instant,
    /// It turns to a copy that is followed.
    may_turn: bool,
    _counted: Waits<'a>,
}

impl<'a> Waiting<'a> {
    pub fn begin(session: &'a LiveSession, timeout: Duration) -> Waiting<'a> {
        Waiting {
            session,
            until: Instant::now() + timeout,
            may_turn: session.follow.is_open(),
            _counted: session.follow.wait_begins(),
        }
    }

    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    fn must_turn(&self) -> bool {
        self.may_turn && self.session.follow.has_begun()
    }

    /// If a copy of the program is followed, goes on to wait for that. Returns `None` if none is.
    pub fn at_fork(&self, call: &Call<'_>) -> Result<Option<Came>, Failure> {
        if !self.must_turn() {
            return Ok(None);
        }
        let Some((copy, after)) = self.session.follow.followed(self.until, &call.gone) else {
            if let Some(why) = self.session.follow.take_failure() {
                (call.notify)(Notice::new(NoticeKind::Warning, why));
            }
            return Ok(None);
        };
        let mut came = wait(call, &copy, after, self.left())?;
        let followed = FollowedReport {
            program: copy.program.clone(),
            pid: copy.live.pid(),
        };
        came.report.followed.get_or_insert(followed);
        came.turned_to.get_or_insert(copy);
        Ok(Some(came))
    }
}

/// As [`wait`], and also ends when the moved thread ends. Returns `None` if the count of wake-ups has exceeded `woken`, or
/// if the wait must turn to a copy of the program.
pub(super) fn wait_until_woken(
    call: &Call<'_>,
    waiting: &Waiting<'_>,
    after: u64,
    moved: Option<Tid>,
    woken: u64,
) -> Result<Option<Came>, Failure> {
    let (session, timeout) = (waiting.session, waiting.left());
    let live = session.live.clone();
    let _waiting = call.gone.waiting(move || live.wake());
    let gone = || Failure::new(Code::Failed, "the client has gone");
    if call.is_gone() {
        return Err(gone());
    }
    let waited = match session.live.peek(after, moved, Some(woken), timeout) {
        Waited::ThreadEnded(tid) => match session.live.peek(after, None, None, LAST_WORDS) {
            Waited::TimedOut => Waited::ThreadEnded(tid),
            other => other,
        },
        other => other,
    };
    Ok(Some(match waited {
        // Without a client, the stop must not be marked as shown, or its thread would be resumed unseen.
        Waited::Stopped(_) | Waited::TimedOut | Waited::Woken if call.is_gone() => {
            return Err(gone());
        }
        Waited::Woken => return Ok(None),
        // Its stops meanwhile are not shown if it is let go.
        Waited::Stopped(_) | Waited::Ended(_) | Waited::ThreadEnded(_)
            if waiting.must_turn() && !waiting.left().is_zero() =>
        {
            return Ok(None);
        }
        Waited::TimedOut => Came::without_stop(MotionReport {
            timed_out: true,
            ..report(session, StateWord::Running, None)
        }),
        Waited::Stopped(stop) => show(session, stop),
        Waited::Ended(exit) => Came::without_stop(MotionReport {
            exit: Some(exit.into()),
            ..report(session, StateWord::Ended, None)
        }),
        Waited::ThreadEnded(tid) => {
            let status = match session.live.status() {
                Status::Running => StateWord::Running,
                Status::Stopped(_) => StateWord::Stopped,
                Status::Ended(_) => StateWord::Ended,
            };
            Came::without_stop(MotionReport {
                thread_ended: Some(tid),
                ..report(session, status, None)
            })
        }
    }))
}

/// Shows a stop and selects its thread.
fn show(session: &LiveSession, stop: Stop) -> Came {
    session.select_thread(stop.tid);
    session.live.mark_shown(stop.number);
    let report = MotionReport {
        more_stops: session.live.unshown().len(),
        ..report(session, StateWord::Stopped, Some(&stop))
    };
    Came::at(report, stop)
}

impl Came {
    /// The program is stopped at `stop`.
    pub fn at(report: MotionReport, stop: Stop) -> Came {
        Came {
            report,
            stop: Some(stop),
            turned_to: None,
        }
    }

    fn without_stop(report: MotionReport) -> Came {
        Came {
            report,
            stop: None,
            turned_to: None,
        }
    }
}

/// Reports the current state, without waiting.
pub(super) fn report(
    session: &LiveSession,
    status: StateWord,
    stop: Option<&Stop>,
) -> MotionReport {
    MotionReport {
        session: session.id,
        status,
        stop: stop.map(|stop| session.report_stop(stop)),
        exit: None,
        thread_ended: None,
        more_stops: 0,
        already: false,
        returned: None,
        timed_out: false,
        not_recorded: Vec::new(),
        followed: None,
        recording: session.live.recording().to_owned(),
    }
}
