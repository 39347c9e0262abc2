//! Makes evaluation contexts from the frames of a backtrace.

use super::FrameContext;
use crate::address_space::AddressSpace;
use crate::machine::Machine;
use crate::unwind::{Frame, FrameMachine};

/// Nested callers consulted for entry values, at most.
pub(super) const MAX_CALLERS: usize = 32;

/// Calls `work` with the context of frame `index` of a backtrace. Its callers are available for call site values.
/// Returns `None` if there is no such frame.
pub fn at_frame<T>(
    space: &AddressSpace,
    machine: &dyn Machine,
    frames: &[Frame],
    index: usize,
    work: impl FnOnce(&FrameContext<'_>) -> T,
) -> Option<T> {
    frames.get(index)?;
    let mut chain = vec![index];
    while let Some(next) = chain.last().and_then(|at| caller(frames, *at))
        && chain.len() < MAX_CALLERS
    {
        chain.push(next);
    }
    let machines: Vec<FrameMachine<'_>> = chain
        .iter()
        .map(|at| FrameMachine::of(machine, frames, *at))
        .collect();
    let mut result = None;
    let mut work = Some(work);
    nest(space, frames, &chain, &machines, None, &mut |site| {
        if let Some(work) = work.take() {
            result = Some(work(site));
        }
    });
    result
}

/// Returns the frame that called frame `index`.
fn caller(frames: &[Frame], index: usize) -> Option<usize> {
    let physical = (index..frames.len()).find(|at| !frames[*at].inlined)?;
    let caller = physical + 1;
    let called = !frames[physical].is_signal && !frames.get(caller)?.is_signal;
    called.then_some(caller)
}

/// Makes the context of the last frame of `chain`, then of the frames inside it, each with its caller.
fn nest(
    space: &AddressSpace,
    frames: &[Frame],
    chain: &[usize],
    machines: &[FrameMachine<'_>],
    caller: Option<&FrameContext<'_>>,
    work: &mut dyn FnMut(&FrameContext<'_>),
) {
    let (Some((at, inner)), Some((machine, others))) = (chain.split_last(), machines.split_last())
    else {
        return;
    };
    let frame = &frames[*at];
    let site = FrameContext {
        space,
        machine,
        lookup_pc: frame.lookup_pc,
        inline_depth: frame.inline_depth,
        cfa: frame.cfa,
        is_left: frame.is_tail_call,
        caller,
    };
    match inner.is_empty() {
        true => work(&site),
        false => nest(space, frames, inner, others, Some(&site), work),
    }
}
