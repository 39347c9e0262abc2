//! Pointers to the stack: the frame in which they lie, and where there. Two runs of one build have both alike.
//!
//! A row has the distance from the stack pointer of its own call, which mostly is the same in both runs. A frame that the code
//! aligns lies elsewhere in each run, and so do the distances across it. So where they differ, the frame is looked for: that
//! of the innermost compared call around it which begins above. What lies above the outermost recorded call has no frame that is
//! known, and neither has what lies on another stack, as that of a coroutine.

use replay::CallHead;
use rustc_hash::FxHashMap;
use store::columns::ReadCall;

use super::hash;
use super::places::STACK_BYTES;
use super::rows::Row;
use super::side::{Side, entry_of, word_of};
use crate::error::Result;
use crate::overview::Source;

/// Most calls around a call in whose frames a pointer is looked for.
const MOST_FRAMES: usize = 4096;

/// The place of an address on the stack.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// In how many compared calls around it the frame is: 1 is that of the caller.
    level: usize,
    /// Its distance from the stack pointer of the compared call that this frame made.
    from_callee: u64,
    /// Its distance from where the frame begins.
    to_start: u64,
    /// The function whose frame it is.
    function: u32,
}

impl Slot {
    /// Tells whether both are the same place. A frame has another size in each run where code aligns it or asks for room at run
    /// time: one of its ends is the one that the place keeps its distance from.
    fn is_same(&self, other: &Slot) -> bool {
        self.level == other.level
            && (self.from_callee == other.from_callee || self.to_start == other.to_start)
    }
}

/// Returns where the outermost recorded call of each thread begins.
///
/// # Errors
/// The recording cannot be read.
pub fn tops(source: &Source<'_>) -> Result<FxHashMap<u32, u64>> {
    let rows = source.ask("select tid, max(sp) from calls where depth = 0 group by tid")?;
    let tops = rows
        .iter()
        .filter_map(|row| Some((row.count(0).unwrap_or(0) as u32, row.count(1)?)));
    Ok(tops.collect())
}

/// Tells whether two calls are the same whose rows differ exactly, but not by what any two runs have alike.
pub fn are_same((a, own): (&Side<'_>, &Row), (b, other): (&Side<'_>, &Row)) -> bool {
    if !a.has_slots() || own.result.exact != other.result.exact {
        return false;
    }
    match (read(a, own.start), read(b, other.start)) {
        (Some(own), Some(other)) => have_same_args((a, &own), (b, &other)),
        _ => false,
    }
}

/// Returns a row whose exact form has the frames and places on the stack, which are the same in each run that does the same.
pub fn settled(side: &Side<'_>, row: &Row) -> Row {
    let mut settled = *row;
    if !side.has_slots() {
        return settled;
    }
    let Some(call) = read(side, row.start) else {
        return settled;
    };
    settled.args.exact = side.args_hash(&call).exact;
    let form = side.compared(call.function_id).map(|(_, form)| form);
    let atoms = form.iter().flat_map(|form| &form.args);
    for (number, atom) in atoms.filter(|(_, atom)| atom.is_pointer()) {
        let word = word_of(&call, atom.word);
        if let Some(slot) = word.and_then(|word| slot_of(side, &call, word)) {
            let words = [*number as u64, slot.level as u64, slot.from_callee];
            settled.args.exact = hash::fold(settled.args.exact, hash::of_words(&words));
        }
    }
    settled
}

fn read(side: &Side<'_>, start: u64) -> Option<ReadCall> {
    let timeline = side.source.timeline()?;
    let head = timeline.entered_at(start).ok()??;
    timeline.call(&head).ok()
}

/// Tells whether two calls have the same arguments, exactly.
fn have_same_args(a: (&Side<'_>, &ReadCall), b: (&Side<'_>, &ReadCall)) -> bool {
    a.0.args_hash(a.1).exact == b.0.args_hash(b.1).exact && have_same_slots(a, b)
}

/// Tells whether the arguments of two calls of one function that point to the stack do so alike.
pub fn have_same_slots(a: (&Side<'_>, &ReadCall), b: (&Side<'_>, &ReadCall)) -> bool {
    let (Some((_, own)), Some((_, other))) =
        (a.0.compared(a.1.function_id), b.0.compared(b.1.function_id))
    else {
        return true;
    };
    let mut atoms = own.args.iter().zip(&other.args);
    atoms.all(|((_, own), (_, other))| {
        let words = (word_of(a.1, own.word), word_of(b.1, other.word));
        !own.is_pointer() || is_same_slot((a.0, a.1, words.0), (b.0, b.1, words.1))
    })
}

/// Tells whether two words lie at the same place of the stack, or neither is known to lie on it.
pub fn is_same_slot(
    (a, own, word): (&Side<'_>, &ReadCall, Option<u64>),
    (b, other, twin): (&Side<'_>, &ReadCall, Option<u64>),
) -> bool {
    if !a.has_slots() {
        return true;
    }
    let slot = |side, call, word: Option<u64>| slot_of(side, call, word?);
    match (slot(a, own, word), slot(b, other, twin)) {
        (Some(own), Some(other)) => own.is_same(&other),
        (own, other) => own.is_none() && other.is_none(),
    }
}

/// Returns where on the stack an argument of a call points to, if it does.
fn slot_of(side: &Side<'_>, call: &ReadCall, address: u64) -> Option<Slot> {
    let places = side.places();
    if !places.is_near_stack(address, call.sp, entry_of(call)) {
        return None;
    }
    let timeline = side.source.timeline()?;
    let mut callee = timeline.entered_at(call.start_seq).ok()??;
    for level in 1..=MOST_FRAMES {
        let caller = compared_parent(side, &callee)?;
        // Stacks grow downwards, so otherwise the caller is on another one.
        let is_above = caller.slot >= callee.slot && caller.slot - call.sp < STACK_BYTES;
        if !is_above {
            return None;
        }
        if address < caller.slot {
            return Some(Slot {
                level,
                from_callee: address - callee.slot,
                to_start: caller.slot - address,
                function: caller.function,
            });
        }
        callee = caller;
    }
    None
}

/// Returns the innermost call around a call that is compared: the other recording may not have those between.
fn compared_parent(side: &Side<'_>, head: &CallHead) -> Option<CallHead> {
    let timeline = side.source.timeline()?;
    let mut next = timeline.parent(head).ok()??;
    while side.compared(next.function).is_none() {
        next = timeline.parent(&next).ok()??;
    }
    Some(next)
}

/// Says where on the stack an argument points to: the function whose frame it is, and the distance from its stack pointer.
pub fn told(side: &Side<'_>, call: &ReadCall, address: u64) -> Option<String> {
    let slot = slot_of(side, call, address).filter(|_| side.has_slots())?;
    // The return address is the last word that the caller pushed.
    let distance = slot.from_callee.saturating_sub(8);
    let name = side.source.name(slot.function);
    Some(format!("byte {distance} of the frame of {name}"))
}
