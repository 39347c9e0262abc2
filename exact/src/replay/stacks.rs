//! The open calls of a thread, by stack: those of coroutines and signal handlers are apart from the thread's own.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;

/// Most bytes between a slot and those seen on a thread's first stack.
const FIRST_REACH: u64 = 256 << 10;
/// The same for other stacks. Coroutines often have adjacent stacks of 64 KiB.
const OTHER_REACH: u64 = 32 << 10;
/// Index of the first stack.
const FIRST: usize = 0;

/// An open call.
#[derive(Debug)]
pub(super) struct Frame {
    pub function: usize,
    /// The slot: the address of the return address.
    pub stack: u64,
    pub return_address: u64,
}

/// The stacks of a thread.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    /// The first one, and then the others by address.
    stacks: Vec<Stack>,
    /// The one used last.
    active: usize,
    /// A signal handler is about to begin: a new stack is its own.
    is_signalled: bool,
}

#[derive(Debug)]
pub(super) struct Stack {
    /// The addresses seen, or all if it `is_whole`.
    range: Range<u64>,
    is_whole: bool,
    /// It is a signal stack.
    is_of_handler: bool,
    /// Open calls, the outermost first; slots never rise.
    frames: Vec<Frame>,
}

/// Stacks of coroutines that no thread uses, by their first address: another thread may go on there.
pub(super) type Parked = FxHashMap<u64, Stack>;

impl Stacks {
    /// The thread leaves the stack with the stack pointer `from` for one with these bounds, if they are known.
    pub fn switch(&mut self, from: u64, to: Option<Range<u64>>, parked: &mut Parked) {
        let source = self.find(from).filter(|index| self.stacks[*index].is_whole);
        if let Some(source) = source {
            let stack = self.stacks.remove(source);
            self.active = FIRST;
            if !stack.frames.is_empty() {
                parked.insert(stack.range.start, stack);
            }
        }
        let is_own = |to: &Range<u64>| {
            self.stacks
                .get(FIRST)
                .is_none_or(|first| first.overlaps(to))
        };
        let Some(to) = to.filter(|to| !is_own(to)) else {
            return;
        };
        let mut stack = parked
            .remove(&to.start)
            .unwrap_or_else(|| Stack::new(to.clone()));
        // Stacks that share memory are one stack, which the program has made anew.
        let from = self.after(|stack| stack.range.end <= to.start);
        let until = self.after(|stack| stack.range.start < to.end);
        for mut other in self.stacks.drain(from.min(until)..until).rev() {
            stack.frames.append(&mut other.frames);
        }
        stack.frames.sort_by_key(|frame| Reverse(frame.stack));
        (stack.range, stack.is_whole) = (to, true);
        self.stacks.insert(from, stack);
        self.active = from;
    }

    /// A signal handler begins.
    pub fn signalled(&mut self) {
        self.is_signalled = true;
    }

    /// Returns the open calls on the signal stack around `from`, if longjmp leaves it for another stack. They do not go on,
    /// other than those of a coroutine.
    pub fn left_by_handler(&mut self, from: u64, to: u64) -> Option<&mut Vec<Frame>> {
        let (left, goes_on) = (self.find(from)?, self.find(to));
        let stack = &mut self.stacks[left];
        (stack.is_of_handler && goes_on != Some(left)).then_some(&mut stack.frames)
    }

    /// Returns the open calls on the stack of `slot`, a new stack if none is near.
    #[inline]
    pub fn at_enter(&mut self, slot: u64) -> &mut Vec<Frame> {
        if !self.is_active(slot) {
            self.active = self.find(slot).unwrap_or_else(|| self.add(slot));
            self.stacks[self.active].widen(slot);
        }
        self.is_signalled = false;
        &mut self.stacks[self.active].frames
    }

    /// Returns the open calls on the stack of `slot`, if there is one.
    #[inline]
    pub fn at_leave(&mut self, slot: u64) -> Option<&mut Vec<Frame>> {
        if !self.is_active(slot) {
            self.active = self.find(slot)?;
            self.stacks[self.active].widen(slot);
        }
        Some(&mut self.stacks[self.active].frames)
    }

    #[inline]
    fn is_active(&self, slot: u64) -> bool {
        let active = self.stacks.get(self.active);
        active.is_some_and(|stack| stack.range.contains(&slot))
    }

    /// Returns the stack that is nearest to `slot`, if it is near enough.
    #[inline(never)]
    fn find(&self, slot: u64) -> Option<usize> {
        let above = self.after(|stack| stack.range.start <= slot);
        let near = [FIRST, above - 1, above].into_iter().filter_map(|index| {
            let stack = self.stacks.get(index)?;
            let reach = match index {
                FIRST => FIRST_REACH,
                _ if stack.is_whole => 0,
                _ => OTHER_REACH,
            };
            let distance = stack.distance(slot);
            (distance <= reach).then_some((distance, index))
        });
        near.min().map(|(_, index)| index)
    }

