//! `full`: records every instruction of the stopped thread from here on. The past of the session is then exact: each of these
//! instructions is a moment, and everything is known there.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use recorder::Ending;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Text, Verb, WaitsFor, Word, stepping};
use crate::protocol::{Code, Failure, Notice, NoticeKind};
use crate::quantity::{count, grouped};
use crate::session::{LiveSession, MotionReport, RecordedSteps, StateWord, of_recorder};

/// The `full` verb.
pub struct Full;

/// How often a client that waits is told how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(500);

/// The arguments of `full`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullArgs {
    /// How many instructions; `on`: up to the next stop; `off`: no more.
    pub what: String,
    /// How long to wait for a stop, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<f64>,
}

/// The reply of `full`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FullReply {
    /// Where the program is now.
    #[serde(flatten)]
    pub motion: MotionReport,
    /// What was recorded; `None` if recording goes on, something else was shown instead, or the program ended before its next
    /// instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<StepsReport>,
    /// The past is that of the whole session again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_whole: bool,
}

/// Instructions that were recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepsReport {
    /// Their recording.
    #[serde(with = "store::os_path")]
    pub recording: PathBuf,
    /// How many.
    pub instructions: u64,
    /// Their last event, in their recording, which is the past of the session now.
    pub last_seq: u64,
    /// Why it ended, if not because there were as many as were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// What it lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

impl StepsReport {
    fn of(recorded: RecordedSteps, wanted: Option<u64>) -> StepsReport {
        let is_enough = wanted.is_some_and(|wanted| recorded.instructions >= wanted);
        let ended = match recorded.ending {
            Ending::GoesOn(why) => why,
            Ending::Exit(code) => format!("the program exits with code {code}"),
            Ending::Signal(signal) => format!("signal {signal} ends the program"),
        };
        StepsReport {
            recording: recorded.recording,
            instructions: recorded.instructions,
            last_seq: recorded.last,
            ended: (!is_enough).then_some(ended),
            incomplete: recorded.incomplete,
        }
    }
}

impl Verb for Full {
    const NAME: &'static str = "full";
    const DOC: &'static str = "Record every instruction of the stopped thread from here on\n\n  full 10000     full on     full off\n\nThe thread executes that many instructions, one by one, and stops; with on, it runs up to the next stop. Breakpoints, signals and Ctrl-C end it earlier. All other threads are stopped, and stay so. What the thread did is then the past of the session: step back -i, goto EVENT+INSTRUCTIONS, registers, print, last-write, reverse-continue and SQL know everything at each of these instructions, until the program moves on. It is also a recording of its own, NAME-full. off ends it; then the past is that of the whole session again.";
    const NEEDS: Needs = Needs::RunningProgram;
    const DOES: Does = Does::Move;
    type Args = FullArgs;
    type Reply = FullReply;

    fn run(call: &Call<'_>, args: FullArgs) -> Result<FullReply, Failure> {
        let session = call.live()?;
        let wanted = match args.what.as_str() {
            "off" => return off(call, &session),
            "on" => None,
            number => Some(instructions(number)?),
        };
        let timeout = stepping::patience(call, args.timeout_secs)?;
        let stop = session.stopped()?;
        let after = session.record_steps(stop.tid, wanted.unwrap_or(u64::MAX))?;
        let waited = telling(call, &session, wanted, || {
            stepping::wait_for(call, &session, after, Some(stop.tid), timeout)
        });
        let motion = waited?.report;
        let recorded = session.finish_steps()?;
        Ok(FullReply {
            motion,
            recorded: recorded.map(|recorded| StepsReport::of(recorded, wanted)),
            is_whole: false,
        })
    }
}

fn instructions(text: &str) -> Result<u64, Failure> {
    let digits: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    match digits.parse() {
        Ok(number @ 1..) => Ok(number),
        _ => Err(
            Failure::bad_request(format!("\"{text}\" is not a number of instructions"))
                .hint("write a number, on or off: full 10000"),
        ),
    }
}

/// Ends recording; if nothing is recorded, returns to the past of the whole session.
fn off(call: &Call<'_>, session: &LiveSession) -> Result<FullReply, Failure> {
    if session.recorded_steps().is_none() {
        if !session.forget_exact_past() {
            let failure = Failure::new(Code::NotAllowed, "no instructions are recorded");
            return Err(failure.hint("record the next ones: full 10000"));
        }
        let stop = session.stopped().ok();
        return Ok(FullReply {
            motion: stepping::report(session, state(session), stop.as_ref()),
            recorded: None,
            is_whole: true,
        });
    }
    let number = session.live.pause().map_err(|error| of_recorder(&error))?;
    let after = number.saturating_sub(1);
    let came = stepping::wait_here(call, session, after, call.config.await_timeout())?;
    let recorded = session.finish_steps()?;
    Ok(FullReply {
        motion: came.report,
        recorded: recorded.map(|recorded| StepsReport::of(recorded, None)),
        is_whole: false,
    })
}

fn state(session: &LiveSession) -> StateWord {
    match session.stopped() {
        Ok(_) => StateWord::Stopped,
        Err(_) if session.has_ended() => StateWord::Ended,
        Err(_) => StateWord::Running,
    }
}

/// Does `work`; the client is told meanwhile how many instructions are recorded.
fn telling<T>(
    call: &Call<'_>,
    session: &LiveSession,
    wanted: Option<u64>,
    work: impl FnOnce() -> T,
) -> T {
    let Some(progress) = session.recorded_steps() else {
        return work();
    };
    let of = wanted.map_or_else(String::new, |wanted| format!(" of {}", grouped(wanted)));
    let notify = Arc::clone(&call.notify);
    std::thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        scope.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(TOLD_EVERY) {
                let text = format!(
                    "recording: instruction {}{of}",
                    grouped(progress.load(Relaxed))
                );
                notify(Notice::new(NoticeKind::Running, text));
            }
        });
        let done_work = work();
        drop(done);
        done_work
    })
}

impl Command for Full {
    const WORDS: &'static [Word] = &[
        Word::new(
            "what",
            "COUNT|on|off",
            Form::Text,
            "How many instructions; on: up to the next stop; off: no more, or back to the past of the whole session",
        ),
        stepping::TIMEOUT,
    ];
    const WAITS_FOR: WaitsFor = WaitsFor::Stop;

    fn text(reply: &FullReply, _: &FullArgs) -> Text {
        let mut text = Text::stepping(&reply.motion);
        if let Some(recorded) = &reply.recorded {
            let number = count(recorded.instructions, "instruction");
            text.push(format!(
                "{number} recorded: step back -i, goto, last-write and SQL know all of them; {}",
                recorded.recording.to_string_lossy()
            ));
            let ended = recorded
                .ended
                .iter()
                .map(|why| format!("Recording ended here: {why}"));
            let lacks = recorded
                .incomplete
                .iter()
                .map(|why| format!("Not all is recorded: {why}"));
            for line in ended.chain(lacks) {
                text.push(line);
            }
        }
        if reply.is_whole {
            text.push("The past is that of the whole session again");
        }
        text
    }
}
