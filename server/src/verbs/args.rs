//! `args`: the parameters of the selected frame's function.

use super::{Call, Command, Does, LocalsArgs, Needs, Text, VariablesReply, Verb, Word, locals};
use crate::protocol::Failure;

/// The `args` verb.
pub struct Args;

impl Verb for Args {
    const NAME: &'static str = "args";
    const DOC: &'static str = "Show the arguments of the current function";
    const NEEDS: Needs = Needs::Frame;
    const DOES: Does = Does::Look;
    type Args = LocalsArgs;
    type Reply = VariablesReply;

    fn run(call: &Call<'_>, args: LocalsArgs) -> Result<VariablesReply, Failure> {
        let mut reply = call.look(1, |view| locals::described(view, args.manner()))?;
        let own = reply.own.as_mut().map(|own| &mut own.variables);
        for variables in std::iter::once(&mut reply.variables).chain(own) {
            variables.retain(|variable| variable.is_parameter);
        }
        Ok(reply)
    }
}

impl Command for Args {
    const WORDS: &'static [Word] = &[locals::FORMAT, locals::FULL];

    fn text(reply: &VariablesReply, asked: &LocalsArgs) -> Text {
        reply.text(asked.full)
    }
}
