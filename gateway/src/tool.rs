//! What a tool says of itself, and how it is called by name.

use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use server::protocol::Failure;

use crate::answer::Answer;
use crate::budget;
use crate::context::Context;
use crate::words;

/// A tool: a file of `tools/`.
pub trait Tool {
    /// Its name.
    const NAME: &'static str;
    /// What it does, for the model that chooses among tools.
    const DOC: &'static str;
    /// It changes neither a program nor a recording.
    const READ_ONLY: bool;
    /// Its parameters.
    type Args: DeserializeOwned + JsonSchema;

    /// Does it.
    ///
    /// # Errors
    /// Why it was not done, with the code of the verb.
    fn run(context: &Context, args: Self::Args) -> Result<Answer, Failure>;
}

/// A tool without its types.
#[derive(Clone, Copy)]
pub struct Described {
    /// [`Tool::NAME`].
    pub name: &'static str,
    /// [`Tool::DOC`].
    pub doc: &'static str,
    /// [`Tool::READ_ONLY`].
    pub read_only: bool,
    schema: fn() -> Value,
    run: fn(&Context, Map<String, Value>) -> Result<String, Failure>,
}

impl Described {
    /// Describes tool `T`.
    pub const fn of<T: Tool>() -> Described {
        Described {
            name: T::NAME,
            doc: T::DOC,
            read_only: T::READ_ONLY,
            schema: schema::<T>,
            run: run::<T>,
        }
    }

    /// Returns the JSON schema of its parameters.
    pub fn schema(&self) -> Arc<Map<String, Value>> {
        match (self.schema)() {
            Value::Object(schema) => Arc::new(schema),
            _ => Arc::default(),
        }
    }

    /// Calls it with parameters from the wire, and returns an answer that fits.
    ///
    /// # Errors
    /// The tool's; [`server::protocol::Code::BadRequest`] for wrong parameters.
    pub fn call(&self, context: &Context, args: Map<String, Value>) -> Result<String, Failure> {
        (self.run)(context, args)
    }
}

fn run<T: Tool>(context: &Context, mut args: Map<String, Value>) -> Result<String, Failure> {
    let budget = number(&mut args, "budget")?.unwrap_or(budget::DEFAULT);
    let cursor = number(&mut args, "cursor")?.unwrap_or(0);
    let args = serde_json::from_value(Value::Object(args)).map_err(|error| {
        Failure::bad_request(format!(
            "{} does not take these parameters: {error}",
            T::NAME
        ))
    })?;
    let context = context.from(cursor);
    let answer = T::run(&context, args).map_err(words::failure)?;
    Ok(budget::fit(answer, budget, cursor))
}

/// Takes a parameter of all tools out of the others. Models write numbers as texts too.
fn number(args: &mut Map<String, Value>, name: &str) -> Result<Option<usize>, Failure> {
    let number = match args.remove(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.is_empty() => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(other) => other
            .as_u64()
            .and_then(|number| usize::try_from(number).ok()),
    };
    let wrong = || Failure::bad_request(format!("{name} is not a whole number from 0"));
    number.map(Some).ok_or_else(wrong)
}

fn schema<T: Tool>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        // Some clients do not follow references.
        settings.inline_subschemas = true;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T::Args>()
        .to_value();
    let Some(fields) = schema.as_object_mut() else {
        return schema;
    };
    for unneeded in ["$schema", "title", "description"] {
        fields.remove(unneeded);
    }
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert(
            "budget".to_owned(),
            json!({
                "description": "Most tokens of the result [default: 2000, at most 10000]",
                "type": "integer",
            }),
        );
        properties.insert(
            "cursor".to_owned(),
            json!({
                "description": "Continues a result that was cut: its cursor",
                "type": "string",
            }),
        );
    }
    schema
}
