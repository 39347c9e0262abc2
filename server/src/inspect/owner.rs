//! The frame to which an address on a thread's stack belongs.

use debuginfo::scope::variables_at;
use debuginfo::{Register, at_frame};

use super::View;

/// Bytes below the stack pointer that belong to the innermost frame (System V ABI for x86-64, section 3.2.2).
const RED_ZONE: u64 = 128;
/// The usual size of a stack in bytes: what lies further off is on another one, or on none.
const MOST_OF_A_STACK: u64 = 8 << 20;

/// Returns which frame, counted from 0 for the innermost, an address belongs to: the variable there lives until that frame's
/// function returns. It is never an inlined one. `None` if the address is in no frame.
#[must_use]
pub fn frame_with(view: &View<'_>, address: u64) -> Option<usize> {
    // A variable of a module is in no frame, although a signal's own stack may be near.
    if view.space.at(address).is_some() {
        return None;
    }
    let (sp, _) = view.machine.register(Register::RSP).ok()?;
    let physical = physical(view);
    let around = physical.iter().position(|(_, cfa)| address < *cfa);
    let inside = &physical[..around.unwrap_or(physical.len())];
    if let Some((callee, _)) = inside.last()
        && *callee >= view.frame
        && has_variable_at(view, *callee, address)
    {
        // An argument that it got on the stack, in the memory of its caller.
        return Some(*callee);
    }
    let (frame, cfa) = physical[around?];
    let is_near = |low: u64| cfa.saturating_sub(low) < MOST_OF_A_STACK;
    let belongs = match address < sp.saturating_sub(RED_ZONE) {
        // The innermost function has not made room for its variables yet, or has given it back.
        true => inside.is_empty() && is_near(address) && has_variable_at(view, frame, address),
        // Another thread's stack is not near this one's.
        false => is_near(sp),
    };
    belongs.then_some(frame)
}

/// The frames on the stack, innermost first, each with the address at which it ends.
fn physical(view: &View<'_>) -> Vec<(usize, u64)> {
    let frames = view.frames.iter().enumerate();
    let own = frames.filter(|(_, frame)| !frame.inlined && !frame.is_tail_call);
    own.filter_map(|(index, frame)| Some((index, frame.cfa?)))
        .collect()
}

/// Returns whether a variable of a frame's function lies at an address.
fn has_variable_at(view: &View<'_>, frame: usize, address: u64) -> bool {
    let found = at_frame(view.space, view.machine, view.frames, frame, |site| {
        variables_at(site).iter().any(|variable| {
            let value = variable.read(site);
            let len = value.ty.size().unwrap_or(1);
            let start = value.address();
            start.is_some_and(|start| (start..start.saturating_add(len)).contains(&address))
        })
    });
    found.unwrap_or(false)
}
