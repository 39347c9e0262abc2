//! `debug_full`: records every instruction of the stopped thread from here on.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use server::protocol::Failure;
use server::verbs::{self, FullArgs};

use super::target::seconds;
use crate::answer::Answer;
use crate::context::Context;
use crate::shape;
use crate::tool::{About, Tool};

/// Instructions that are recorded by default.
const COUNT: u32 = 10_000;

/// The tool.
pub struct Full;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// next: record so many instructions; on: all up to the next stop; off: no more, or back to the past of the whole session [default: next]
    #[serde(default)]
    action: Action,
    /// With next: how many instructions [default: 10000]
    count: Option<u32>,
    /// How long to wait for the next stop [default: 20000]
    timeout_ms: Option<u64>,
}

/// What is done.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Action {
    #[default]
    Next,
    On,
    Off,
}

impl Tool for Full {
    const NAME: &'static str = "debug_full";
    const DOC: &'static str = "Record every instruction of a stopped thread; recording ends at its next stop, if not earlier. debug_history, debug_goto, debug_state, debug_sql and the other tools that ask about the past can then answer for each of these instructions, but not for earlier ones, until the program moves on or you call action off. Meanwhile every seq, including the one in this answer, refers to this recording. Recording 20,000 instructions takes about a second. When timeoutMs has passed, the status is running, and recording continues until action off.";
    const READ_ONLY: bool = false;
    const ABOUT: About = About::Session;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session()?;
        let wanted = FullArgs {
            what: match args.action {
                Action::Next => args.count.unwrap_or(COUNT).to_string(),
                Action::On => "on".to_owned(),
                Action::Off => "off".to_owned(),
            },
            timeout_secs: Some(seconds(args.timeout_ms)),
        };
        context.waits();
        let mut notes = Vec::new();
        let reply = context.ask_warned::<verbs::Full>(session, &wanted, &mut notes)?;
        let mut told = shape::motion(context, &reply.motion)?;
        if let Some(recorded) = &reply.recorded {
            told.insert("recorded".to_owned(), json!(recorded));
        }
        if reply.is_whole {
            told.insert("past".to_owned(), json!("that of the whole session again"));
        }
        if !notes.is_empty() {
            told.insert("notes".to_owned(), json!(notes));
        }
        Ok(Answer::Object(told))
    }
}
