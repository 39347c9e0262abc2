//! `debug_goto`: moves through a recording, or through the past of a live program.

use schemars::JsonSchema;
use serde::Deserialize;
use server::protocol::Failure;
use server::verbs::{
    self, CountArgs, GotoArgs, NextBack, Nothing, ReverseContinue, ReverseFinish, StepBack,
};

use super::r#continue::Granularity;
use super::state::Moment;
use crate::answer::Answer;
use crate::context::Context;
use crate::shape;
use crate::tool::Tool;

/// The tool.
pub struct Goto;

/// The parameters of the tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Args {
    /// A seq, first, last, crash, 50%, 1.5s, @NOTE, output:N (the line N of the output), 12+300 (instructions after an event, if it was recorded with --full); live: the program as it is now
    to: Option<Moment>,
    /// Instead of to, one move back: step to the event before, next to the one before in this function or its callers, continue to the last stop, breakpoint or change of a watched value, finish to the call of this function
    back: Option<Back>,
    /// With back step and next, if it was recorded with --full: by a machine instruction instead of a line
    #[serde(default)]
    granularity: Granularity,
    /// With back step and next: so many [default: 1]
    count: Option<u32>,
}

/// A move back.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Back {
    Step,
    Next,
    Continue,
    Finish,
}

impl Tool for Goto {
    const NAME: &'static str = "debug_goto";
    const DOC: &'static str = "Go to an event of a recording, or of the past of a live program (which stays where it is). The tools that look then show that moment. Forward moves: debug_continue.";
    const READ_ONLY: bool = true;
    type Args = Args;

    fn run(context: &Context, args: Args) -> Result<Answer, Failure> {
        fit_together(&args)?;
        let session = context.session()?;
        let once = CountArgs {
            count: args.count,
            instruction: args.granularity == Granularity::Instruction,
        };
        let report = match (args.to, args.back) {
            (Some(to), None) => {
                let to = GotoArgs { to: to.to_string() };
                context.ask::<verbs::Goto>(session, &to)
            }
            (None, Some(Back::Step)) => context.ask::<StepBack>(session, &once),
            (None, Some(Back::Next)) => context.ask::<NextBack>(session, &once),
            (None, Some(Back::Continue)) => context.ask::<ReverseContinue>(session, &Nothing {}),
            (None, Some(Back::Finish)) => context.ask::<ReverseFinish>(session, &Nothing {}),
            _ => return Err(Failure::bad_request("say where to: either to or back")),
        };
        Ok(Answer::Object(shape::motion(context, &report?)?))
    }
}

/// Refuses parameters that the move does not use. A count of one is the default, which clients may write.
fn fit_together(args: &Args) -> Result<(), Failure> {
    let steps = matches!(args.back, Some(Back::Step | Back::Next));
    let is_counted = args.count.is_some_and(|count| count != 1);
    let is_given = is_counted || args.granularity == Granularity::Instruction;
    match is_given && !steps {
        true => Err(Failure::bad_request(
            "only back step and back next take count and granularity",
        )
        .hint("leave them out, or repeat the call")),
        false => Ok(()),
    }
}
