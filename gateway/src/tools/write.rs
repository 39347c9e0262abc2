//! `debug_write`: writes variables and memory of a live program, and calls its functions.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use server::inspect::ValueFormat;
use server::protocol::{Code, Failure};
use server::session::StateWord;
use server::verbs::{
    self, Eval, EvalArgs, Nothing, Position, When, WriteArgs, WriteTarget, Written,
};

use super::read;
use crate::answer::{Answer, List, object};
use crate::context::Context;
use crate::tool::{About, Tool};

/// The tool.
pub struct Write;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// What to write, in this order
    #[serde(default)]
    targets: Vec<Target>,
    /// Instead of targets: an expression that calls functions of the program: length(head). At a stop the program runs them; in a recording made with --full a copy of it does, of which nothing stays
    call: Option<String>,
}

/// One thing to write: a variable, or an address with a type.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// A variable or another expression that has a place; locals need a paused thread
    variable: Option<String>,
    /// An address in hexadecimal
    address: Option<String>,
    /// With address: the type there, such as f64, i32, pointer
    #[serde(rename = "type")]
    type_name: Option<String>,
    /// A number, a truth value, or an expression as a text
    #[schemars(schema_with = "scalar")]
    value: Value,
}

fn scalar(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": ["number", "string", "boolean"] })
}

impl Tool for Write {
    const NAME: &'static str = "debug_write";
    const DOC: &'static str = "Write variables, registers ($rax) or memory of a live program, or call its functions. Each write is an event of the recording.";
    const READ_ONLY: bool = false;
    const ABOUT: About =
        About::Either("A recording made with --full, instead of a session: for call");
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session()?;
        match (args.call, args.targets.is_empty()) {
            (Some(call), true) => called(context, session, call),
            (None, false) => written(context, session, args.targets),
            _ => Err(Failure::bad_request(
                "say what to do: either targets or call",
            )),
        }
    }
}

fn written(
    context: &Context,
    session: Option<u32>,
    targets: Vec<Target>,
) -> Result<Answer, Failure> {
    let targets = targets.into_iter().map(|target| WriteTarget {
        variable: target.variable,
        address: target.address,
        type_name: target.type_name,
        value: target.value,
        bytes: None,
    });
    let write = WriteArgs {
        targets: targets.collect(),
    };
    let reply = context.ask::<verbs::Write>(session, &write)?;
    let results = reply.results.iter().map(result).collect();
    Ok(Answer::List(List::whole("results", results)))
}

/// Refuses a call in a running program: a paused thread makes it.
fn stands(context: &Context, session: Option<u32>) -> Result<(), Failure> {
    let at = context.ask::<Position>(session, &Nothing {})?;
    if at.when != When::Now || at.status != StateWord::Running {
        return Ok(());
    }
    let message = "the program is running, and only a paused one can call its functions";
    Err(Failure::new(Code::NotStopped, message).hint(
        r#"stop it with: debug_continue {"action": "pause"}; or wait for a stop with: debug_wait"#,
    ))
}

fn called(context: &Context, session: Option<u32>, expression: String) -> Result<Answer, Failure> {
    stands(context, session)?;
    let eval = EvalArgs {
        expression,
        format: ValueFormat::Natural,
        // A second call, to see the rest, would have its effects again.
        full: true,
    };
    let mut notes = Vec::new();
    context.waits();
    let report = context.ask_warned::<Eval>(session, &eval, &mut notes)?;
    let results = List::whole("results", vec![read::value(&report)]);
    Ok(Answer::List(match notes.is_empty() {
        true => results,
        // What the functions have printed, for example.
        false => results.with("notes", notes),
    }))
}

fn result(written: &Written) -> Value {
    Value::Object(object([
        ("variable", json!(written.variable)),
        ("address", json!(written.address)),
        ("previousValue", json!(written.previous_value)),
        ("newValue", json!(written.new_value)),
    ]))
}
