//! `debug_why`: the chain of events that led to a call or a value.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use server::past::WhyReply;
use server::protocol::Failure;
use server::verbs::{self, Command, WhyArgs};

use super::state::Moment;
use crate::answer::Answer;
use crate::context::Context;
use crate::text;
use crate::tool::Tool;
use crate::words;

/// The tool.
pub struct Why;

/// The parameters of `debug_why`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
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
        let session = context.session()?;
        let asked = WhyArgs {
            of: args.of.to_string(),
            at: args.at,
        };
        let answered = context.ask::<verbs::Why>(session, &asked);
        let found = |reply: &WhyReply| reply.steps.iter().any(|step| step.kind != "value");
        let of_function = match answered.as_ref().is_ok_and(found) {
            true => None,
            false => calls_of(context, &asked.of),
        };
        let mut reply = match (answered, &of_function) {
            (Err(failure), Some(way)) => return Err(failure.hint(way.as_str())),
            (reply, _) => reply?,
        };
        for option in reply.ends.iter_mut().filter_map(|end| end.option.as_mut()) {
            if let Some(call) = words::second_run(option, &asked.of) {
                *option = call;
            }
        }
        let text = text::plain(&verbs::Why::text(&reply, &asked));
        let way = of_function.map(|way| format!("{way}\n"));
        Ok(Answer::Text(text + &way.unwrap_or_default()))
    }
}

/// Says what to ask if the name is that of a recorded function: only each of its calls has a cause.
fn calls_of(context: &Context, name: &str) -> Option<String> {
    let session = context.opened_recording().ok()?;
    let is_recorded = !session.functions_meant(name).is_empty();
    let query = json!({ "function": { "equals": name } });
    is_recorded.then(|| {
        format!("{name} is a recorded function. debug_query {query} finds its calls; debug_why of a call's seq says what led to it")
    })
}
