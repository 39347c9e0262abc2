//! Evaluates conditions and messages in a stopped thread.

use std::cell::Cell;
use std::time::Duration;

use debuginfo::{Limit, backtrace};
use expr::{Context, Expression, Part, Template};
use values::RenderOptions;

use crate::live::{
    breakpoints::Breakpoints,
    condition::Message,
    model::{ProbeId, Tid},
    probes::Probes,
    tracee::{Tracee, machine::LiveMachine},
};

/// Frames that an expression may need: its own, and the caller's for values that only the caller still has.
pub(crate) const FRAMES: usize = 2;
/// Maximum number of frames to search for names that the innermost frames do not have.
pub(crate) const MOST_FRAMES: usize = 64;

/// A formatted message.
#[derive(Default)]
pub(crate) struct Filled {
    pub text: String,
    /// Its values as text, with the expressions.
    pub values: Vec<(String, String)>,
    /// Why the first missing value is missing.
    pub error: Option<String>,
}

impl Filled {
    /// Makes the text of a message; `value` makes that of a part that is no plain text.
    pub fn of(
        template: &Template,
        mut value: impl FnMut(&Part) -> Result<String, String>,
    ) -> Filled {
        let mut filled = Filled::default();
        for part in &template.parts {
            let source = match part {
                Part::Text(text) => {
                    filled.text.push_str(text);
                    continue;
                }
                Part::Script { source } => source,
                Part::Value { expression, .. } => expression.text(),
            };
            let text = value(part).unwrap_or_else(|why| {
                let text = format!("<error: {why}>");
                filled
                    .error
                    .get_or_insert_with(|| format!("{source}: {why}"));
                text
            });
            filled.text.push_str(&text);
            filled.values.push((source.to_owned(), text));
        }
        filled
    }
}

/// Time limit for a condition, a message or a displayed value.
const JUDGE_TIME: Duration = Duration::from_secs(1);

/// Renders a part of a message with as few frames as it needs; `in_frames` asks with a number of frames.
pub(crate) fn part_with_few_frames(
    part: &Part,
    in_frames: impl Fn(usize, &dyn Fn(&Context<'_>) -> Result<String, String>) -> Result<String, String>,
) -> Result<String, String> {
    let options = RenderOptions::one_of_many();
    let needs_more = Cell::new(false);
    let few = in_frames(FRAMES, &|context| {
        let rendered = part.render(context, &options);
        needs_more.set(rendered.is_err() && part.needs_callers(context));
        rendered
    });
    match needs_more.get() {
        true => in_frames(MOST_FRAMES, &|context| part.render(context, &options)),
        false => few,
    }
}

/// Judges a condition with as few frames as it needs; `in_frames` asks with a number of frames.
pub(crate) fn with_few_frames(
    condition: &Expression,
    in_frames: impl Fn(usize, &dyn Fn(&Context<'_>) -> Result<bool, String>) -> Result<bool, String>,
) -> Result<bool, String> {
    let needs_more = Cell::new(false);
    let judge = |context: &Context<'_>| {
        let held = holds_in(condition, context);
        needs_more.set(held.is_err() && condition.needs_callers(context));
        held
    };
    // Most conditions need no caller, and finding it takes as long as all the rest.
    let few = in_frames(1, &judge).or_else(|_| in_frames(FRAMES, &judge));
    match needs_more.get() {
        true => in_frames(MOST_FRAMES, &judge),
        false => few,
    }
}

/// Returns whether a condition holds.
fn holds_in(condition: &Expression, context: &Context<'_>) -> Result<bool, String> {
    let parsed = condition.within(context);
    let parsed = parsed.map_err(|error| error.one_line())?;
    let holds = expr::evaluate_condition(&parsed, context);
    holds
        .map(|(holds, _)| holds)
        .map_err(|error| error.one_line())
}

/// Evaluates expressions in a thread that does not run: it reads the program, and changes nothing.
pub(crate) struct Evaluator<'a> {
    pub tracee: &'a Tracee,
    pub breakpoints: &'a Breakpoints,
    pub probes: &'a Probes,
}

impl Evaluator<'_> {
    pub fn evaluate_condition(&self, tid: Tid, condition: &Expression) -> Result<bool, String> {
        with_few_frames(condition, |frames, work| {
            self.in_frames(tid, frames, work)?
        })
    }

    /// As [`evaluate_condition`](Self::evaluate_condition), for watched memory: the code that wrote there may not have
    /// the names that the condition uses, so the outer frames are searched too.
    pub fn evaluate_outwards(&self, tid: Tid, condition: &Expression) -> Result<bool, String> {
        let machine = self.judged_machine(tid)?;
        let space = self.tracee.space_now();
        let frames = backtrace(&space, &machine, MOST_FRAMES).frames;
        let mut first = None;
        for index in 0..frames.len() {
            let context =
                Context::new(&space, &machine, &frames, index).with_kept(&self.probes.kept);
            let parsed = condition.within(&context);
            let parsed = parsed.map_err(|error| error.one_line())?;
            match expr::evaluate_condition(&parsed, &context) {
                Ok((holds, _)) => return Ok(holds),
                Err(error) => first = first.or(Some(error.one_line())),
            }
        }
        Err(first.unwrap_or_else(|| "the thread has no frame".to_owned()))
    }

    /// Formats a probe's message. A part without a value says why.
    pub fn fill_in(&self, tid: Tid, id: ProbeId) -> Filled {
        let probe = self.probes.by_id.get(&id);
        let message = probe.and_then(|probe| probe.view.spec.action.message());
        let Some(template) = message.map(Message::template) else {
            return Filled::default();
        };
        let mut scripts = self.probes.scripts.in_message(id).iter();
        Filled::of(template, |part| match part {
            Part::Script { .. } => {
                let script = scripts.next().ok_or_else(|| "it is gone".to_owned());
                script.and_then(|script| self.script_text(tid, script))
            }
            part => part_with_few_frames(part, |frames, work| self.in_frames(tid, frames, work)?),
        })
    }

    pub fn in_context<R>(
        &self,
        tid: Tid,
        work: impl FnOnce(&Context<'_>) -> R,
    ) -> Result<R, String> {
        self.in_frames(tid, FRAMES, work)
    }

    /// Returns a thread whose memory can be read for a limited time only, since the tracer does nothing else meanwhile.
    pub(super) fn judged_machine(&self, tid: Tid) -> Result<LiveMachine, String> {
        let machine = self
            .tracee
            .machine(self.breakpoints, tid)
            .map_err(|error| error.one_line())?;
        Ok(machine.limited(Limit::new(JUDGE_TIME)))
    }

    pub(super) fn in_frames<R>(
        &self,
        tid: Tid,
        most: usize,
        work: impl FnOnce(&Context<'_>) -> R,
    ) -> Result<R, String> {
        let machine = self.judged_machine(tid)?;
        let space = self.tracee.space_now();
        let frames = backtrace(&space, &machine, most).frames;
        Ok(work(
            &Context::new(&space, &machine, &frames, 0).with_kept(&self.probes.kept),
        ))
    }
}
