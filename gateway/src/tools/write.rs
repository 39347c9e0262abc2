//! `debug_write`: writes variables and memory of a live program.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use server::protocol::Failure;
use server::verbs::{self, WriteArgs, WriteTarget, Written};

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
    targets: Vec<Target>,
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
    const DOC: &'static str = "Write variables, registers ($rax) or memory of a live program. Each write is an event of the recording.";
    const READ_ONLY: bool = false;
    const ABOUT: About = About::Session;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let targets = args.targets.into_iter().map(|target| WriteTarget {
            variable: target.variable,
            address: target.address,
            type_name: target.type_name,
            value: target.value,
            bytes: None,
        });
        let write = WriteArgs {
            targets: targets.collect(),
        };
        let session = context.session()?;
        let reply = context.ask::<verbs::Write>(session, &write)?;
        let results = reply.results.iter().map(result).collect();
        Ok(Answer::List(List::whole("results", results)))
    }
}

fn result(written: &Written) -> Value {
    Value::Object(object([
        ("variable", json!(written.variable)),
        ("address", json!(written.address)),
        ("previousValue", json!(written.previous_value)),
        ("newValue", json!(written.new_value)),
    ]))
}
