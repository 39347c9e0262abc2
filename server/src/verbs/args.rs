//! `args`: the parameters of the function of the frame that is looked at.

use super::{Call, LocalsArgs, VariablesReply, Verb, locals};
use crate::protocol::Failure;

/// The verb.
pub struct Args;

impl Verb for Args {
    const NAME: &'static str = "args";
    type Args = LocalsArgs;
    type Reply = VariablesReply;

    fn run(call: &Call<'_>, args: LocalsArgs) -> Result<VariablesReply, Failure> {
        let mut reply = locals::variables(call, args.format)?;
        reply.variables.retain(|variable| variable.is_parameter);
        Ok(reply)
    }
}
