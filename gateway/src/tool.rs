//! A tool's own description, and how it is called by name.

use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use server::protocol::Failure;

use crate::answer::Answer;
use crate::budget::{self, Cursor};
use crate::context::{Context, Whose};
use crate::words;

/// A tool: a file of `tools/`.
pub trait Tool {
    /// Its name.
    const NAME: &'static str;
    /// What it does, for the model that chooses among tools.
    const DOC: &'static str;
    /// It changes neither a program nor a recording.
    const READ_ONLY: bool;
    /// What its calls are about.
    const ABOUT: About = About::Either("A recording, instead of a session");
    /// Its other parameters.
    type Args: DeserializeOwned + JsonSchema;

    /// Does it.
    ///
    /// # Errors Why it failed, with the code of the verb.
    fn run(context: &Context, args: Self::Args) -> Result<Answer, Failure>;
}

/// What the calls of a tool are about, which parameters name that all such tools share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A session or a recording; the text says what the recording is for.
    Either(&'static str),
    /// A session.
    Session,
    /// Something else.
    Other,
}

impl About {
    /// The names of these parameters.
    fn names(self) -> &'static [&'static str] {
        match self {
            About::Either(_) => &["sessionId", "recording"],
            About::Session => &["sessionId"],
            About::Other => &[],
        }
    }

    /// The schemas of these parameters.
    fn properties(self) -> Map<String, Value> {
        let mut properties = properties(&mut schema_of::<Whose>());
        properties.retain(|name, _| self.names().contains(&name.as_str()));
        if let About::Either(doc) = self {
            properties["recording"]["description"] = doc.into();
        }
        properties
    }
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
    are_known::<T>(&args)?;
    let budget = number(&mut args, "budget")?.unwrap_or(budget::DEFAULT);
    let cursor = cursor(&mut args)?;
    let about = T::ABOUT.names().iter();
    let about = about.filter_map(|name| args.remove_entry(*name)).collect();
    let context = context.about(read(T::NAME, about)?, cursor.entries);
    let args = read(T::NAME, args)?;
    let answer = T::run(&context, args).map_err(words::failure);
    let answer = answer.map_err(|failure| context.with_recording(failure))?;
    let answer = match context.meant() {
        Some(meant) => answer.about(meant),
        None => answer,
    };
    Ok(budget::fit(answer, budget, cursor))
}

/// Refuses parameters that the tool does not have.
fn are_known<T: Tool>(args: &Map<String, Value>) -> Result<(), Failure> {
    let known = properties(&mut schema::<T>());
    let Some(wrong) = args.keys().find(|name| !known.contains_key(*name)) else {
        return Ok(());
    };
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    let message = format!("{} has no parameter \"{wrong}\"", T::NAME);
    Err(Failure::bad_request(message).hint(format!("parameters: {}", names.join(", "))))
}

/// Reads parameters of a tool.
fn read<P: DeserializeOwned>(tool: &str, args: Map<String, Value>) -> Result<P, Failure> {
    serde_path_to_error::deserialize(Value::Object(args)).map_err(|error| mistaken(tool, &error))
}

/// The names of kinds of parameters in errors, by serde's expectation.
const KINDS: &[(&str, &str)] = &[
    ("a string", "a text"),
    ("a boolean", "true or false"),
    ("a sequence", "a list"),
    ("a map", "an object"),
    ("struct ", "an object"),
    ("u", "a whole number from 0"),
    ("i", "a whole number"),
    ("f", "a number"),
];

/// Returns an error that names the wrong parameter.
fn mistaken(tool: &str, error: &serde_path_to_error::Error<serde_json::Error>) -> Failure {
    let (path, said) = (error.path().to_string(), error.inner().to_string());
    let name = match path.as_str() {
        "." => String::new(),
        path => format!("{path}: "),
    };
    let kind = |expected: &str| {
        let known = KINDS.iter().find(|(start, _)| expected.starts_with(start));
        known.map_or_else(|| expected.to_owned(), |(_, kind)| (*kind).to_owned())
    };
    let wrong = said.strip_prefix("invalid type: ");
    let wrong = wrong.or_else(|| said.strip_prefix("invalid value: "));
    let told = match wrong.and_then(|wrong| wrong.split_once(", expected ")) {
        Some((given, expected)) => format!("{given} is not {}", kind(expected)),
        None if said.starts_with("data did not match any variant") => {
            "a value of this kind does not fit here".to_owned()
        }
        None => said,
    };
    Failure::bad_request(format!(
        "{tool} does not take these parameters: {name}{told}"
    ))
    .hint("the tool's schema says what each parameter takes")
}

/// Removes the parameter that says how far an answer has been read.
fn cursor(args: &mut Map<String, Value>) -> Result<Cursor, Failure> {
    let text = match args.remove("cursor") {
        None | Some(Value::Null) => return Ok(Cursor::default()),
        Some(Value::String(text)) if text.is_empty() => return Ok(Cursor::default()),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    let wrong = || Failure::bad_request("cursor was not returned by an earlier result");
    Cursor::read(&text).ok_or_else(wrong)
}

/// Removes a parameter that all tools share. Models also write numbers as text.
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

/// Takes the parameters out of a schema.
fn properties(schema: &mut Value) -> Map<String, Value> {
    match schema["properties"].take() {
        Value::Object(properties) => properties,
        _ => Map::new(),
    }
}

fn schema_of<P: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        // Some clients do not follow references.
        settings.inline_subschemas = true;
    });
    let generator = settings.into_generator();
    generator.into_root_schema_for::<P>().to_value()
}

fn schema<T: Tool>() -> Value {
    let mut schema = schema_of::<T::Args>();
    let Some(fields) = schema.as_object_mut() else {
        return schema;
    };
    for unneeded in ["$schema", "title", "description"] {
        fields.remove(unneeded);
    }
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.extend(T::ABOUT.properties());
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
