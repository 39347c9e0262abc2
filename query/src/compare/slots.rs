//! Pointers to the stack: the frame in which they lie, and where there. Two runs of one build have both alike.
//!
//! A row has the distance from the stack pointer of its own call, which mostly is the same in both runs. A frame that the code
//! aligns lies elsewhere in each run, and so do the distances across it. So where they differ, the frame is looked for: that
//! of the innermost recorded call around it which begins above. Its place there is told from the stack pointer
//! of the call that it made. What lies above the outermost recorded call has no frame that is known.

use replay::CallHead;
use store::columns::ReadCall;

use super::rows::Row;
use super::side::{Side, entry_of, word_of};

/// Most calls around a call in whose frames a pointer is looked for.
const MOST_FRAMES: usize = 4096;

/// The place of an address on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// In how many recorded calls around it the frame is: 1 is that of the caller.
    level: usize,
    /// Its distance from the stack pointer of the call that this frame made.
    distance: u64,
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
    slot(a, own, word) == slot(b, other, twin)
}

/// Returns where on the stack an argument of a call points to, if it does.
pub fn slot_of(side: &Side<'_>, call: &ReadCall, address: u64) -> Option<Slot> {
    if !side
        .places()
        .is_near_stack(address, call.sp, entry_of(call))
    {
        return None;
    }
    let (level, base, _) = frame_of(side, call, address)?;
    let distance = address - base;
    Some(Slot { level, distance })
}

/// Returns the call in whose frame an address lies, how far out it is, and the stack pointer of the call that it made.
fn frame_of(side: &Side<'_>, call: &ReadCall, address: u64) -> Option<(usize, u64, CallHead)> {
    let timeline = side.source.timeline()?;
    let mut head = timeline.entered_at(call.start_seq).ok()??;
    for level in 1..=MOST_FRAMES {
        let parent = timeline.parent(&head).ok()??;
        if address < parent.slot {
            return Some((level, head.slot, parent));
        }
        head = parent;
    }
    None
}

/// Says where on the stack an argument points to: the function whose frame it is, and the distance from its stack pointer.
pub fn told(side: &Side<'_>, call: &ReadCall, address: u64) -> Option<String> {
    if !side.has_slots()
        || !side
            .places()
            .is_near_stack(address, call.sp, entry_of(call))
    {
        return None;
    }
    let (_, base, of) = frame_of(side, call, address)?;
    // The return address is the last word that the caller pushed.
    let distance = (address - base).saturating_sub(8);
    let name = side.source.name(of.function);
    Some(format!("byte {distance} of the frame of {name}"))
}
