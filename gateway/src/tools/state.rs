//! `debug_state`: the state of a thread: its position, its variables, its callers.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use server::protocol::{Code, Failure};
use server::verbs::{
    Args as Arguments, Backtrace, BacktraceArgs, BacktraceReply, Calls, CallsArgs, Command, Frame,
    FrameArgs, Goto, GotoArgs, Locals, LocalsArgs, Nothing, PageArgs, Position, PositionReply,
    Registers, RegistersArgs, Thread, ThreadArgs, Threads, Where, WhereArgs,
};

use crate::answer::Answer;
use crate::context::Context;
use crate::text;
use crate::tool::Tool;

/// The tool.
pub struct State;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// Go to this event first: a seq, first, last, crash, 50%, 1.5s
    at: Option<Moment>,
    /// Look at this thread
    thread_id: Option<i32>,
    /// Look at this frame, 0 is the innermost
    frame: Option<usize>,
    /// What to show [default: where, backtrace]; where is the source around the line and the variables, calls the recorded calls around here
    #[serde(default)]
    show: Vec<Part>,
}

/// An event: a number or a word.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub enum Moment {
    Seq(u64),
    Word(String),
}

impl JsonSchema for Moment {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"] })
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Moment::Seq(seq) => write!(f, "{seq}"),
            Moment::Word(word) => f.write_str(word),
        }
    }
}

/// A part of the state.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Part {
    Where,
    Backtrace,
    Locals,
    Args,
    Registers,
    Threads,
    Calls,
}

impl Tool for State {
    const NAME: &'static str = "debug_state";
    const DOC: &'static str = "Show the state at the current moment or at an event of a recording: source line and variables (where), backtrace, locals, args, registers, threads, recorded calls around it.";
    const READ_ONLY: bool = true;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session()?;
        go_to(context, session, args.at.as_ref())?;
        select_thread(context, session, args.thread_id)?;
        if args.frame.is_some() {
            let frame = FrameArgs {
                index: args.frame,
                ..FrameArgs::default()
            };
            context.ask::<Frame>(session, &frame)?;
        }
        let position = context.ask::<Position>(session, &Nothing {})?;
        let parts = match args.show.is_empty() {
            true => vec![Part::Where, Part::Backtrace],
            false => each_once(args.show),
        };
        let several = parts.len() > 1;
        let mut text = heading(&position);
        for part in parts {
            match shown(context, session, part) {
                Ok(part) => text.push_str(&part),
                // A missing part does not hide the others.
                Err(failure) if several && failure.code != Code::NoSession => {
                    // All parts may fail for one reason, which the heading may have told.
                    if !text.contains(failure.message.as_str()) {
                        text.push_str(&format!("({})\n", failure.message));
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(Answer::Text(text))
    }
}

/// Goes to a moment, if one is given. Used by other tools too.
pub fn go_to(context: &Context, session: Option<u32>, at: Option<&Moment>) -> Result<(), Failure> {
    let Some(at) = at else { return Ok(()) };
    let to = at.to_string();
    context.ask::<Goto>(session, &GotoArgs { to }).map(drop)
}

/// Selects a thread, if one is given. Used by `debug_continue` too.
pub fn select_thread(
    context: &Context,
    session: Option<u32>,
    thread: Option<i32>,
) -> Result<(), Failure> {
    if thread.is_some() {
        context.ask::<Thread>(session, &ThreadArgs { thread })?;
    }
    Ok(())
}

/// Leaves out what another part shows too: where has all variables, and locals has the parameters.
fn each_once(wanted: Vec<Part>) -> Vec<Part> {
    let has = |part| wanted.contains(&part);
    let is_shown = |part: &Part| match part {
        Part::Locals => has(Part::Where),
        Part::Args => has(Part::Where) || has(Part::Locals),
        _ => false,
    };
    let mut parts: Vec<Part> = Vec::new();
    for part in &wanted {
        if !is_shown(part) && !parts.contains(part) {
            parts.push(*part);
        }
    }
    parts
}

fn heading(at: &PositionReply) -> String {
    let place = match (at.seq, at.thread) {
        (Some(seq), Some(thread)) => format!("seq {seq}, thread {thread}\n"),
        (None, Some(thread)) => format!("thread {thread}\n"),
        _ => String::new(),
    };
    match &at.exit {
        Some(exit) => format!("{place}the program {}\n", exit.text),
        None => place,
    }
}

fn shown(context: &Context, session: Option<u32>, part: Part) -> Result<String, Failure> {
    match part {
        Part::Where => context.read::<Where>(session, &WhereArgs::default()),
        Part::Backtrace => {
            let backtrace = BacktraceArgs {
                limit: Some(20),
                ..BacktraceArgs::default()
            };
            let mut reply = context.ask::<Backtrace>(session, &backtrace)?;
            shorten(&mut reply);
            Ok(text::plain(&Backtrace::text(&reply, &backtrace)))
        }
        Part::Locals => context.read::<Locals>(session, &LocalsArgs::default()),
        Part::Args => context.read::<Arguments>(session, &LocalsArgs::default()),
        Part::Registers => context.read::<Registers>(session, &RegistersArgs::default()),
        Part::Threads => {
            // The budget says how many are shown.
            let all = PageArgs {
                limit: Some(0),
                ..PageArgs::default()
            };
            context.read::<Threads>(session, &all)
        }
        Part::Calls => context.read::<Calls>(session, &CallsArgs::default()),
    }
}

/// A list of frames omits longer reasons why an argument is unknown.
const LONG: usize = 20;

/// Shortens the reasons why arguments of outer frames are unknown: the frame's `args` give them.
fn shorten(reply: &mut BacktraceReply) {
    let threads = reply.threads.iter_mut();
    let frames = threads.flat_map(|thread| thread.stack.frames.iter_mut());
    for frame in frames.filter(|frame| !frame.selected) {
        for arg in frame.args.iter_mut().flatten() {
            let why = arg.shown.unknown.as_mut();
            if let Some(why) = why.filter(|why| why.len() > LONG) {
                "unknown".clone_into(why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_repeats_variables() {
        for (wanted, shown) in [
            (
                vec![Part::Where, Part::Locals, Part::Args],
                vec![Part::Where],
            ),
            (vec![Part::Args, Part::Locals], vec![Part::Locals]),
            (vec![Part::Args, Part::Args], vec![Part::Args]),
            (
                vec![Part::Backtrace, Part::Locals],
                vec![Part::Backtrace, Part::Locals],
            ),
        ] {
            assert!(each_once(wanted) == shown);
        }
    }
}
