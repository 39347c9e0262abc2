//! Conditions and messages, evaluated where a recording of every instruction stands at the moment, and conditions at the entry of a
//! recorded call. The rules are those of a program under control.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use debuginfo::{AddressSpace, Certainty, Diagnostic, backtrace};
use expr::{Context, EvalError, Expression, HIT_COUNT, Kept, Part, Template};
use recorder::live::{Condition, Message};
use replay::Arrival;
use values::RenderOptions;

use crate::inspect::{self, View};
use crate::protocol::{Code, Failure};

/// Frames that an expression may need: its own, and the caller's for values that only the caller still has.
const FRAMES: usize = 2;
/// Most frames that are searched for names that the innermost frames do not have.
const MOST_FRAMES: usize = 64;

/// A condition, or none.
#[derive(Clone)]
pub(super) struct Judge {
    condition: Option<Expression>,
    kept: Arc<Kept>,
}

/// A message.
pub(super) struct Writer {
    template: Template,
    kept: Arc<Kept>,
}

/// Evaluations that failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Failed {
    count: u64,
    first: Option<(u64, String)>,
}

impl Judge {
    /// Parses a condition. Only a logpoint counts its hits from the start of the run.
    pub fn new(text: Option<&str>, kept: &Arc<Kept>, counts: bool) -> Result<Judge, Failure> {
        let condition = match inspect::condition(text)? {
            None => None,
            Some(Condition::Own(expression)) => Some(expression),
            Some(Condition::JavaScript(_)) => return Err(no_scripts("condition")),
        };
        if let Some(text) = text.filter(|text| !counts && text.contains(HIT_COUNT)) {
            let message =
                format!("in a recording, {HIT_COUNT} has no value in a condition: {text}");
            return Err(Failure::new(Code::InvalidCondition, message).hint(
                "stop at the Nth hit of the whole run: break LOCATION --hit-count N; or pass some: ignore ID COUNT",
            ));
        }
        Ok(Judge {
            condition,
            kept: Arc::clone(kept),
        })
    }

    /// Says whether there is a condition.
    pub fn is_conditional(&self) -> bool {
        self.condition.is_some()
    }

    /// Returns the names of the variables that decide the condition, if nothing else does.
    pub fn operands(&self) -> Option<Vec<String>> {
        self.condition.as_ref()?.operands()
    }

    /// Why the condition can never be evaluated at an address, if that is certain: it has a name that is unknown there.
    /// `inside`: so many of the inlined calls around the address are not looked into.
    pub fn missing_at(&self, space: &AddressSpace, pc: u64, inside: usize) -> Option<Diagnostic> {
        // Names with a scope may be those of an outer frame.
        let condition = self
            .condition
            .as_ref()
            .filter(|condition| !condition.names_scopes())?;
        let missing = expr::missing_names(condition, space, pc, inside, &self.kept);
        missing.into_iter().next()
    }

    /// Says whether the condition is true in a frame.
    pub fn holds_in(&self, view: &View<'_>) -> Result<bool, String> {
        let Some(condition) = &self.condition else {
            return Ok(true);
        };
        let context =
            Context::new(view.space, view.machine, view.frames, view.frame).with_kept(view.kept);
        let done = catch_unwind(AssertUnwindSafe(|| {
            let parsed = condition.within(&context);
            let parsed = parsed.map_err(|error| error.one_line())?;
            judged(expr::evaluate_condition(&parsed, &context))
        }));
        done.unwrap_or_else(|_| Err("internal error while evaluating it".to_owned()))
    }

