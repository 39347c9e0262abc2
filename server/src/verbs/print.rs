//! `print`: the value of an expression, without side effects: of the frame that is looked at, or of the globals while the
//! program runs.

use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, locals};
use crate::inspect::{self, ValueFormat, ValueReport, View};
use crate::protocol::Failure;

/// The verb.
pub struct Print;

/// Its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrintArgs {
    /// The expression.
    pub expression: String,
    /// How it is written.
    #[serde(default)]
    pub format: ValueFormat,
    /// The text says the type too; the reply does in any case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_type: bool,
}

impl Verb for Print {
    const NAME: &'static str = "print";
    const DOC: &'static str = "Show the value of an expression";
    const ALIASES: &'static [&'static str] = &["p"];
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = PrintArgs;
    type Reply = ValueReport;

    fn run(call: &Call<'_>, args: PrintArgs) -> Result<ValueReport, Failure> {
        call.look(1, |view| printed(view, &args))
            .map_err(|failure| with_cast(failure, &args))
    }
}

impl Command for Print {
    const WORDS: &'static [Word] = &[
        locals::FORMAT,
        Word::flag("with_type", None, "Show the type too").named("type"),
        Word::new(
            "expression",
            "EXPRESSION",
            Form::Operand,
            "The expression: x, a.b, *p, v[5], $rax",
        ),
    ];

    fn text(reply: &ValueReport, asked: &PrintArgs) -> Text {
        text(reply, asked.with_type)
    }
}

/// Writes a value, with its type if that is asked for.
pub(super) fn text(reply: &ValueReport, with_type: bool) -> Text {
    let value = format!("{} = {}", reply.expression, reply.shown.text());
    let value = match with_type {
        true => format!("({}) {value}", reply.type_name),
        false => value,
    };
    let note = reply.note.as_ref().map(|note| format!("({note})"));
    Text::lines([value].into_iter().chain(note))
}

/// Names the cast that `--type TYPE EXPRESSION` may have been meant for.
fn with_cast(failure: Failure, args: &PrintArgs) -> Failure {
    match args.expression.rsplit_once(' ') {
        Some((ty, expression)) if args.with_type && failure.hint.is_none() => failure.hint(format!(
            "--type shows the type that a value has; to read it as another one, cast it: print \"({ty}){expression}\""
        )),
        _ => failure,
    }
}

/// What is said of a value in a call that has returned: assignments to its parameters are not known.
const OF_LEFT: &str = "in the call that has returned; its parameters have what was passed";

/// The value of an expression. Where a recorded thread has just returned, what means nothing in the frame that it returned to is
/// read as the call that it returned from.
fn printed(view: &View<'_>, args: &PrintArgs) -> Result<ValueReport, Failure> {
    let found = evaluated(view, args);
    let Some(recorded) = view.recorded else {
        return found;
    };
    if view.frame > 0 || found.is_ok() || !inspect::is_meaningless(view, &args.expression) {
        return found;
    }
    let mut of_left = None;
    recorded.in_left_call(&mut |view| of_left = Some(evaluated(view, args)))?;
    match of_left {
        Some(Ok(mut left)) => {
            let of_block = left.note.map(|note| format!("; {note}"));
            left.note = Some(format!("{OF_LEFT}{}", of_block.unwrap_or_default()));
            Ok(left)
        }
        _ => found,
    }
}

fn evaluated(view: &View<'_>, args: &PrintArgs) -> Result<ValueReport, Failure> {
    let mut found = inspect::evaluate(view, &args.expression, args.format, None)?;
    let is_doubtful = found.shown.stale_since.is_some() && view.machine.is_of_unknown_block();
    found.note = is_doubtful.then(|| replay::UNKNOWN_BLOCK.to_owned());
    Ok(found)
}
