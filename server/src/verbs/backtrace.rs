//! `backtrace`: the frames of the selected thread, of another thread or of all threads.

use recorder::live::{Stop, ThreadState, Tid};
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Style, Text, Verb, Word, locals, show};
use crate::inspect::{self, Manner, StackReport, VariableReport, View};
use crate::past::{CALLERS, Past};
use crate::protocol::Failure;
use crate::quantity::count;
use crate::session::{LiveSession, Session};

/// The `backtrace` verb.
pub struct Backtrace;

/// The arguments of `backtrace`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BacktraceArgs {
    /// Maximum number of frames. Default: 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Only so many of the outermost frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outermost: Option<usize>,
    /// Report all variables of each frame, not only its arguments.
    pub locals: bool,
    /// The thread. Default: the selected one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Tid>,
    /// Report all stopped threads.
    pub all: bool,
    /// All of the values, however long they are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// The reply of `backtrace`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BacktraceReply {
    /// The stacks, one for each thread.
    pub threads: Vec<ThreadStack>,
    /// How many threads run, if all were asked for: they have no stack to show.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub running: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Frames of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadStack {
    /// The thread's id.
    pub thread: Tid,
    /// The thread's frames.
    #[serde(flatten)]
    pub stack: StackReport,
}

const LIMIT: usize = 100;
/// Most frames of which the outermost are found.
const DEEPEST: usize = 1 << 17;

impl Verb for Backtrace {
    const NAME: &'static str = "backtrace";
    const DOC: &'static str = "Show the call stack";
    const ALIASES: &'static [&'static str] = &["bt"];
    const NEEDS: Needs = Needs::Stop;
    const DOES: Does = Does::Look;
    type Args = BacktraceArgs;
    type Reply = BacktraceReply;

    fn run(call: &Call<'_>, mut args: BacktraceArgs) -> Result<BacktraceReply, Failure> {
        if !args.all {
            args.thread = args.thread.or_else(|| call.other_thread());
        }
        if args.limit.is_some() && args.outermost.is_some() {
            return Err(Failure::bad_request(
                "limit is for the innermost frames, outermost for others",
            ));
        }
        match call.target()? {
            Session::Live(session) => {
                let all = session.live.threads();
                let runs = |state: &ThreadState| matches!(state, ThreadState::Running);
                let running = all.iter().filter(|thread| runs(&thread.state)).count();
                Ok(BacktraceReply {
                    threads: live(&session, &args)?,
                    running: if args.all { running } else { 0 },
                })
            }
            Session::Recorded(past) => Ok(BacktraceReply {
                threads: recorded(&past, &args)?,
                running: 0,
            }),
        }
    }
}

impl Command for Backtrace {
    const WORDS: &'static [Word] = &[
        Word::flag("locals", None, "All variables of each frame"),
        Word::new(
            "limit",
            "N",
            Form::NumberOption,
            "Show at most N frames [default: 100]",
        ),
        Word::new(
            "outermost",
            "N",
            Form::NumberOption,
            "The N outermost frames",
        ),
        Word::new("thread", "THREAD", Form::NumberOption, "Of this thread"),
        Word::flag("all", None, "Of all stopped threads"),
        locals::FULL,
    ];

    fn text(reply: &BacktraceReply, args: &BacktraceArgs) -> Text {
        let mut text = Text::default();
        for thread in &reply.threads {
            if args.all {
                let heading = format!("Thread {}", thread.thread);
                text = text.and(Text::styled(vec![(Style::Heading, heading)]));
            }
            for frame in &thread.stack.frames {
                if frame.after_gap {
                    text.push("       (calls that were not recorded may lie between)");
                }
                text.push(show::frame(frame));
                for local in frame.locals.iter().flatten() {
                    text.push(format!("        {} = {}", local.name, local.shown.text()));
                }
            }
            if thread.stack.more {
                text = text.and(Text::hint("  (more frames follow: --limit)"));
            }
            if let Some(end) = &thread.stack.end {
                text.push(format!("  (the rest is not known: {end})"));
            }
        }
        if reply.running > 0 {
            let who = count(reply.running as u64, "thread");
            let verb = if reply.running == 1 { "runs" } else { "run" };
            text = text.and(Text::hint(format!("({who} {verb}: pause stops them)")));
        }
        let frames = || reply.threads.iter().flat_map(|thread| &thread.stack.frames);
        let reasonless = frames().find(|frame| {
            let mut args = frame.args.iter().flatten();
            args.any(|arg| show::lacks_reason(&arg.shown))
        });
        if let Some(frame) = reasonless {
            let why = format!("(why a value is unknown: frame {}, then args)", frame.index);
            text = text.and(Text::hint(why));
        }
        let variables = frames().flat_map(|frame| frame.args.iter().chain(&frame.locals).flatten());
        // Names are those of the frame itself.
        let is_cut = variables.map(|v| VariableReport::left_out(v).map(|_| ""));
        text.and(show::left_out(is_cut))
    }
}

