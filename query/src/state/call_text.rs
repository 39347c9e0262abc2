//! Arguments and results as their types describe them: members of structures, and the texts that were captured with a
//! call.
//!
//! A value has no text here if it cannot be read because a module's file is missing or nothing was captured; the
//! columns show the raw registers.

use debuginfo::types::Type;
use debuginfo::value::{Look, Value};
use debuginfo::{Certainty, Machine, TypeKind};
use expr::Expr;
use replay::{Event, Moment, Places, StateMachine};
use rustc_hash::FxHashMap;
use values::one_line::fitted;
use values::{RenderOptions, quoted, render_known, text_at};

use super::{States, moment};

/// Reads arguments and results of many calls, one after another.
pub struct CallTexts<'s> {
    states: &'s States,
    places: Places,
    parsed: FxHashMap<String, Option<Expr>>,
}

impl<'s> CallTexts<'s> {
    /// Reads from the recording's states, which are opened on first use.
    pub fn new(states: &'s States) -> Self {
        Self {
            states,
            places: Places::default(),
            parsed: FxHashMap::default(),
        }
    }

    /// Returns the parameter `name` at the start of the call that event `seq` entered, if it is known.
    pub fn parameter(&mut self, seq: u64, name: &str) -> Option<String> {
        self.shown_parameter(seq, name, &with_target)
    }

    /// Returns the same with all that was kept of a text.
    pub fn whole_parameter(&mut self, seq: u64, name: &str) -> Option<String> {
        self.shown_parameter(seq, name, &whole)
    }

    fn shown_parameter(&mut self, seq: u64, name: &str, show: moment::Show<'_>) -> Option<String> {
        let timeline = self.states.timeline().ok()?;
        let event = timeline.event(seq).ok()?;
        if !matches!(event, Event::Enter(_)) {
            return None;
        }
        let parsed = parsed(&mut self.parsed, name)?;
        let at = (seq, event);
        let known = moment::innermost_shown(&mut self.places, timeline, at, parsed, show);
        known.ok().flatten()
    }

    /// Returns the text at an address when event `seq` entered a call, in quotes, if it was kept. Dots replace the part that
    /// was not kept.
    pub fn text(&mut self, seq: u64, at: u64, extent: Extent) -> Option<String> {
        self.entered(seq, |machine| match extent {
            Extent::Terminated => terminated(machine, at, u64::MAX),
            Extent::AtMost(most) => terminated(machine, at, most),
            Extent::Bytes(len) => data(machine, at, len),
        })
    }

    /// Returns the bytes before a NUL at an address when event `seq` entered a call, if all are known.
    pub fn bytes(&mut self, seq: u64, at: u64) -> Option<Vec<u8>> {
        const MOST: usize = 4096;
        self.entered(seq, |machine| {
            let text = text_at(machine, at, 1, MOST).ok()?;
            (text.certainty == Certainty::Known && !text.more).then_some(text.bytes)
        })
    }

    fn entered<T>(&mut self, seq: u64, ask: impl Fn(&dyn Machine) -> Option<T>) -> Option<T> {
        let timeline = self.states.timeline().ok()?;
        let event = timeline.event(seq).ok()?;
        if !matches!(event, Event::Enter(_)) {
            return None;
        }
        let ask = |moment: &Moment<'_>| ask(&StateMachine::new(&moment.state, &moment.space));
        self.places.ask(timeline, seq, event, ask).ok().flatten()
    }

    /// Returns the targets of the parameters `names` when event `seq` left their call, as far as they are known.
    pub fn outs(&mut self, seq: u64, names: &[&str]) -> Option<String> {
        let timeline = self.states.timeline().ok()?;
        let event = timeline.event(seq).ok()?;
        let Event::Leave(call) = &event else {
            return None;
        };
        if !call.returned() {
            return None;
        }
        let moment = self.places.moment(timeline, seq, event).ok()?;
        let mut outs: Vec<String> = Vec::new();
        for name in names {
            let Some(parsed) = parsed(&mut self.parsed, name) else {
                continue;
            };
            let shown =
                moment::shown_in_left(&moment, parsed, |value, look| out(name, value, look));
            outs.extend(shown.flatten());
        }
        (!outs.is_empty()).then(|| outs.join(", "))
    }