    /// Adds a stack at `slot`; those that have no calls are forgotten.
    fn add(&mut self, slot: u64) -> usize {
        let mut index = FIRST;
        self.stacks.retain(|stack| {
            index += 1;
            index - 1 == FIRST || !stack.frames.is_empty()
        });
        let index = self
            .after(|stack| stack.range.start < slot)
            .min(self.stacks.len());
        self.stacks.insert(
            index,
            Stack {
                is_of_handler: self.is_signalled,
                ..Stack::new(slot..slot + 1)
            },
        );
        index
    }

    /// Returns the index after the stacks other than the first for which `is_before` is true, which are those of lower
    /// addresses.
    fn after(&self, is_before: impl Fn(&Stack) -> bool) -> usize {
        let others = self.stacks.get(FIRST + 1..).unwrap_or_default();
        FIRST + 1 + others.partition_point(is_before)
    }
}

impl Stack {
    fn new(range: Range<u64>) -> Self {
        Stack {
            range,
            is_whole: false,
            is_of_handler: false,
            frames: Vec::new(),
        }
    }

    fn overlaps(&self, other: &Range<u64>) -> bool {
        self.range.start < other.end && other.start < self.range.end
    }

    fn distance(&self, slot: u64) -> u64 {
        let Range { start, end } = self.range;
        start.saturating_sub(slot).max(slot.saturating_sub(end))
    }

    fn widen(&mut self, slot: u64) {
        let Range { start, end } = self.range;
        self.range = start.min(slot)..end.max(slot + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u64 = 0x7fff_0000_0000;
    const FIRST_TASK: Range<u64> = 0x5000_0000..0x5000_4000;
    const SECOND_TASK: Range<u64> = 0x5000_4000..0x5000_8000;

    fn enter(stacks: &mut Stacks, slot: u64) -> usize {
        let frames = stacks.at_enter(slot);
        frames.push(Frame {
            function: 0,
            stack: slot,
            return_address: 1,
        });
        frames.len()
    }

    #[test]
    fn adjacent_stacks_are_apart_if_their_bounds_are_told() {
        let (mut stacks, mut parked) = (Stacks::default(), Parked::default());
        assert_eq!(enter(&mut stacks, OWN), 1);
        let mut at = OWN - 64;
        for (task, count) in [(FIRST_TASK, 1), (SECOND_TASK, 1), (FIRST_TASK, 2)] {
            let slot = task.end - 8 * count as u64;
            stacks.switch(at, Some(task), &mut parked);
            assert_eq!(enter(&mut stacks, slot), count);
            at = slot - 8;
        }
        stacks.switch(at, None, &mut parked);
        assert_eq!(enter(&mut stacks, OWN - 64), 2);
        assert!(stacks.at_leave(SECOND_TASK.start).is_none());
        assert_eq!(parked.len(), 2);
    }

    #[test]
    fn a_coroutine_goes_on_in_another_thread() {
        let (mut one, mut other) = (Stacks::default(), Stacks::default());
        let mut parked = Parked::default();
        enter(&mut one, OWN);
        enter(&mut other, OWN + (1 << 30));
        one.switch(OWN - 64, Some(FIRST_TASK), &mut parked);
        enter(&mut one, FIRST_TASK.end - 8);
        one.switch(FIRST_TASK.end - 64, None, &mut parked);
        other.switch(OWN + (1 << 30) - 64, Some(FIRST_TASK), &mut parked);
        let frames = other.at_leave(FIRST_TASK.end - 8).unwrap();
        assert_eq!(frames.len(), 1);
    }

    #[test]
    fn bounds_on_the_threads_own_stack_are_no_coroutine() {
        let mut stacks = Stacks::default();
        let mut parked = Parked::default();
        stacks.switch(OWN, Some(FIRST_TASK), &mut parked);
        enter(&mut stacks, OWN);
        stacks.switch(OWN, Some(OWN - 64..OWN + 64), &mut parked);
        assert_eq!(enter(&mut stacks, OWN - 128), 2);
    }

    #[test]
    fn stacks_without_calls_are_forgotten() {
        let mut stacks = Stacks::default();
        enter(&mut stacks, OWN);
        for task in 0..100 {
            let slot = 0x5000_0000 + (task << 20);
            enter(&mut stacks, slot);
            stacks.at_leave(slot).unwrap().pop();
        }
        assert!(stacks.stacks.len() <= 2);
    }
}
