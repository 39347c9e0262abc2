//! `debug_why`: the chain of events that led to a call or a value.

use schemars::JsonSchema;
use serde::Deserialize;
use server::protocol::Failure;
use server::verbs::{self, Command, WhyArgs};

use super::state::Moment;
use crate::answer::Answer;
use crate::context::{Context, SessionId, Whose};
use crate::text;
use crate::tool::Tool;
use crate::words;

/// The tool.
pub struct Why;

/// The parameters of `debug_why`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// The session [default: that of the last call]
    session_id: Option<SessionId>,
    /// A recording, instead of a session
    recording: Option<String>,
    /// The seq of a call, or an expression
    of: Moment,
    /// The expression is meant at this seq [default: the moment gone to, or the end of the recording]
    at: Option<u64>,
}

impl Tool for Why {
    const NAME: &'static str = "debug_why";
    const DOC: &'static str = "Show the chain of recorded events that led to a call (its callers, which calls had or returned the same values as its arguments, which ones inside it returned the same error) or to the value of an expression (who wrote it, and which calls had the same value). \"Same value\" is no proof of a cause.";
    const READ_ONLY: bool = true;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session(&Whose::either(args.session_id, args.recording))?;
        let asked = WhyArgs {
            of: args.of.to_string(),
            at: args.at,
        };
        let mut reply = context.ask::<verbs::Why>(session, &asked)?;
        for option in reply.ends.iter_mut().filter_map(|end| end.option.as_mut()) {
            if let Some(call) = words::second_run(option, &asked.of) {
                *option = call;
            }
        }
        Ok(Answer::Text(text::plain(&verbs::Why::text(&reply, &asked))))
    }
}
