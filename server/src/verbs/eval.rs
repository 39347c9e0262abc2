//! `eval`: an expression with its side effects: `x = 3` assigns, `f(1)` calls; anything else is printed.

use expr::Calls;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, WaitsFor, Word, print, set};
use crate::inspect::{self, ValueFormat, ValueReport};
use crate::protocol::Failure;
use crate::session::ProgramCalls;

/// The verb.
pub struct Eval;

/// Its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalArgs {
    /// The expression.
    pub expression: String,
    /// How its value is written.
    #[serde(default)]
    pub format: ValueFormat,
}

impl Verb for Eval {
    const NAME: &'static str = "eval";
    const DOC: &'static str = "Evaluate an expression with its side effects: x = 3, f(1)";
    const NEEDS: Needs = Needs::RunningProgram;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Expression;
    type Args = EvalArgs;
    type Reply = ValueReport;

    fn run(call: &Call<'_>, args: EvalArgs) -> Result<ValueReport, Failure> {
        let session = call.live()?;
        let calls = session.stopped().ok().map(|stop| ProgramCalls {
            live: &session.live,
            tid: stop.tid,
            timeout: call.config.request_timeout(),
        });
        let calls = calls.as_ref().map(|calls| calls as &dyn Calls);
        let target = match inspect::as_assignment(&args.expression) {
            None => args.expression,
            Some((target, value)) => {
                set::assign(&session, &target, &value)?;
                target
            }
        };
        session.look(|view| inspect::evaluate(view, &target, args.format, calls))
    }
}

impl Command for Eval {
    const WORDS: &'static [Word] = &[Word::new(
        "expression",
        "EXPRESSION",
        Form::Operand,
        "The expression",
    )];
    const WAITS_FOR: WaitsFor = WaitsFor::Stop;

    fn text(reply: &ValueReport, _: &EvalArgs) -> Text {
        print::text(reply, false)
    }
}
