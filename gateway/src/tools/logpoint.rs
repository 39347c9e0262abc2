//! `debug_logpoint`: sets, lists and removes messages at places of the program.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use server::past::{LogLine, LogLines};
use server::protocol::Failure;
use server::verbs::{self, Chosen, LogpointAdd, LogpointReply, Nothing, Position, ProbeArgs, When};

use super::breakpoint::{all_or_none, reports};
use super::target::{ids, target};
use crate::answer::{Answer, List, object};
use crate::context::Context;
use crate::tool::{About, Tool};

/// Lines of a recording per request: no budget holds more.
const MOST: usize = 500;

/// The tool.
pub struct Logpoint;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// Logpoints to set
    #[serde(default)]
    add: Vec<Add>,
    /// Ids of logpoints to remove
    #[serde(default)]
    remove: Vec<String>,
}

/// A logpoint.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Add {
    /// A function or a pattern
    function: Option<String>,
    /// A source file
    file: Option<String>,
    /// A line of it, from 1
    line: Option<u32>,
    /// The text, with values in braces: tempo={args[0]}, len={p->len}
    message: String,
    /// Only if this is true
    condition: Option<String>,
}

impl Tool for Logpoint {
    const NAME: &'static str = "debug_logpoint";
    const DOC: &'static str = "Log a message whenever the program passes a place, without stopping it. The messages are events: debug_query {\"eventType\": [\"logpoint\"]}. Without add and remove, lists them. On a recording made with --full it returns at once what it would have logged in the whole run.";
    const READ_ONLY: bool = false;
    const ABOUT: About = About::Either(
        "A recording made with --full, instead of a session: prints what the logpoints would have printed in the whole run",
    );
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session()?;
        let removed = ids(&args.remove)?;
        let mut shown = Vec::new();
        let is_alone = args.add.len() == 1;
        // Only a recording prints lines, page by page.
        let at = context.ask::<Position>(session, &Nothing {})?;
        let is_recorded = at.when != When::Now;
        let remove = |ids: Vec<u32>| {
            let chosen = Chosen { ids, all: false };
            let reply = context.ask::<verbs::Logpoint>(session, &ProbeArgs::Remove(chosen));
            reply.map(drop)
        };
        let add = |add: Add| {
            let add = LogpointAdd {
                at: target(add.function, add.file, add.line, None)?,
                message: add.message,
                condition: add.condition,
                hit_count: 0,
                pending: false,
                limit: is_recorded.then_some(MOST),
                skip: if is_recorded { context.cursor } else { 0 },
            };
            context.ask::<verbs::Logpoint>(session, &ProbeArgs::Add(add))
        };
        for one in args.add {
            match all_or_none(&shown, add(one), |id| remove(vec![id]))? {
                LogpointReply::Probes(reply) => shown.extend(reports(&reply.probes)),
                LogpointReply::Recorded(lines) if is_alone => return Ok(printed(context, &lines)),
                LogpointReply::Recorded(_) => {
                    return Err(Failure::bad_request(
                        "in a recording, one logpoint at a time",
                    ));
                }
            }
        }
        if !removed.is_empty() {
            all_or_none(&shown, remove(removed), |id| remove(vec![id]))?;
        }
        if shown.is_empty() {
            let reply = context.ask::<verbs::Logpoint>(session, &ProbeArgs::List)?;
            if let LogpointReply::Probes(reply) = reply {
                shown = reports(&reply.probes);
            }
        }
        Ok(Answer::List(List::whole("logpoints", shown)))
    }
}

/// Lines of a recorded run.
fn printed(context: &Context, lines: &LogLines) -> Answer {
    let line = |line: &LogLine| {
        Value::Object(object([
            ("seq", json!(line.seq)),
            ("steps", Some(line.steps).filter(|steps| *steps > 0).into()),
            ("threadId", json!(line.thread)),
            ("message", json!(line.message)),
        ]))
    };
    let list = List {
        name: "lines",
        items: lines.lines.iter().map(line).collect(),
        first: context.cursor,
        total: (!lines.more).then_some(context.cursor + lines.lines.len()),
        ..List::default()
    };
    Answer::List(match &lines.failed {
        Some(failed) => list.with("failed", failed.clone()),
        None => list,
    })
}
