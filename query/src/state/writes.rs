//! The rows of `history` in a recording of every instruction: each instruction that changed the value.
//!
//! The value must lie in memory. A global one is followed over the whole run where it lies at the end; a variable of a
//! function in each of its recorded calls, where it lies when the call begins. Few values are computed at once: each takes
//! a part of the program to be run again.

use std::collections::VecDeque;

use debuginfo::value::{Look, Value};
use debuginfo::{Diagnostic, Machine, Type};
use expr::{Context, Expr};
use replay::history::{HistoryScope, Stand};
use replay::{Instant, Moment, Timeline, Tracked};
use values::{RenderOptions, render_known};

use super::moment::without_frames;

/// Writes that are looked for at once.
const AT_ONCE: usize = 256;

/// Where a value lies.
#[derive(Clone)]
struct TypedRange {
    address: u64,
    len: u64,
    ty: Type,
}

/// A part of the run in which writes are looked for.
struct Span {
    from: Instant,
    until: Instant,
    place: TypedRange,
    /// No write was found yet since a call began: what the bytes held before is no value of its variable.
    is_new: bool,
}

/// A write that changed the value.
pub struct Write {
    /// The event before it.
    pub seq: u64,
    /// The thread that wrote.
    pub tid: u32,
    /// Where it was; nothing is known while nothing was recorded.
    pub stand: Stand,
    /// The value before.
    pub old: Option<String>,
    /// The value after.
    pub new: String,
}

/// The writes of a value, in order.
pub struct Writes {
    spans: VecDeque<Span>,
    found: VecDeque<u64>,
}

impl Writes {
    /// Prepares the search; `None` if the value is in registers where the function is entered: then only its entries show it.
    ///
    /// # Errors
    /// The value has no place in memory; the recording cannot be read.
    pub fn of(timeline: &Timeline, tracked: &Tracked) -> replay::Result<Option<Self>> {
        let (text, scope) = (tracked.text(), tracked.scope());
        let path = expr::path_of(text).filter(|_| *scope != HistoryScope::Everywhere);
        let inside = path.map_or_else(|| text.to_owned(), |path| expr::without_path(text, path));
        let expression = parsed(timeline, &inside)?;
        let spans = match scope {
            HistoryScope::Everywhere => {
                let last = timeline.last();
                let tid = timeline.thread_at(last)?;
                let place = place(timeline, (last, tid), false, &expression)?;
                let place = place.map_err(|why| nowhere(text, why))?;
                VecDeque::from([Span {
                    from: Instant::at(0),
                    until: Instant::at(last),
                    place,
                    is_new: false,
                }])
            }
            HistoryScope::Within(functions) => {
                let mut calls = Vec::new();
                for id in &functions.ids {
                    calls.extend(timeline.entries(*id, usize::MAX)?);
                }
                calls.sort_unstable();
                let mut spans = VecDeque::new();
                for call in calls {
                    match place(timeline, call, true, &expression)? {
                        Ok(place) => spans.push_back(span(timeline, call.0, place)?),
                        Err(_) => return Ok(None),
                    }
                }
                spans
            }
        };
        Ok(Some(Self {
            spans,
            found: VecDeque::new(),
        }))
    }