    /// Says whether the condition is true here.
    pub fn holds(&self, arrival: &mut Arrival<'_>, hit_count: Option<u64>) -> Result<bool, String> {
        let Some(condition) = &self.condition else {
            return Ok(true);
        };
        let needs_more = Cell::new(false);
        let mut evaluate = |frames| {
            self.with(arrival, hit_count, frames, |context| {
                let parsed = condition.within(context);
                let parsed = parsed.map_err(|error| error.one_line())?;
                let held = judged(expr::evaluate_condition(&parsed, context));
                needs_more.set(held.is_err() && condition.needs_callers(context));
                held
            })
        };
        // Most conditions need no caller.
        let called = evaluate(1).or_else(|_| evaluate(FRAMES));
        match needs_more.get() {
            true => evaluate(MOST_FRAMES),
            false => called,
        }
    }

    fn with<T>(
        &self,
        arrival: &mut Arrival<'_>,
        hit_count: Option<u64>,
        frames: usize,
        work: impl FnOnce(&Context<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        in_frames(arrival, &self.kept, (hit_count, frames), work)
    }
}

impl Writer {
    /// Reads a message.
    pub fn new(text: &str, kept: &Arc<Kept>) -> Result<Writer, Failure> {
        let message: Message = inspect::message(text)?;
        let template = message.template().clone();
        let mut parts = template.parts.iter();
        if parts.any(|part| matches!(part, Part::Script { .. })) {
            return Err(no_scripts("message"));
        }
        Ok(Writer {
            template,
            kept: Arc::clone(kept),
        })
    }

    /// Writes the message with the values of this moment. An unknown value says why.
    pub fn write(&self, arrival: &mut Arrival<'_>, hit_count: u64) -> String {
        let mut text = String::new();
        for part in &self.template.parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                part => match self.written(part, arrival, hit_count) {
                    Ok(value) => text.push_str(&value),
                    Err(why) => text.push_str(&format!("<error: {why}>")),
                },
            }
        }
        text
    }

    /// Writes a value with as few frames as it needs.
    fn written(
        &self,
        part: &Part,
        arrival: &mut Arrival<'_>,
        hit_count: u64,
    ) -> Result<String, String> {
        let needs_more = Cell::new(false);
        let mut write = |frames| {
            in_frames(arrival, &self.kept, (Some(hit_count), frames), |context| {
                let text = part.render(context, &RenderOptions::one_of_many());
                needs_more.set(text.is_err() && part.needs_callers(context));
                text
            })
        };
        let few = write(FRAMES);
        match needs_more.get() {
            true => write(MOST_FRAMES),
            false => few,
        }
    }
}

impl Failed {
    /// Notes one.
    pub fn note(&mut self, position: u64, why: String) {
        self.count += 1;
        self.first.get_or_insert((position, why));
    }

    /// Returns how many there were, where the first one was, and why.
    pub fn first(&self) -> Option<(u64, u64, &str)> {
        let (position, why) = self.first.as_ref()?;
        Some((self.count, *position, why))
    }
}

/// Returns whether a condition holds at its moment. Values that may have changed since they were seen do not tell.
fn judged(holds: Result<(bool, Certainty), EvalError>) -> Result<bool, String> {
    match holds.map_err(|error| error.one_line())? {
        (holds, Certainty::Known) => Ok(holds),
        (_, Certainty::Stale { as_of }) => Err(format!(
            "its values are those of event {as_of} and may have changed since"
        )),
    }
}

fn in_frames<T>(
    arrival: &mut Arrival<'_>,
    kept: &Kept,
    (hit_count, frames): (Option<u64>, usize),
    work: impl FnOnce(&Context<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let space = arrival.space;
    let machine = arrival.machine(hit_count);
    let done = catch_unwind(AssertUnwindSafe(|| {
        let frames = backtrace(space, machine, frames).frames;
        work(&Context::new(space, machine, &frames, 0).with_kept(kept))
    }));
    done.unwrap_or_else(|_| Err("internal error while evaluating it".to_owned()))
}

fn no_scripts(what: &str) -> Failure {
    let message =
        format!("the {what} is JavaScript, which runs only beside a program under control");
    Failure::new(Code::InvalidCondition, message)
        .hint("write it as an expression, as for print: n > 3 && p->len == 0")
}