fn live(session: &LiveSession, args: &BacktraceArgs) -> Result<Vec<ThreadStack>, Failure> {
    let stops = match (args.all, args.thread) {
        (true, _) => all_stops(session)?,
        (false, Some(tid)) => vec![session.stopped_thread(tid)?],
        (false, None) => vec![session.stopped()?],
    };
    let stacks = stops.into_iter().map(|stop| of_thread(session, stop, args));
    stacks.collect()
}

fn recorded(past: &Past, args: &BacktraceArgs) -> Result<Vec<ThreadStack>, Failure> {
    let tids = match (args.all, args.thread) {
        (true, _) => past.alive()?,
        (false, Some(tid)) => vec![past.known_thread(tid)?],
        (false, None) => vec![past.position().tid],
    };
    let stack = |tid: u32| {
        past.look_at(past.position_of(tid), args.frames_and_callers(), |looked| {
            let trace = &looked.moment.trace;
            let mut stack = described(&looked.view(), &trace.backtrace, args);
            for frame in &mut stack.frames {
                frame.after_gap = trace.gaps.contains(&frame.index);
            }
            Ok(ThreadStack {
                thread: tid as i32,
                stack,
            })
        })
    };
    tids.into_iter().map(stack).collect()
}

fn all_stops(session: &LiveSession) -> Result<Vec<Stop>, Failure> {
    // Fails if the program runs or has ended.
    session.stopped()?;
    let stop = |state| match state {
        ThreadState::Stopped(stop) => Some(stop),
        ThreadState::Running => None,
    };
    let threads = session.live.threads().into_iter();
    Ok(threads.filter_map(|thread| stop(thread.state)).collect())
}

fn of_thread(
    session: &LiveSession,
    stop: Stop,
    args: &BacktraceArgs,
) -> Result<ThreadStack, Failure> {
    let moment = session.moment_of(stop, args.frames_and_callers())?;
    Ok(ThreadStack {
        thread: moment.stop.tid,
        stack: described(&moment.view(), &moment.backtrace, args),
    })
}

impl BacktraceArgs {
    /// Returns the maximum number of frames.
    fn frames(&self) -> usize {
        match self.outermost {
            Some(_) => DEEPEST,
            None => self.limit.unwrap_or(LIMIT).max(1),
        }
    }

    /// Returns the number of frames to read. The callers of those shown tell whether there are more, and what arguments were.
    fn frames_and_callers(&self) -> usize {
        self.frames().saturating_add(CALLERS)
    }

    /// Returns how many of `all` frames are passed over.
    fn passed(&self, all: usize) -> usize {
        let kept = self.outermost.map(|most| most.max(1));
        kept.map_or(0, |kept| all.min(DEEPEST).saturating_sub(kept))
    }
}

/// Describes the frames of a view with their variables.
fn described(
    view: &View<'_>,
    backtrace: &debuginfo::Backtrace,
    args: &BacktraceArgs,
) -> StackReport {
    let shown = args.passed(backtrace.frames.len())..args.frames();
    let mut stack = inspect::stack(view.space, backtrace, view.frame, shown);
    for frame in &mut stack.frames {
        let view = view.at_frame(frame.index);
        // A frame without debug information has no variables that are known.
        let manner = Manner::of_many(args.full);
        let variables = match args.locals {
            true => inspect::variables(&view, manner),
            false => inspect::arguments(&view, manner),
        };
        let variables = variables.unwrap_or_default();
        let (args_only, locals) = variables.into_iter().partition(|v| v.is_parameter);
        frame.args = Some(args_only);
        frame.locals = args.locals.then_some(locals);
    }
    stack
}