    /// Returns the next write that changed the value. The outer option is `None` at the end.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn next(&mut self, timeline: &Timeline) -> replay::Result<Option<Option<Write>>> {
        let Some(span) = self.spans.front_mut() else {
            return Ok(None);
        };
        let Some(at) = self.found.pop_front() else {
            let place = (span.place.address, span.place.len);
            let found = timeline.writes_between((span.from, span.until), place, AT_ONCE)?;
            match found.last() {
                Some(last) if found.len() == AT_ONCE => span.from = timeline.wrote(*last)?.after,
                _ => span.from = span.until,
            }
            if found.is_empty() {
                self.spans.pop_front();
            }
            self.found = found.into();
            return Ok(Some(None));
        };
        let wrote = timeline.wrote(at)?;
        let moment = |at: Instant| Moment::after(timeline, at.seq, at.steps, wrote.tid, 1);
        let (before, after) = (moment(wrote.before)?, moment(wrote.after)?);
        let is_new = std::mem::take(&mut span.is_new);
        let old = shown(&before, &span.place).filter(|_| !is_new);
        let Some(new) = shown(&after, &span.place).filter(|new| old.as_ref() != Some(new)) else {
            return Ok(Some(None));
        };
        let is_recorded = timeline.not_recorded(wrote.before, wrote.after)?.is_empty();
        let frame = before.trace.backtrace.frames.first();
        let stand = frame.filter(|_| is_recorded).map(|frame| Stand {
            function: frame.function.clone(),
            file: frame.source.as_ref().map(|source| source.file.to_string()),
            line: frame.source.as_ref().map(|source| source.line),
        });
        Ok(Some(Some(Write {
            seq: wrote.before.seq,
            tid: wrote.tid,
            stand: stand.unwrap_or_default(),
            old,
            new,
        })))
    }
}

fn parsed(timeline: &Timeline, text: &str) -> replay::Result<Expr> {
    let parsed = without_frames(timeline, |context| {
        expr::parse_with(text, &|name: &str| expr::is_type(name, context))
    })?;
    parsed.map_err(|error| {
        wrong(Diagnostic {
            message: format!("the expression \"{text}\": {error}"),
            hint: error.hint,
        })
    })
}

fn nowhere(text: &str, why: Diagnostic) -> replay::Error {
    let why = why.map(|why| format!("the history of {text}: {why}"));
    wrong(why.with_hint(
        "in a recording of every instruction, writes to memory are followed: name a variable or a part of one",
    ))
}

fn wrong(what: Diagnostic) -> replay::Error {
    replay::Error::Expression {
        what,
        position: None,
    }
}

/// The part of the run in which a call ran.
fn span(timeline: &Timeline, seq: u64, place: TypedRange) -> replay::Result<Span> {
    let end = timeline.entered_at(seq)?.and_then(|call| call.end);
    Ok(Span {
        from: Instant::at(seq),
        until: Instant::at(end.unwrap_or_else(|| timeline.last())),
        place,
        is_new: true,
    })
}

/// Returns where a value lies for a thread at an event, or why it lies nowhere.
fn place(
    timeline: &Timeline,
    (seq, tid): (u64, u32),
    is_own: bool,
    expression: &Expr,
) -> replay::Result<Result<TypedRange, Diagnostic>> {
    let moment = Moment::at(timeline, seq, tid, 1)?;
    let machine = moment.machine();
    let frames = match is_own {
        true => moment.trace.backtrace.frames.as_slice(),
        false => &[],
    };
    let context = Context::new(&moment.space, &machine, frames, 0);
    let value = match expr::evaluate(expression, &context) {
        Ok(value) => value,
        Err(error) => return Ok(Err(error.into())),
    };
    Ok(match (value.address(), value.ty.size()) {
        _ if value.bits.is_some() => Err(Diagnostic::new("it is a bit field")),
        (Some(address), Some(len)) => Ok(TypedRange {
            address,
            len,
            ty: value.ty.clone(),
        }),
        (None, _) => Err(Diagnostic::new("it does not lie in memory")),
        (_, None) => Err(Diagnostic::new("its size is not known")),
    })
}

/// Shows the value at a place as it is at a moment; `None` if its bytes are not known.
fn shown(moment: &Moment<'_>, place: &TypedRange) -> Option<String> {
    let machine = moment.machine();
    let mut bytes = vec![0; usize::try_from(place.len).ok()?];
    machine.memory(place.address, &mut bytes).ok()?;
    let value = Value::constant(place.ty.clone(), bytes);
    let look = Look {
        space: &moment.space,
        machine: &machine,
    };
    render_known(&value, &RenderOptions::default(), &look)
}
