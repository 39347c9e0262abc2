//! `eval`: evaluates an expression with its side effects: `x = 3` assigns, `f(1)` calls. Any other expression is
//! printed.

use expr::Calls;
use serde::{Deserialize, Serialize};

use super::{
    Call, Command, Does, Form, Needs, Takes, Text, Verb, WaitsFor, Word, locals, print, set,
};
use crate::inspect::{self, Manner, ValueFormat, ValueReport};
use crate::protocol::{Failure, Notice, NoticeKind};
use crate::session::ProgramCalls;

/// The `eval` verb.
pub struct Eval;

/// The arguments of `eval`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalArgs {
    /// The expression.
    pub expression: String,
    /// How to write its value.
    #[serde(default)]
    pub format: ValueFormat,
    /// All of the value, however long it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

impl Verb for Eval {
    const NAME: &'static str = "eval";
    const DOC: &'static str = "Evaluate an expression with its side effects: x = 3, f(1)";
    const ALIASES: &'static [&'static str] = &["call"];
    const NEEDS: Needs = Needs::RunningProgram;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Expression;
    type Args = EvalArgs;
    type Reply = ValueReport;

    fn run(call: &Call<'_>, args: EvalArgs) -> Result<ValueReport, Failure> {
        let session = call.live()?;
        let tell = |text: String| {
            (call.notify)(Notice {
                kind: NoticeKind::Warning,
                text,
            });
        };
        let calls = session.stopped().ok().map(|stop| ProgramCalls {
            live: &session.live,
            tid: stop.tid,
            timeout: call.config.request_timeout(),
            tell: &tell,
        });
        let calls = calls.as_ref().map(|calls| calls as &dyn Calls);
        let manner = Manner::of_one(args.full).in_format(args.format);
        let Some((target, value)) = inspect::as_assignment(&args.expression) else {
            return session
                .look(|view| inspect::evaluate_and_keep(view, &args.expression, manner, calls));
        };
        match inspect::kept_name(&target) {
            Some(name) => session
                .look(|view| inspect::keep(view, name, &value))
                .map(drop)?,
            None => set::assign(&session, &target, &value).map(drop)?,
        }
        session.look(|view| inspect::evaluate(view, &target, manner, None))
    }
}

impl Command for Eval {
    const WORDS: &'static [Word] = &[
        locals::FORMAT,
        locals::FULL,
        Word::new("expression", "EXPRESSION", Form::Operand, "The expression"),
    ];
    const WAITS_FOR: WaitsFor = WaitsFor::Stop;

    fn text(reply: &ValueReport, _: &EvalArgs) -> Text {
        print::text(reply, false)
    }
}
