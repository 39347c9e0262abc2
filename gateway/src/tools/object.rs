//! `debug_object`: the life of a heap block.

use schemars::JsonSchema;
use serde::Deserialize;
use server::protocol::Failure;
use server::verbs::{self, ObjectArgs};

use crate::answer::Answer;
use crate::context::Context;
use crate::tool::Tool;

/// The tool.
pub struct Object;

/// The parameters of `debug_object`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// An address in hexadecimal, or an expression that is a pointer
    address: String,
    /// Look at this seq [default: the moment gone to, or the end of the recording]
    at: Option<u64>,
}

impl Tool for Object {
    const NAME: &'static str = "debug_object";
    const DOC: &'static str = "Show which call made the heap block at an address, which freed it, and what had this address before and after. Needs recorded allocation calls: debug_launch with memory.";
    const READ_ONLY: bool = true;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        let session = context.session()?;
        let asked = ObjectArgs {
            address: args.address,
            at: args.at,
        };
        context
            .read::<verbs::Object>(session, &asked)
            .map(Answer::Text)
    }
}