    /// Returns the result of the call that event `seq` left, if it is known.
    pub fn result(&mut self, seq: u64) -> Option<String> {
        let rerun = self.states.rerun();
        if let Some(kept) = rerun.and_then(|rerun| rerun.result(seq)) {
            return Some(kept);
        }
        let text = self.read_result(seq)?;
        // What is unknown may be so only because a question took too long.
        if let Some(rerun) = rerun.filter(|_| !text.contains(UNKNOWN)) {
            rerun.keep_result(seq, &text);
        }
        Some(text)
    }

    fn read_result(&mut self, seq: u64) -> Option<String> {
        let timeline = self.states.timeline().ok()?;
        let event = timeline.event(seq).ok()?;
        let Event::Leave(call) = event else {
            return None;
        };
        if !call.returned() {
            return None;
        }
        let entry = timeline.entry_of(call.function, seq)?;
        let moment = self.places.moment(timeline, seq, Event::Leave(call)).ok()?;
        let machine = StateMachine::new(&moment.state, &moment.space);
        let value = debuginfo::returned(&moment.space, &machine, entry).ok()??;
        let look = Look {
            space: &moment.space,
            machine: &machine,
        };
        render_known(&value, &RenderOptions::in_a_column(), &look)
    }
}

/// Most bytes of a text that are shown. The recorder keeps more.
const SHOWN: usize = 200;

/// How much of the memory at an address is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What is before a NUL.
    Terminated,
    /// As many bytes.
    Bytes(u64),
    /// What is before a NUL, and at most as many bytes.
    AtMost(u64),
}

fn terminated(machine: &dyn Machine, at: u64, most: u64) -> Option<String> {
    let shown = usize::try_from(most).unwrap_or(SHOWN).min(SHOWN);
    if shown == 0 {
        return Some("\"\"".to_owned());
    }
    let text = text_at(machine, at, 1, shown).ok()?;
    let quoted = quoted(&text.bytes, '"');
    let dots = if text.more && (shown as u64) < most {
        "..."
    } else {
        ""
    };
    (text.certainty == Certainty::Known).then(|| format!("{quoted}{dots}"))
}

fn data(machine: &dyn Machine, at: u64, len: u64) -> Option<String> {
    let shown = usize::try_from(len).unwrap_or(SHOWN).min(SHOWN);
    let mut bytes = vec![0; shown];
    let certainty = match shown {
        0 => Certainty::Known,
        _ => machine.memory(at, &mut bytes).ok()?,
    };
    let dots = if shown as u64 == len { "" } else { "..." };
    (certainty == Certainty::Known).then(|| format!("{}{dots}", quoted(&bytes, '"')))
}

/// The expression of the parameter `name`.
fn parsed<'p>(known: &'p mut FxHashMap<String, Option<Expr>>, name: &str) -> Option<&'p Expr> {
    if !known.contains_key(name) {
        known.insert(name.to_owned(), expr::parse(name).ok());
    }
    known[name].as_ref()
}

/// What stands for a part that is not known, before the reason.
const UNKNOWN: &str = "<unknown: ";

/// A known value; for a container with unknown elements, its type and length. Of another value with unknown parts, `?` for
/// each of them, within a number of columns. `None` if no part is known: the register, an address, says more.
fn text(value: &Value, look: &Look<'_>) -> Option<String> {
    let shown = render_known(value, &RenderOptions::in_a_column(), look)?;
    if !shown.contains(UNKNOWN) {
        return Some(shown);
    }
    let head = shown.split_once(" = {").map(|(head, _)| head);
    if let Some(head) = head.filter(|head| !head.contains('{')) {
        return Some(head.to_owned());
    }
    let short = without_reasons(&shown);
    let cut = fitted(&short, SHOWN);
    let whole = match cut.len() == short.len() {
        true => short.as_str(),
        false => &cut[..cut.rfind(['{', '}', ',']).unwrap_or(0)],
    };
    has_known(whole).then(|| cut.into_owned())
}

/// Replaces each unknown part by `?`. Reasons may name templates.
fn without_reasons(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reason)) = rest.split_once(UNKNOWN) {
        short.push_str(before);
        short.push('?');
        let mut depth = 1;
        let end = reason.find(|c: char| {
            depth += match c {
                '<' => 1,
                '>' => -1,
                _ => 0,
            };
            depth == 0
        });
        rest = end.map_or("", |end| &reason[end + 1..]);
    }
    short + rest
}

