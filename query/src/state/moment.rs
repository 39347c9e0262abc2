//! Expressions and registers at recorded moments.

use debuginfo::expr::{self, Context, Expr};
use debuginfo::value::{Look, RenderOptions, Value, render_certain, render_known};
use debuginfo::{Certainty, Register};
use expr::ExprKind;
use replay::{Event, Moment, Parameters, Places, Seen, State, StateMachine, Timeline};

/// Returns the value of an expression at the entry of a function, if it is a parameter that can be read without more.
/// The outer option: whether this is so.
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

/// Returns the value of an expression as text, in a frame of the thread that event `seq` is about; `None` if it is not known.
///
/// # Errors
/// The files cannot be read.
pub fn value(
    timeline: &Timeline,
    seq: u64,
    frame: usize,
    expression: &Expr,
) -> replay::Result<Option<String>> {
    let tid = timeline.thread_at(seq)?;
    let moment = Moment::at(timeline, seq, tid, frame + 1)?;
    Ok(value_in(&moment, frame, expression))
}

/// The same in the innermost frame. What one moment has in common with the next is kept in `places`.
///
/// # Errors
/// The files cannot be read.
pub fn innermost_value(
    places: &mut Places,
    timeline: &Timeline,
    (seq, event): (u64, Event),
    expression: &Expr,
) -> replay::Result<Option<String>> {
    let ask = |moment: &Moment<'_>| value_in(moment, 0, expression);
    let found = places.ask(timeline, seq, event, ask)?;
    if found.is_some() || !names_function(expression) {
        return Ok(found);
    }
    let moment = Moment::at(timeline, seq, timeline.thread_at(seq)?, MOST_FRAMES)?;
    Ok(value_in(&moment, 0, expression))
}

/// Frames in which the function is looked for that a variable is named with.
const MOST_FRAMES: usize = 256;

fn names_function(expression: &Expr) -> bool {
    let names = expr::names(expression);
    names.iter().any(|name| name.contains("::"))
}

/// Says why the value of an expression in the innermost frame is not known.
///
/// # Errors
/// The files cannot be read.
pub fn why_unknown(timeline: &Timeline, seq: u64, expression: &Expr) -> replay::Result<String> {
    let limit = match names_function(expression) {
        true => MOST_FRAMES,
        false => 1,
    };
    let moment = Moment::at(timeline, seq, timeline.thread_at(seq)?, limit)?;
    Ok(why_unknown_in(&moment, expression))
}

/// What is said of a value that is known.
pub const KNOWN: &str = "known";

fn why_unknown_in(moment: &Moment<'_>, expression: &Expr) -> String {
    let evaluated = evaluate_in(moment, 0, expression, |value, look, machine| {
        let block = || match machine.is_of_unknown_block() {
            true => format!("; {}", replay::UNKNOWN_BLOCK),
            false => String::new(),
        };
        if let Err(why) = &value.bytes {
            return format!("unknown: {why}");
        }
        let (_, within) = render_certain(value, &RenderOptions::default(), look);
        match value.certainty.and(within) {
            Certainty::Stale { as_of } => format!("stale since event {as_of}{}", block()),
            // The register that it is passed in was not kept.
            Certainty::Known => "unknown: not kept where the function was entered".to_owned(),
        }
    });
    evaluated.unwrap_or_else(|error| format!("unknown: {error}"))
}

fn value_in(moment: &Moment<'_>, frame: usize, expression: &Expr) -> Option<String> {
    let known = evaluate_in(moment, frame, expression, |value, look, _| {
        render_known(value, &RenderOptions::default(), look)
    });
    known.ok()?
}

fn evaluate_in<T>(
    moment: &Moment<'_>,
    frame: usize,
    expression: &Expr,
    show: impl FnOnce(&Value, &Look<'_>, &StateMachine<'_>) -> T,
) -> Result<T, String> {
    let frames = &moment.trace.backtrace.frames;
    // Globals are known without a frame; in a frame that is not known, nothing is.
    let is_known = frames.get(frame).is_some_and(|f| f.pc_is_known);
    if frame > 0 && !is_known {
        return Err(format!("frame {frame} is not known"));
    }
    let machine = moment.machine();
    let context = Context {
        space: &moment.space,
        machine: &machine,
        frames: if is_known { frames } else { &[] },
        index: if is_known { frame } else { 0 },
        calls: None,
    };
    let value = expr::evaluate(expression, &context).map_err(|error| error.to_string())?;
    let look = Look {
        space: &moment.space,
        machine: &machine,
    };
    Ok(show(&value, &look, &machine))
}

/// Returns a general register of the thread that event `seq` is about, if it is known.
///
/// # Errors
/// The files cannot be read.
pub fn register(timeline: &Timeline, seq: u64, name: &str) -> replay::Result<Option<u64>> {
    let Some(register) = Register::by_name(name) else {
        return Ok(None);
    };
    let tid = timeline.thread_at(seq)?;
    let state = State::new(timeline, seq, tid)?;
    Ok(match state.register(register) {
        Seen::Known { value, .. } => Some(value),
        Seen::Stale { .. } | Seen::Unknown(_) => None,
    })
}

/// Returns bytes of memory as of event `seq`, if all of them are known.
///
/// # Errors
/// The files cannot be read.
pub fn memory(
    timeline: &Timeline,
    seq: u64,
    address: u64,
    len: u64,
) -> replay::Result<Option<Vec<u8>>> {
    let tid = timeline.thread_at(seq)?;
    let state = State::new(timeline, seq, tid)?;
    let mut bytes = Vec::new();
    for run in state.memory(address, len)? {
        match run.bytes {
            Seen::Known { value, .. } => bytes.extend(value),
            Seen::Stale { .. } | Seen::Unknown(_) => return Ok(None),
        }
    }
    Ok(Some(bytes))
}
