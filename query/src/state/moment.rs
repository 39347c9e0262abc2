//! Evaluates expressions and registers at recorded moments.

use debuginfo::value::{Look, Value};
use debuginfo::{Certainty, Diagnostic, Extended, Register};
use expr::{Context, Expr, ExprKind, Missing, Span};
use replay::{Event, Instant, Moment, Parameters, Places, Seen, State, Timeline};
use values::{RenderOptions, render_certain, render_known};

use super::traces::Traces;

/// Bytes of a register such as xmm0.
const VECTOR_BYTES: usize = 16;

/// Why an expression has no value.
struct NoValue {
    why: Diagnostic,
    /// It has no meaning there, for any values.
    is_meaningless: bool,
}

/// A formatter of values; `None` if the value is unknown.
pub type Show<'s> = &'s dyn Fn(&Value, &Look<'_>) -> Option<String>;

/// Returns the value of an expression at the entry of a function, if it is a parameter that the enter event alone
/// gives. The outer option: whether it is one.
///
/// # Errors
/// The files cannot be read.
pub fn at_entry(
    parameters: &mut Parameters,
    timeline: &Timeline,
    event: &Event,
    expression: &Expr,
) -> replay::Result<Option<Option<String>>> {
    match (&expression.kind, event) {
        (ExprKind::Name(name), Event::Enter(call)) => parameters.at_entry(timeline, call, name),
        _ => Ok(None),
    }
}

/// The moment of an event's thread, or of the one that runs between two events.
fn at(timeline: &Timeline, instant: Instant, limit: usize) -> replay::Result<Moment<'_>> {
    let Instant { seq, steps } = instant;
    let tid = thread(timeline, instant)?;
    Moment::after(timeline, seq, steps, tid, limit)
}

/// Returns the thread of a moment.
pub fn thread(timeline: &Timeline, instant: Instant) -> replay::Result<u32> {
    match instant.steps {
        0 => timeline.thread_at(instant.seq),
        steps => timeline.thread_after(instant.seq, steps),
    }
}

/// Returns the value of an expression as text, in a frame of the thread of a moment; `None` if it is unknown. `traces` keeps the
/// frames for other expressions.
///
/// # Errors
/// The files cannot be read.
pub fn value(
    traces: &mut Traces,
    timeline: &Timeline,
    instant: Instant,
    frame: usize,
    expression: &Expr,
) -> replay::Result<Option<String>> {
    let limit = match names_function(expression) {
        true => MOST_FRAMES,
        false => 1,
    };
    let limit = limit.max(frame.saturating_add(1));
    traces.ask(timeline, instant, limit, |moment| match frame {
        0 => value_in(moment, expression, &known),
        _ => evaluate_in(moment, frame, expression, known).ok().flatten(),
    })
}

/// The same in the innermost frame. `places` keeps the data that moments share.
///
/// # Errors
/// The files cannot be read.
pub fn innermost_value(
    places: &mut Places,
    timeline: &Timeline,
    (seq, event): (u64, Event),
    expression: &Expr,
) -> replay::Result<Option<String>> {
    innermost_shown(places, timeline, (seq, event), expression, &known)
}

/// The same, formatted by `show`.
///
/// # Errors
/// The files cannot be read.
pub fn innermost_shown(
    places: &mut Places,
    timeline: &Timeline,
    (seq, event): (u64, Event),
    expression: &Expr,
    show: Show<'_>,
) -> replay::Result<Option<String>> {
    let names_function = names_function(expression);
    let ask = |moment: &Moment<'_>| match names_function {
        // It may belong to an outer frame.
        true => evaluate_in(moment, 0, expression, show).ok().flatten(),
        false => value_in(moment, expression, show),
    };
    let found = places.ask(timeline, seq, event, ask)?;
    if found.is_some() || !names_function {
        return Ok(found);
    }
    let moment = Moment::at(timeline, seq, timeline.thread_at(seq)?, MOST_FRAMES)?;
    Ok(value_in(&moment, expression, show))
}

/// The same in the call that the thread returned from at a moment: with its parameters as passed, and memory as it
/// is then.
///
/// # Errors
/// The files cannot be read.
pub fn left_value(
    traces: &mut Traces,
    timeline: &Timeline,
    instant: Instant,
    expression: &Expr,
) -> replay::Result<Option<String>> {
    traces.ask(timeline, instant, 1, |moment| {
        shown_in_left(moment, expression, known).flatten()
    })
}

/// Returns whether a name is qualified by its function, or by another scope.
fn names_function(expression: &Expr) -> bool {
    let mut names = expr::names(expression).into_iter();
    names.any(|name| name.contains("::"))
}

/// Most frames that are searched for the function of a qualified variable.
const MOST_FRAMES: usize = 256;