/// Tells whether a value without reasons has a part that is known: not only names of members.
fn has_known(short: &str) -> bool {
    let mut parts = short.split_inclusive(['{', '}', ',']);
    parts.any(|part| {
        let value = part.trim_end_matches(['{', '}', ',']);
        let value = value.rsplit_once(" = ").map_or(value, |(_, value)| value);
        let value = value.rsplit_once(": ").map_or(value, |(_, value)| value);
        let value = value.trim_start_matches(['&', '*']).trim();
        !part.ends_with('{') && !matches!(value, "" | "?" | ".." | "...")
    })
}

fn whole(value: &Value, look: &Look<'_>) -> Option<String> {
    render_known(value, &RenderOptions::full(), look)
}

/// A value, and for a plain pointer also its target, if known: `0x55d0c0de1000 -> 42`. A pointer to text already shows
/// the text.
fn with_target(value: &Value, look: &Look<'_>) -> Option<String> {
    let shown = text(value, look)?;
    let pointer = value.unreferenced(look).unwrap_or_else(|_| value.clone());
    if shown.starts_with('&') && is_target_unknown(&pointer, look) {
        return None;
    }
    let is_plain = pointer.kind() == TypeKind::Pointer && shown.starts_with("0x");
    if !is_plain || !has_value(&pointer.ty) {
        return Some(shown);
    }
    let target = pointer.deref(look).ok();
    Some(match target.and_then(|target| text(&target, look)) {
        Some(target) => format!("{shown} -> {target}"),
        None => shown,
    })
}

/// Returns whether no part of a pointer's target was captured. A reference of Rust is shown by its target, which then is
/// a list of unknown members; its address says more.
fn is_target_unknown(pointer: &Value, look: &Look<'_>) -> bool {
    let address = match pointer.kind() {
        TypeKind::Pointer if has_value(&pointer.ty) => pointer.as_address(),
        _ => return false,
    };
    address.is_ok_and(|address| look.machine.memory(address, &mut [0]).is_err())
}

/// The target of a parameter that may have been changed: `*count=3`, or `count=3` of a reference.
fn out(name: &str, value: &Value, look: &Look<'_>) -> Option<String> {
    let ty = value.ty.strip();
    let target = ty.target()?;
    match ty.kind() {
        TypeKind::Reference | TypeKind::RvalueReference if !target.is_const() => {
            let shown = text(&value.unreferenced(look).ok()?, look)?;
            Some(format!("{name}={shown}"))
        }
        TypeKind::Pointer
            if !target.is_const() && matches!(target.strip().kind(), TypeKind::Char { .. }) =>
        {
            let shown = text(value, look)?;
            // The text follows its pointer.
            Some(format!("*{name}={}", shown.get(shown.find('"')?..)?))
        }
        TypeKind::Pointer if !target.is_const() && is_mutable(&ty) && has_value(&ty) => {
            let shown = text(&value.deref(look).ok()?, look)?;
            Some(format!("*{name}={shown}"))
        }
        _ => None,
    }
}

/// Returns whether the target of a pointer is a value other than text.
fn has_value(pointer: &Type) -> bool {
    let Some(target) = pointer.strip().target().map(|target| target.strip()) else {
        return false;
    };
    let is_other = matches!(
        target.kind(),
        TypeKind::Void | TypeKind::Unspecified | TypeKind::Function | TypeKind::Char { .. }
    );
    !is_other && target.size().is_some_and(|size| size > 0)
}

/// Returns whether the target of a pointer may be changed through it after the call: not for Rust's `&T`, nor for a box
/// that was moved.
fn is_mutable(pointer: &Type) -> bool {
    let name = pointer.own_name();
    name.is_none_or(|name| name.starts_with("&mut") || name.starts_with("*mut"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_with_a_known_part_are_shown() {
        for (whole, short, is_known) in [
            ("{a = 1, b = <unknown: gone>}", "{a = 1, b = ?}", true),
            (
                "{map = {<unknown: of map<int, long>>, n = <unknown: gone>}, end = <unknown: x>}",
                "{map = {?, n = ?}, end = ?}",
                false,
            ),
            ("Cache {map: <unknown: gone>}", "Cache {map: ?}", false),
            ("@0x7ff0: {n = <unknown: gone>}", "@0x7ff0: {n = ?}", false),
            (
                "&Cache {map: <unknown: gone>, n: 3}",
                "&Cache {map: ?, n: 3}",
                true,
            ),
            ("<unknown: cut", "?", false),
        ] {
            assert_eq!(without_reasons(whole), short);
            assert_eq!(has_known(short), is_known, "{short}");
        }
    }
}
