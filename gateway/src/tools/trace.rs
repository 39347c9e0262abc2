//! `debug_trace`: which functions are recorded.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use server::protocol::Failure;
use server::verbs::{self, TraceArgs};

use crate::answer::{Answer, object};
use crate::context::{Context, SessionId, lock};
use crate::shape;
use crate::tool::{About, Tool};

/// The tool.
pub struct Trace;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// A live session; left out: for the programs that debug_launch starts from now on
    session_id: Option<SessionId>,
    /// Patterns of functions: parse, MyClass::*, libfoo.so:*
    #[serde(default)]
    add: Vec<String>,
    /// Patterns to take back
    #[serde(default)]
    remove: Vec<String>,
}

impl Tool for Trace {
    const NAME: &'static str = "debug_trace";
    const DOC: &'static str = "Choose the functions whose calls are recorded, for the next debug_launch; by default these are all of the program's own. With sessionId, add records the calls of more functions of that live session, from now on.";
    const READ_ONLY: bool = false;
    const ABOUT: About = About::Other;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        match args.session_id {
            Some(id) => live(context, id.0, &args),
            None => Ok(next(context, args)),
        }
    }
}

/// Chooses for the next program.
fn next(context: &Context, args: Args) -> Answer {
    let mut patterns = lock(&context.gateway.patterns);
    patterns.retain(|pattern| !args.remove.contains(pattern));
    for pattern in args.add {
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    let note = match patterns.is_empty() {
        true => "debug_launch records all functions of the program's own",
        false => "debug_launch records functions that match these patterns",
    };
    Answer::Object(object([
        ("activePatterns", json!(*patterns)),
        ("note", json!(note)),
    ]))
}

/// Records more functions of a program that runs.
fn live(context: &Context, session: u32, args: &Args) -> Result<Answer, Failure> {
    if !args.remove.is_empty() {
        return Err(
            Failure::bad_request("a live session keeps the functions that it records")
                .hint("leave out sessionId to change what the next debug_launch records"),
        );
    }
    let asked = TraceArgs {
        patterns: args.add.clone(),
    };
    let reply = context.ask::<verbs::Trace>(Some(session), &asked)?;
    let Value::Object(mut shown) = json!(reply) else {
        unreachable!("a reply is an object");
    };
    shown.retain(|_, value| !shape::is_nothing(value));
    Ok(Answer::Object(shown))
}
