//! `debug_source`: lines of the program's source.

use schemars::JsonSchema;
use serde::Deserialize;
use server::location::Target;
use server::protocol::Failure;
use server::verbs::{self, SourceArgs};

use crate::answer::Answer;
use crate::context::Context;
use crate::tool::Tool;

/// The tool.
pub struct Source;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// A function, file:line or 0xADDRESS [default: the current line]
    location: Option<String>,
    /// Show the whole function
    #[serde(default)]
    whole_function: bool,
    /// How many lines before and after [default: 5]
    context: Option<u32>,
}

impl Tool for Source {
    const NAME: &'static str = "debug_source";
    const DOC: &'static str = "Show source lines around a place, or a whole function. Lines with | have code: breakpoints can be set there.";
    const READ_ONLY: bool = true;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session()?;
        let asked = SourceArgs {
            at: args.location.map(Target::Text),
            context: args.context,
            function: args.whole_function,
            ..SourceArgs::default()
        };
        context
            .read::<verbs::Source>(session, &asked)
            .map(Answer::Text)
    }
}
