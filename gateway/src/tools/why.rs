//! `debug_why`: the chain of events that led to a call or a value.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use server::protocol::Failure;
use server::verbs::{self, Command, WhyArgs};

use super::state::Moment;
use crate::answer::Answer;
use crate::context::{Context, SessionId, Whose};
use crate::text;
use crate::tool::Tool;

/// The tool.
pub struct Why;

/// The parameters of `debug_why`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// The session [default: the newest]
    session_id: Option<SessionId>,
    /// A recording, instead of a session
    recording: Option<String>,
    /// The seq of a call, or an expression
    of: Moment,
    /// The expression is meant at this seq [default: the current moment]
    at: Option<u64>,
}

impl Tool for Why {
    const NAME: &'static str = "debug_why";
    const DOC: &'static str = "Show the chain of recorded events that led to a call (its callers, where its arguments came from, where an error that it returned came up first) or to the value of an expression (who wrote it, from which values). \"Same value\" is no proof of a cause.";
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
            if let Some(call) = as_call(option, &asked.of) {
                *option = call;
            }
        }
        Ok(Answer::Text(text::plain(&verbs::Why::text(&reply, &asked))))
    }
}

/// An option of the command line that would tell more of a value, as a call of a tool: a model may have no shell.
fn as_call(option: &str, expression: &str) -> Option<String> {
    let place = option.split_once("--log-writes ").map(|(_, place)| place);
    let asked = match place.filter(|place| place.starts_with("0x")) {
        Some(address) => json!({ "noAslr": true, "logWrites": [address] }),
        None if option.contains("--no-aslr") => {
            let asked = json!({ "noAslr": true });
            return Some(format!(
                "debug_launch with {asked}, then ask this again there"
            ));
        }
        None if place.is_some() => json!({ "logWrites": [expression] }),
        None if option.contains("--watch") => json!({ "watch": [expression] }),
        None => return None,
    };
    Some(format!("debug_launch with {asked}"))
}

#[cfg(test)]
mod tests {
    use super::as_call;

    #[test]
    fn options_become_calls_of_tools() {
        for (option, call) in [
            (
                "hindsight rerun app --log-writes 'a'",
                Some(r#"debug_launch with {"logWrites":["a"]}"#),
            ),
            (
                "record with --watch 'a'",
                Some(r#"debug_launch with {"watch":["a"]}"#),
            ),
            (
                "hindsight rerun app --log-writes 0x55f0:4",
                Some(r#"debug_launch with {"logWrites":["0x55f0:4"],"noAslr":true}"#),
            ),
            (
                "record with --no-aslr, and ask again there: --log-writes takes the address",
                Some(r#"debug_launch with {"noAslr":true}, then ask this again there"#),
            ),
            ("record again", None),
        ] {
            assert_eq!(as_call(option, "a").as_deref(), call, "{option}");
        }
    }
}
