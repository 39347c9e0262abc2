//! `debug_overview`: what to know first about a recording.

use schemars::JsonSchema;
use serde::Deserialize;
use server::protocol::Failure;

use crate::answer::Answer;
use crate::context::Context;
use crate::recordings;
use crate::tool::Tool;

/// The tool.
pub struct Overview;

/// The parameters of `debug_overview`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {}

/// The placeholder for the recording in commands.
const RECORDING: &str = "RECORDING";
/// As many lines as a colleague would say first.
const LINES: usize = 40;

impl Tool for Overview {
    const NAME: &'static str = "debug_overview";
    const DOC: &'static str = "Begin here: how the program ended and where, what it printed to standard error and which call did, results that look like failures, threads, where the time went, what is unusual, and what to ask next. Each claim has its seq.";
    const READ_ONLY: bool = true;
    type Args = Args;

    fn run(context: &Context, _: Args) -> Result<Answer, Failure> {
        let session = context.opened_recording()?;
        let mut overview = query::overview(&session, RECORDING).map_err(recordings::failure)?;
        overview.next.retain_mut(|question| {
            let call = as_call(&question.command);
            let is_call = call.is_some();
            question.command = call.unwrap_or_default();
            is_call
        });
        Ok(Answer::Text(overview.text(LINES)))
    }
}

/// The next command as a call of a tool, if one does the same: a model may have no shell.
fn as_call(command: &str) -> Option<String> {
    let words = command.strip_prefix("hindsight ")?;
    let (verb, rest) = words.split_once(&format!(" {RECORDING} "))?;
    match verb {
        "why" => Some(format!("debug_why of {rest}")),
        "sql" => Some(format!("debug_sql {}", unquoted(rest))),
        _ => None,
    }
}

/// A text in double quotes of a shell without them.
fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').unwrap_or(text);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        let meant = match char {
            '\\' => chars.next(),
            other => Some(other),
        };
        out.extend(meant);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_become_calls_of_tools() {
        for (command, call) in [
            ("hindsight why RECORDING 62", Some("debug_why of 62")),
            (
                r#"hindsight sql RECORDING "select 1 where function = '\$x'""#,
                Some("debug_sql select 1 where function = '$x'"),
            ),
            ("hindsight info RECORDING", None),
        ] {
            assert_eq!(as_call(command).as_deref(), call, "{command}");
        }
    }
}
