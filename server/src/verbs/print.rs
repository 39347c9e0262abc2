//! `print`: the value of an expression, without side effects. Names are those of the selected frame, or only globals
//! while the program runs.

use debuginfo::short_name;
use serde::{Deserialize, Serialize};

use super::{Call, Command, Does, Form, Needs, Takes, Text, Verb, Word, locals, show};
use crate::inspect::{self, Manner, ValueFormat, ValueReport, View};
use crate::past::frames_for;
use crate::protocol::Failure;

/// The `print` verb.
pub struct Print;

/// The arguments of `print`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrintArgs {
    /// The expression.
    pub expression: String,
    /// How to write its value.
    #[serde(default)]
    pub format: ValueFormat,
    /// Include the type in the text; the reply always has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_type: bool,
    /// All of the values, however long they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

impl Verb for Print {
    const NAME: &'static str = "print";
    const DOC: &'static str = "Show the value of an expression\n\n  print *order       $1 = {id = 7, pieces = 3}\n  print $1.pieces    $2 = 3\n  print $            the newest value again; $$ is the one before, $$3 the third before\n  print $n = 5       a variable of the session; set $n = 5 does the same\n\nEach value gets a number, under which the session keeps it as it was. What a kept pointer points to is read when you ask for it.";
    const ALIASES: &'static [&'static str] = &["p"];
    const NEEDS: Needs = Needs::Session;
    const DOES: Does = Does::Look;
    const TAKES: Takes = Takes::Expression;
    type Args = PrintArgs;
    type Reply = ValueReport;

    fn run(call: &Call<'_>, args: PrintArgs) -> Result<ValueReport, Failure> {
        call.look(frames_for(&args.expression), |view| printed(view, &args))
            .map_err(|failure| with_cast(failure, &args))
    }
}

impl Command for Print {
    const WORDS: &'static [Word] = &[
        locals::FORMAT,
        locals::FULL,
        Word::flag("with_type", None, "Show the type too").named("type"),
        Word::new(
            "expression",
            "EXPRESSION",
            Form::Operand,
            "The expression: x, a.b, *p, v[5], $rax, $1",
        ),
    ];

    fn text(reply: &ValueReport, asked: &PrintArgs) -> Text {
        text(reply, asked.with_type)
    }
}

impl PrintArgs {
    fn manner(&self) -> Manner {
        Manner::of_one(self.full).in_format(self.format)
    }
}

/// Writes a value, with its type if `with_type`.
pub(super) fn text(reply: &ValueReport, with_type: bool) -> Text {
    let value = reply.shown.text();
    let ty = match with_type {
        true => format!("({}) ", short_name(&reply.type_name)),
        false => String::new(),
    };
    let value = match reply.number {
        Some(number) => format!("${number} = {ty}{value}"),
        None => format!("{ty}{} = {value}", reply.expression),
    };
    let left_out = reply.shown.left_out.as_deref();
    // The same request would not show more.
    let left_out = left_out.map(|inner| if inner == reply.expression { "" } else { inner });
    let note = reply.note.as_ref().map(|note| format!("({note})"));
    Text::lines([value].into_iter().chain(note)).and(show::left_out([left_out]))
}

/// Adds a hint: the user may have meant `--type TYPE EXPRESSION` as a cast.
fn with_cast(failure: Failure, args: &PrintArgs) -> Failure {
    match args.expression.rsplit_once(' ') {
        Some((ty, expression)) if args.with_type && failure.hint.is_none() => failure.hint(format!(
            "--type shows the type that a value has; to read it as another one, cast it: print \"({ty}){expression}\""
        )),
        _ => failure,
    }
}

/// The remark on a value in a call that has returned: assignments to its parameters are not known.
const OF_LEFT: &str = "in the call that has returned; its parameters have what was passed";

/// Returns the value of an expression. If a recorded thread has just returned, an expression without meaning in the
/// caller's frame is evaluated in the call that has returned.
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
    let expression = match inspect::as_assignment(&args.expression) {
        Some((target, value)) => match inspect::kept_name(&target) {
            Some(name) => inspect::keep(view, name, &value, None).map(|_| target)?,
            None => args.expression.clone(),
        },
        None => args.expression.clone(),
    };
    let mut found = inspect::evaluate_and_keep(view, &expression, args.manner(), None)?;
    if found.shown.value.is_none()
        && let Some(then) = inspect::parameter_at_entry(view, &expression, args.manner())
    {
        found.note = Some(format!("{} = {}", then.shown_name(), then.shown.text()));
        return Ok(found);
    }
    let is_doubtful = found.shown.stale_since.is_some() && view.machine.is_of_unknown_block();
    let of_block = is_doubtful.then(|| replay::UNKNOWN_BLOCK.to_owned());
    let notes = of_block
        .into_iter()
        .chain(inspect::of_other_files(view, &expression));
    let notes: Vec<String> = notes.collect();
    found.note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(found)
}