/// Explains why the value of an expression in the innermost frame is unknown.
///
/// # Errors
/// The files cannot be read.
pub fn why_unknown(
    timeline: &Timeline,
    instant: Instant,
    expression: &Expr,
) -> replay::Result<String> {
    let limit = match names_function(expression) {
        true => MOST_FRAMES,
        false => 1,
    };
    let moment = at(timeline, instant, limit)?;
    Ok(why_unknown_in(&moment, expression))
}

/// Returns why an expression has no meaning after event `seq`, if so.
pub fn why_meaningless(
    timeline: &Timeline,
    seq: u64,
    expression: &Expr,
) -> replay::Result<Option<Diagnostic>> {
    let moment = Moment::at(timeline, seq, timeline.thread_at(seq)?, 1)?;
    let error = evaluate_in(&moment, 0, expression, why).err();
    Ok(error.and_then(|error| error.is_meaningless.then_some(error.why)))
}

/// Evaluates at the last event, in no frame: with the modules that are loaded then.
///
/// # Errors
/// The files cannot be read.
pub fn without_frames<R>(
    timeline: &Timeline,
    ask: impl FnOnce(&Context<'_>) -> R,
) -> replay::Result<R> {
    let seq = timeline.last();
    let moment = Moment::at(timeline, seq, timeline.thread_at(seq)?, 1)?;
    let machine = moment.machine();
    Ok(ask(&Context::new(&moment.space, &machine, &[], 0)))
}

/// Returns why a variable that is named with its function is known at no event, if so: no function of that name has it.
///
/// # Errors
/// The files cannot be read.
pub fn why_never(timeline: &Timeline, name: &str) -> replay::Result<Option<Diagnostic>> {
    let Some(path) = expr::path_of(name) else {
        return Ok(None);
    };
    let named = Expr::new(ExprKind::Name(name.to_owned()), Span::default());
    let (error, near) = without_frames(timeline, |context| {
        let near = context.space.near(0).into_iter();
        let near: Vec<u32> = near.map(|own| own.number).collect();
        (expr::evaluate(&named, context).err(), near)
    })?;
    let Some(error) = error.filter(|error| error.missing == Some(Missing::OfFunction)) else {
        return Ok(None);
    };
    // The code of a library sees functions of its own.
    let all = timeline.modules().all_usable();
    let mut others = all.iter().filter(|other| !near.contains(&other.number));
    let is_elsewhere = others.any(|other| !other.functions_matching(path).is_empty());
    Ok((!is_elsewhere).then(|| error.into()))
}

/// The explanation of a known value.
pub const KNOWN: &str = "known";

fn why_unknown_in(moment: &Moment<'_>, expression: &Expr) -> String {
    let why = match evaluate_in(moment, 0, expression, why) {
        Ok(why) => why,
        Err(error) => {
            let of_left = || shown_in_left(moment, expression, why);
            let of_left = error.is_meaningless.then(of_left).flatten();
            of_left.unwrap_or_else(|| format!("unknown: {}", error.why.one_line()))
        }
    };
    match shown_in_left(moment, expression, known).flatten() {
        Some(_) => format!(
            "{why} (in the caller; frame_value(seq, -1, expression) is that of the call which returned)"
        ),
        None => why,
    }
}

fn why(value: &Value, look: &Look<'_>) -> String {
    if let Err(why) = &value.bytes {
        let why = why.to_string();
        // Some reasons already begin with that.
        return format!("unknown: {}", why.strip_prefix("unknown: ").unwrap_or(&why));
    }
    let (_, within) = render_certain(value, &RenderOptions::default(), look);
    match value.certainty.and(within) {
        Certainty::Stale { as_of } if look.machine.is_of_unknown_block() => {
            format!("stale since event {as_of}; {}", replay::UNKNOWN_BLOCK)
        }
        Certainty::Stale { as_of } => format!("stale since event {as_of}"),
        // The register in which it is passed was not captured.
        Certainty::Known => "unknown: not kept where the function was entered".to_owned(),
    }
}

fn known(value: &Value, look: &Look<'_>) -> Option<String> {
    render_known(value, &RenderOptions::default(), look)
}

/// The value in the innermost frame. Where a thread has just returned, a name without a meaning there is read in the
/// call that it returned from.
fn value_in(moment: &Moment<'_>, expression: &Expr, show: Show<'_>) -> Option<String> {
    match evaluate_in(moment, 0, expression, show) {
        Ok(found) => found,
        Err(error) if error.is_meaningless => shown_in_left(moment, expression, show).flatten(),
        Err(_) => None,
    }
}

/// The value in the call that the thread has just returned from, if there is one and the expression has a meaning in
/// it.
pub fn shown_in_left<T>(
    moment: &Moment<'_>,
    expression: &Expr,
    show: impl FnOnce(&Value, &Look<'_>) -> T,
) -> Option<T> {
    let found = moment.in_left_call(|machine, frames| {
        let space = &*moment.space;
        let context = Context::new(space, machine, frames, 0);
        let value = expr::evaluate(expression, &context).ok()?;
        Some(show(&value, &Look { space, machine }))
    });
    found.ok().flatten().flatten()
}

fn evaluate_in<T>(
    moment: &Moment<'_>,
    frame: usize,
    expression: &Expr,
    show: impl FnOnce(&Value, &Look<'_>) -> T,
) -> Result<T, NoValue> {
    let frames = &moment.trace.backtrace.frames;
    // Globals are known without a frame, and so is what is qualified with the function of another frame; in an unknown
    // frame, nothing is.
    let is_known = frames.get(frame).is_some_and(|f| f.pc_is_known);
    if frame > 0 && !is_known {
        return Err(NoValue {
            why: format!("frame {frame} is not known").into(),
            is_meaningless: false,
        });
    }
    let machine = moment.machine();
    let context = Context::new(
        &moment.space,
        &machine,
        frames,
        if is_known { frame } else { frames.len() },
    );
    let value = expr::evaluate(expression, &context).map_err(|error| NoValue {
        is_meaningless: error.is_meaningless,
        why: error.into(),
    })?;
    let look = Look {
        space: &moment.space,
        machine: &machine,
    };
    Ok(show(&value, &look))
}

/// Returns a general register of the thread of a moment, if it is known.
///
/// # Errors
/// The files cannot be read.
pub fn register(timeline: &Timeline, instant: Instant, name: &str) -> replay::Result<Option<u64>> {
    let Some(register) = Register::by_name(name) else {
        return Ok(None);
    };
    let tid = thread(timeline, instant)?;
    let state = State::after(timeline, instant.seq, instant.steps, tid)?;
    Ok(match state.register(register) {
        Seen::Known { value, .. } => Some(value),
        Seen::Stale { .. } | Seen::Unknown(_) => None,
    })
}

/// A register that is wider than an integer, or not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wide {
    /// xmm0 to xmm15.
    Vector(Register),
    /// One of the area of XSAVE.
    Extended(Extended),
}

impl Wide {
    /// Finds a register by gdb's name for it.
    pub fn by_name(name: &str) -> Option<Wide> {
        let vectors = Register::XMM0.0..Register::XMM0.0 + 16;
        let vector = Register::by_name(name).filter(|register| vectors.contains(&register.0));
        let extended = || Extended::by_name(name).map(Wide::Extended);
        vector.map(Wide::Vector).or_else(extended)
    }
}

/// Returns the bytes of a wide register of the thread of a moment, in memory order, if all of them are known.
///
/// # Errors
/// The files cannot be read.
pub fn wide_register(
    timeline: &Timeline,
    instant: Instant,
    register: Wide,
) -> replay::Result<Option<Vec<u8>>> {
    let tid = thread(timeline, instant)?;
    let state = State::after(timeline, instant.seq, instant.steps, tid)?;
    let register = match register {
        Wide::Extended(register) => register,
        Wide::Vector(register) => {
            return Ok(match state.vector(register) {
                Seen::Known { value, .. } if value.len() == VECTOR_BYTES => Some(value),
                _ => None,
            });
        }
    };
    let area = state.extended()?;
    Ok(area.and_then(|area| register.read(&area)))
}

/// Returns bytes of memory as of a moment, if all of them are known.
///
/// # Errors
/// The files cannot be read.
pub fn memory(
    timeline: &Timeline,
    instant: Instant,
    address: u64,
    len: u64,
) -> replay::Result<Option<Vec<u8>>> {
    let tid = thread(timeline, instant)?;
    let state = State::after(timeline, instant.seq, instant.steps, tid)?;
    let mut bytes = Vec::new();
    for run in state.memory(address, len)? {
        match run.bytes {
            Seen::Known { value, .. } => bytes.extend(value),
            Seen::Stale { .. } | Seen::Unknown(_) => return Ok(None),
        }
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_value_that_takes_too_long_is_unknown_and_the_reason_says_so() {
        let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../repl/tests/recordings");
        let temp = tempfile::tempdir().unwrap();
        let timeline = Timeline::open(&recordings.join("captured.hindsight"), temp.path()).unwrap();
        let expression = expr::parse("sold + sold").unwrap();
        let instant = Instant { seq: 6, steps: 0 };
        let ask = || {
            let found = value(&mut Traces::default(), &timeline, instant, 0, &expression);
            found.unwrap()
        };
        assert_eq!(ask(), Some("0".to_owned()));
        let (found, why) = replay::with_question_time(Duration::ZERO, || {
            let why = why_unknown(&timeline, instant, &expression);
            (ask(), why.unwrap())
        });
        assert_eq!(found, None);
        let words = "the question took longer than 0ns and was given up";
        assert!(why.starts_with("unknown: ") && why.contains(words), "{why}");
    }
}
