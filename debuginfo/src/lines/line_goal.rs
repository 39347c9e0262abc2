//! The goal of a step by lines, and how it treats the places that the thread passes. The rules are gdb's. The callers do the
//! stepping.

use std::{ops::Range, sync::Arc};

use super::steps::{CallAt, StepLine};
use crate::address_space::AddressSpace;

/// A line other than the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineGoal {
    /// Enter calls.
    pub into: bool,
    /// The line to leave.
    pub line: Option<(Arc<str>, u32)>,
    /// Code that belongs to the line and need not be checked.
    pub range: Range<u64>,
    /// The entry of the function.
    pub function: Option<u64>,
    /// The frame: the entries of the function and of the inlined copies around it, outermost first.
    pub copies: Vec<u64>,
}

/// What a place that a step passes means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It is not a place to stop.
    Proceed,
    /// Stop there. `calls_to_come` inlined calls that begin there are still to come.
    Stop {
        /// This many are to come.
        calls_to_come: usize,
    },
}

impl LineGoal {
    /// Returns the goal to leave the line of `pc`, where `to_come` of the inlined calls that begin there are still to
    /// come.
    #[must_use]
    pub fn of(space: &AddressSpace, pc: u64, to_come: usize, into: bool) -> LineGoal {
        let calls = space.calls_at(pc);
        let here = space.step_line(pc);
        let line = match call_line(&calls, to_come) {
            Some(line) => Some(line),
            None => here.as_ref().map(place_of),
        };
        LineGoal {
            into,
            line,
            range: here.map_or(0..0, |here| here.range),
            function: space.function_at(pc).map(|function| function.entry),
            copies: frame_of(&calls, to_come),
        }
    }

    /// As [`of`](Self::of), for a frame that `pc` has returned to. Between two statements there is no line to leave.
    #[must_use]
    pub fn of_caller(space: &AddressSpace, pc: u64, into: bool) -> LineGoal {
        let mut goal = LineGoal::of(space, pc, 0, into);
        let here = space.step_line(pc);
        if here.is_some_and(|here| here.range.start == pc && !here.is_statement) {
            goal.line = None;
        }
        goal
    }

    /// Decides what passing `pc`, outside of the range, means. If it is not a place to stop, the goal continues from
    /// there.
    pub fn look(&mut self, space: &AddressSpace, pc: u64) -> Look {
        let Some(here) = space.step_line(pc) else {
            return Look::Proceed;
        };
        let calls = space.calls_at(pc);
        let to_come = calls.iter().rev().take_while(|call| call.begins).count();
        let frame = frame_of(&calls, to_come);
        // If no line describes the place to the user, the next instruction may have one.
        let stop = |calls_to_come| match space.standing(pc, calls_to_come).source {
            Some(_) => Look::Stop { calls_to_come },
            None => Look::Proceed,
        };
        if frame == self.copies && to_come > 0 {
            return match (self.line == call_line(&calls, to_come), self.into) {
                // A call on the current line: step into it or over it.
                (true, true) => stop(to_come - 1),
                (true, false) => Look::Proceed,
                (false, _) => stop(to_come),
            };
        }
        if frame.len() > self.copies.len() && frame.starts_with(&self.copies) {
            return match self.into {
                true => stop(to_come),
                false => Look::Proceed,
            };
        }
        if pc == here.range.start && self.line.as_ref() != Some(&place_of(&here)) {
            if here.is_statement {
                return stop(to_come);
            }
            if frame == self.copies {
                // No place to stop. The following code is still compared with the old line.
                self.range = here.range;
                return Look::Proceed;
            }
            // Another frame, but none of its lines has been seen yet, so it is not a place to stop either.
            self.line = None;
            self.range = here.range;
            self.copies = frame;
            return Look::Proceed;
        }
        // The middle of a line, or the same line again (a loop): step past it too.
        self.line = Some(place_of(&here));
        self.range = here.range;
        self.copies = frame;
        Look::Proceed
    }
}

/// Returns the frame that a thread is in, as for [`LineGoal::copies`].
fn frame_of(calls: &[CallAt], to_come: usize) -> Vec<u64> {
    let entered = &calls[..calls.len().saturating_sub(to_come)];
    entered.iter().map(|call| call.entry).collect()
}

/// Returns the line of the next inlined call to come.
fn call_line(calls: &[CallAt], to_come: usize) -> Option<(Arc<str>, u32)> {
    let next = calls.len().checked_sub(to_come)?;
    let call = calls.get(next)?.call.as_ref()?;
    Some((call.file.clone(), call.line))
}

fn place_of(here: &StepLine) -> (Arc<str>, u32) {
    (here.file.clone(), here.line)
}
