//! `eval`: evaluates an expression with its side effects: `x = 3` assigns, `f(1)` calls. Any other expression is
//! printed. In a recording of every instruction, `f(1)` calls in a copy of the program, of which nothing stays.

use std::sync::Arc;

use debuginfo::Diagnostic;
use expr::Calls;
use serde::{Deserialize, Serialize};

use super::{
    Call, Command, Does, Form, Needs, Takes, Text, Verb, WaitsFor, Word, locals, print, set,
};
use crate::inspect::{self, Manner, ValueFormat, ValueReport};
use crate::past::{Past, frames_for};
use crate::protocol::{Code, Failure, Notice, NoticeKind};
use crate::session::{LiveSession, ProgramCalls, Session, StoppedThread};

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
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Change;
    const TAKES: Takes = Takes::Expression;
    type Args = EvalArgs;
    type Reply = ValueReport;

    fn run(call: &Call<'_>, args: EvalArgs) -> Result<ValueReport, Failure> {
        match call.target()? {
            Session::Live(session) => now(call, &session, &args),
            Session::Recorded(past) => then(call, &past, &args),
        }
    }
}

/// Evaluates in the program as it is.
fn now(
    call: &Call<'_>,
    session: &Arc<LiveSession>,
    args: &EvalArgs,
) -> Result<ValueReport, Failure> {
    session.must_run()?;
    let tell = |text| (call.notify)(Notice::new(NoticeKind::Warning, text));
    let caller = session.stopped().ok().map(|stop| StoppedThread {
        live: &session.live,
        tid: stop.tid,
    });
    let calls = caller.as_ref().map(|caller| ProgramCalls {
        caller,
        timeout: call.config.request_timeout(),
        tell: &tell,
    });
    // A client that goes leaves no function running.
    let _waiting = caller.as_ref().map(|caller| {
        let (live, tid) = (session.live.clone(), caller.tid);
        call.gone.waiting(move || drop(live.interrupt_call(tid)))
    });
    if call.is_gone() {
        return Err(Failure::new(
            Code::EvalFailed,
            "nothing was evaluated: the client has gone",
        ));
    }
    let evaluated = evaluated(
        session,
        args,
        calls.as_ref().map(|calls| calls as &dyn Calls),
    );
    // Nobody is there to read it: the next client is told.
    evaluated.inspect_err(|failure| {
        if call.is_gone() {
            session.warn(Diagnostic {
                message: format!("eval {}: {}", args.expression, failure.message),
                hint: failure.hint.clone(),
            });
        }
    })
}

/// The value of an expression, or of what it assigns to.
fn evaluated(
    session: &LiveSession,
    args: &EvalArgs,
    calls: Option<&dyn Calls>,
) -> Result<ValueReport, Failure> {
    let manner = Manner::of_one(args.full).in_format(args.format);
    let Some((target, value)) = inspect::as_assignment(&args.expression) else {
        return session
            .look(|view| inspect::evaluate_and_keep(view, &args.expression, manner, calls));
    };
    match inspect::kept_name(&target) {
        Some(name) => session
            .look(|view| inspect::keep(view, name, &value, calls))
            .map(drop)?,
        None => set::assign(session, &target, &value).map(drop)?,
    }
    session.look(|view| inspect::evaluate(view, &target, manner, None))
}

/// Returns whether an expression has no value: it calls a function without a result, or discards it.
fn is_nothing(reply: &ValueReport) -> bool {
    reply.type_name == "void"
}

/// Evaluates at a recorded moment. Functions are called in a copy of the program.
fn then(call: &Call<'_>, past: &Past, args: &EvalArgs) -> Result<ValueReport, Failure> {
    if past.is_of_a_session() {
        // The program is there, and it is the one that can be changed.
        return Err(past.needs_the_program(&what(&args.expression)));
    }
    if let Some((target, _)) = inspect::as_assignment(&args.expression)
        && inspect::kept_name(&target).is_none()
    {
        return Err(past.needs_the_program(&what(&args.expression)));
    }
    let tell = |text| (call.notify)(Notice::new(NoticeKind::Warning, text));
    let manner = Manner::of_one(args.full).in_format(args.format);
    past.look(frames_for(&args.expression), |looked| {
        let caller = looked.caller(&tell);
        let calls = ProgramCalls {
            caller: &caller,
            timeout: call.config.question_time(),
            tell: &tell,
        };
        let view = looked.view();
        let Some((target, value)) = inspect::as_assignment(&args.expression) else {
            return inspect::evaluate_and_keep(&view, &args.expression, manner, Some(&calls));
        };
        if let Some(name) = inspect::kept_name(&target) {
            inspect::keep(&view, name, &value, Some(&calls))?;
        }
        inspect::evaluate(&view, &target, manner, None)
    })
}

/// What an expression does, for refusals: `set x = 3` comes here, too.
fn what(expression: &str) -> String {
    match inspect::as_assignment(expression) {
        Some((target, _)) => format!("assigning to {target}"),
        None => "eval".to_owned(),
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
        match is_nothing(reply) {
            true => Text::default(),
            false => print::text(reply, false),
        }
    }
}
