//! `debug_read`: values, registers and memory.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use server::inspect::{ValueFormat, ValueReport};
use server::protocol::{Code, Failure};
use server::verbs::{Memory, MemoryArgs, Print, PrintArgs};

use crate::answer::{Answer, List, object};
use crate::context::Context;
use crate::tool::Tool;
use crate::words;

/// The tool.
pub struct Read;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// What to read
    targets: Vec<Target>,
    /// Numbers in base 16
    #[serde(default)]
    hex: bool,
    /// All of long texts and arrays [default: their beginning]; what exceeds the budget is counted: read a part, v[200..300], p+200
    #[serde(default)]
    whole: bool,
}

/// One thing to read: a variable, or an address with a type or a size.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// An expression: x, node->next, v[5], $rax
    variable: Option<String>,
    /// An address in hexadecimal, or an expression that is one
    address: Option<String>,
    /// With address: the type there, such as f64, i32, char *
    #[serde(rename = "type")]
    type_name: Option<String>,
    /// With address: how many bytes
    size: Option<usize>,
}

/// How values are written, and how much of them.
#[derive(Clone, Copy)]
struct Manner {
    format: ValueFormat,
    whole: bool,
}

impl Tool for Read {
    const NAME: &'static str = "debug_read";
    const DOC: &'static str = "Read variables, expressions, registers or memory at the current moment of a session. Globals can be read while the program runs.";
    const READ_ONLY: bool = true;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session()?;
        if args.targets.is_empty() {
            return Err(Failure::bad_request("there are no targets to read"));
        }
        let manner = Manner {
            format: match args.hex {
                true => ValueFormat::Hex,
                false => ValueFormat::Natural,
            },
            whole: args.whole,
        };
        let several = args.targets.len() > 1;
        let read = |target: &Target| match read(context, session, target, manner) {
            // One that cannot be read does not hide the others.
            Err(failure) if several && failure.code != Code::NoSession => Ok(json!({
                "variable": target.variable,
                "address": target.address,
                "error": failure,
            })),
            read => read,
        };
        let results = args.targets.iter().map(read);
        let results = results.collect::<Result<Vec<_>, _>>()?;
        Ok(Answer::List(List::whole("results", results)))
    }
}

fn read(
    context: &Context,
    session: Option<u32>,
    target: &Target,
    manner: Manner,
) -> Result<Value, Failure> {
    let expression = match target {
        Target {
            variable: Some(variable),
            address: None,
            type_name: None,
            size: None,
        } => variable.clone(),
        Target {
            variable: None,
            address: Some(address),
            type_name: Some(type_name),
            size: None,
        } => {
            let type_name = match type_name.as_str() {
                "pointer" => "void *",
                name => name,
            };
            format!("*({type_name} *)({address})")
        }
        Target {
            variable: None,
            address: Some(address),
            type_name: None,
            size,
        } => return bytes(context, session, address, *size),
        _ => {
            return Err(Failure::bad_request("a target is none")
                .hint("write {variable}, {address, type} or {address, size}, nothing else"));
        }
    };
    let print = PrintArgs {
        expression,
        format: manner.format,
        with_type: false,
        full: manner.whole,
    };
    context
        .ask::<Print>(session, &print)
        .map(|report| match manner.whole {
            true => with_parts(value(&report)),
            false => value(&report),
        })
}

/// A text of more characters may not fit in any budget.
const LONG: usize = 4_000;

/// Says how to see what a budget cuts of a whole value.
fn with_parts(mut value: Value) -> Value {
    let text = value["value"].as_str();
    if text.is_some_and(|text| text.len() > LONG) {
        value["cut"] = format!("what the budget cuts is shown by {PARTS}").into();
    }
    value
}

/// Expressions that are parts of a value.
const PARTS: &str = "e.g. p+200 of a pointer to text, v[200..300] of an array";

/// A value. Used by `debug_write` too.
pub fn value(report: &ValueReport) -> Value {
    let shown = report.shown.value.as_deref();
    let unknown = report.shown.unknown.as_deref();
    Value::Object(object([
        ("variable", json!(report.expression)),
        ("type", json!(report.short_type())),
        ("value", json!(shown.map(words::in_values))),
        ("unknown", json!(unknown.map(words::of_tools))),
        ("staleSince", json!(report.shown.stale_since)),
        ("address", json!(report.shown.address)),
        ("note", json!(report.note.as_deref().map(words::of_tools))),
        ("shortened", shortened(report)),
    ]))
}

/// Says how to see what a value leaves out; null if it leaves out nothing.
fn shortened(report: &ValueReport) -> Value {
    match report.shown.left_out.as_deref() {
        None => Value::Null,
        Some(part) if part.is_empty() || part == report.expression => {
            format!("whole: true shows all; a later part is shown by {PARTS}").into()
        }
        Some(part) => format!("whole: true shows all; or read {part}").into(),
    }
}

fn bytes(
    context: &Context,
    session: Option<u32>,
    address: &str,
    size: Option<usize>,
) -> Result<Value, Failure> {
    let asked = MemoryArgs {
        at: address.to_owned(),
        count: size,
        write: None,
    };
    let reply = context.ask::<Memory>(session, &asked)?;
    serde_json::to_value(&reply.memory).map_err(|error| Failure::bad_request(error.to_string()))
}
