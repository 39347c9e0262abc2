//! `debug_logpoint`: sets, lists and removes messages at places of the program.

use schemars::JsonSchema;
use serde::Deserialize;
use server::protocol::Failure;
use server::verbs::{self, Chosen, LogpointAdd, ProbeArgs};

use super::breakpoint::reports;
use super::target::{ids, target};
use crate::answer::{Answer, List};
use crate::context::{Context, SessionId};
use crate::tool::Tool;

/// The tool.
pub struct Logpoint;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// The session [default: the newest]
    session_id: Option<SessionId>,
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
    const DOC: &'static str = "Log a message whenever the program passes a place, without stopping it. The messages are events: debug_query {\"eventType\": [\"logpoint\"]}. Without add and remove, lists them.";
    const READ_ONLY: bool = false;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = args.session_id.map(|id| id.0);
        let removed = ids(&args.remove)?;
        let mut shown = Vec::new();
        for add in args.add {
            let add = LogpointAdd {
                at: target(add.function, add.file, add.line, None)?,
                message: add.message,
                condition: add.condition,
                hit_count: 0,
                pending: false,
            };
            let reply = context.ask::<verbs::Logpoint>(session, &ProbeArgs::Add(add))?;
            shown.extend(reports(&reply.probes));
        }
        if !removed.is_empty() {
            let chosen = Chosen {
                ids: removed,
                all: false,
            };
            context.ask::<verbs::Logpoint>(session, &ProbeArgs::Remove(chosen))?;
        }
        if shown.is_empty() {
            let reply = context.ask::<verbs::Logpoint>(session, &ProbeArgs::List)?;
            shown = reports(&reply.probes);
        }
        Ok(Answer::List(List::whole("logpoints", shown)))
    }
}
