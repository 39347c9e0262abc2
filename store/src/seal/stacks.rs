//! Keeps the open calls of one thread, on its main stack and on others, and finds the stack of a slot.
//!
//! The thread's record gives its main stack. Slots elsewhere belong to signal stacks and coroutines. `swapcontext` tells
//! the bounds of the stack that it continues on; distance tells the other ones apart. Each is forgotten when its last
//! call ends. [`super::pair`] pairs the calls.

use std::cmp::{Ordering, Reverse};

use serde::{Deserialize, Serialize};

use crate::columns::CallStart;
use crate::wire::EnterForm;

/// Most bytes between a slot and those seen on the main stack, if the stack's bounds are unknown.
pub(super) const MAIN_REACH: u64 = 256 << 10;
/// The same for other stacks. Coroutines often have adjacent stacks of 64 KiB. If two of them counted as one,
/// returns of one would end calls of the other.
pub(super) const OTHER_REACH: u64 = 32 << 10;

/// Index of the main stack.
pub(super) const MAIN: usize = 0;

/// The stacks of one thread; the main one is always there.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stacks {
    /// The main one, and then the others by address.
    stacks: Vec<Stack>,
    /// The one used last.
    active: usize,
    bounds: Bounds,
    /// Counts changes of the active stack.
    switches: u64,
}

/// How the bounds of the main stack are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Bounds {
    /// Its first and its last slot.
    Known,
    /// Unknown bounds: the stack is around the thread's first call, as far as calls reached.
    Seen,
    /// Unknown bounds, and no call yet.
    Unseen,
}

/// One stack.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stack {
    /// Open calls, the outermost first; slots never rise.
    pub(super) open: Vec<Open>,
    /// The call on another stack that is the parent of this stack's first call.
    pub(super) base: Option<Base>,
    low: u64,
    high: u64,
    /// Value of `switches` when it last became active.
    active_since: u64,
    /// Whether `low` and `high` are the stack's first and last byte, not only the slots seen so far.
    #[serde(default)]
    is_whole: bool,
    /// The innermost call on the stack from which the thread came here last.
    #[serde(default)]
    resumed_by: Option<Base>,
}

/// An open call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Open {
    pub(super) start: CallStart,
    /// Time in finished direct callees, in nanoseconds.
    pub(super) child_ns: i64,
    /// Whether a leave record will come.
    pub(super) hooked: bool,
    /// The thread in which it began. A coroutine may go on in another one.
    #[serde(default)]
    pub(super) tid: Option<u32>,
}

/// The parent of a stack's first call: its index on its own stack, and its id.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Base {
    index: usize,
    seq: u64,
    depth: u32,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            stacks: vec![Stack::new(u64::MAX, 0)],
            active: MAIN,
            bounds: Bounds::Unseen,
            switches: 0,
        }
    }
}

impl Stacks {
    /// Sets the main stack's lowest address and its end; 0 and 0 when they are unknown.
    pub(super) fn set_main(&mut self, low: u64, end: u64) {
        if low < end && self.bounds == Bounds::Unseen {
            self.bounds = Bounds::Known;
            (self.stacks[MAIN].low, self.stacks[MAIN].high) = (low, end - 1);
        }
    }

    /// Returns a stack.
    #[inline]
    pub(super) fn get(&mut self, index: usize) -> &mut Stack {
        &mut self.stacks[index]
    }

    /// Returns the stack of `slot` and makes it the active one; a new one if none fits.
    #[inline]
    pub(super) fn at_enter(&mut self, slot: u64) -> usize {
        if self.stacks[self.active].holds(slot) {
            return self.active;
        }
        let index = match self.find(slot) {
            Some(index) => index,
            None if self.bounds == Bounds::Unseen => {
                self.bounds = Bounds::Seen;
                MAIN
            }
            None => self.add(Stack::new(slot, slot)),
        };
        self.stacks[index].widen(slot);
        self.activate(index)
    }

    /// Returns the stack of `slot` and makes it the active one; `None` if none fits.
    #[inline]
    pub(super) fn at_leave(&mut self, slot: u64) -> Option<usize> {
        if self.stacks[self.active].holds(slot) {
            return Some(self.active);
        }
        let index = self.find(slot)?;
        self.stacks[index].widen(slot);
        Some(self.activate(index))
    }

    /// The thread leaves the stack with the stack pointer `from` for the one from `low` to before `end`; both are 0 if that is
    /// unknown. No thread uses the `parked` stacks: another one may go on there.
    pub(super) fn switch(&mut self, from: u64, (low, end): (u64, u64), parked: &mut Stacks) {
        let source = self.at_leave(from);
        let base = source.and_then(|index| self.stacks[index].base_of_next());
        if let Some(index) = source.filter(|index| self.stacks[*index].is_whole) {
            let stack = self.remove(index);
            if !stack.open.is_empty() {
                parked.add(stack);
            }
        }
        if low >= end || self.bounds == Bounds::Unseen || self.stacks[MAIN].overlaps(low, end) {
            return;
        }
        let known = [parked.take(low, end), self.take(low, end)];
        let known = known.into_iter().flatten();
        let mut stack = known
            .reduce(Stack::joined)
            .unwrap_or_else(|| Stack::new(low, end - 1));
        (stack.low, stack.high, stack.is_whole) = (low, end - 1, true);
        stack.resumed_by = base;
        let index = self.add(stack);
        self.activate(index);
    }

    /// Adds a stack, and returns its index.
    fn add(&mut self, stack: Stack) -> usize {
        let index = self.after(|other| other.low < stack.low);
        self.insert(index, stack);
        index
    }

    /// Removes the stack in this memory. Several are one, which the program has made anew.
    fn take(&mut self, low: u64, end: u64) -> Option<Stack> {
        let from = self.after(|stack| stack.high < low);
        let until = self.after(|stack| stack.low < end);
        let found = (from..until).rev().map(|index| self.remove(index));
        found.reduce(Stack::joined)
    }

    /// Notes the call that encloses the next one on stack `index`, and returns its id and depth.
    #[inline]
    pub(super) fn parent(&mut self, index: usize) -> Option<(u64, u32)> {
        if let Some(top) = self.stacks[index].open.last() {
            return Some((top.start.seq, top.start.depth));
        }
        if index == MAIN {
            return None;
        }
        self.stacks[index].base = self.stacks[index].resumed_by;
        if self.stacks[index].base.is_none() {
            let others = self.stacks.iter().enumerate();
            let others = others.filter(|(i, s)| *i != index && (*i == MAIN || !s.open.is_empty()));
            let (_, recent) = others.max_by_key(|(_, stack)| stack.active_since)?;
            self.stacks[index].base = recent.base_of_next();
        }
        let base = self.stacks[index].base?;
        Some((base.seq, base.depth))
    }

    /// Returns the id of the innermost open call that contains the stack pointer `stack`.
    pub(super) fn enclosing(&self, stack: u64) -> Option<u64> {
        let index = match self.stacks[self.active].holds(stack) {
            true => self.active,
            false => self.find(stack).unwrap_or(self.active),
        };
        let mut inner = self.stacks[index].open.iter().rev();
        let call = inner.find(|open| open.start.slot >= stack)?;
        Some(call.start.seq)
    }

    /// Adds to the callee time of the call that encloses the last open one on stack `index`.
    pub(super) fn add_to_base(&mut self, index: usize, dur_ns: i64) {
        let Some(base) = self.stacks[index].base else {
            return;
        };
        let calls = self
            .stacks
            .iter_mut()
            .filter_map(|s| s.open.get_mut(base.index));
        if let Some(parent) = calls.into_iter().find(|open| open.start.seq == base.seq) {
            parent.child_ns += dur_ns;
        }
    }

    /// Removes stack `index` if it has no open call, unless it is the main one, or the thread is known to be on it.
    #[inline]
    pub(super) fn drop_if_empty(&mut self, index: usize) {
        if index == MAIN || !self.stacks[index].open.is_empty() {
            return;
        }
        let was_active = self.active == index;
        if was_active && self.stacks[index].is_whole {
            return;
        }
        self.remove(index);
        if was_active {
            let stacks = self.stacks.iter().enumerate();
            let recent = stacks.max_by_key(|(_, stack)| stack.active_since);
            self.active = recent.map_or(MAIN, |(index, _)| index);
        }
    }

    /// Returns a stack with open calls: the last used one other than the main stack, or else the main one.
    pub(super) fn next_to_end(&self) -> Option<usize> {
        let open = self
            .stacks
            .iter()
            .enumerate()
            .filter(|(_, s)| !s.open.is_empty());
        let last = open.max_by_key(|(index, stack)| (*index != MAIN, stack.active_since));
        last.map(|(index, _)| index)
    }

    /// Returns all open calls, in no particular order.
    pub(super) fn open(&self) -> impl Iterator<Item = &Open> {
        self.stacks.iter().flat_map(|stack| &stack.open)
    }

    /// Returns the stack with the slots nearest to `slot`, if they are near enough.
    #[inline(never)]
    fn find(&self, slot: u64) -> Option<usize> {
        let above = self.after(|stack| stack.low <= slot);
        let near = [MAIN, above - 1, above].into_iter().filter_map(|index| {
            let stack = self.stacks.get(index)?;
            let reach = match (index, self.bounds) {
                (MAIN, Bounds::Known) => 0,
                (MAIN, Bounds::Unseen) => return None,
                (MAIN, Bounds::Seen) => MAIN_REACH,
                _ if stack.is_whole => 0,
                _ => OTHER_REACH,
            };
            let distance = stack.distance(slot);
            (distance <= reach).then_some((distance, index))
        });
        near.min().map(|(_, index)| index)
    }

    /// Returns the index after the stacks other than the main one for which `is_before` is true, which are those of lower
    /// addresses.
    fn after(&self, is_before: impl Fn(&Stack) -> bool) -> usize {
        let others = &self.stacks[MAIN + 1..];
        MAIN + 1 + others.partition_point(is_before)
    }

    fn insert(&mut self, index: usize, stack: Stack) {
        self.stacks.insert(index, stack);
        if self.active >= index {
            self.active += 1;
        }
    }

    /// Removes a stack. If it was the active one, the main one is.
    fn remove(&mut self, index: usize) -> Stack {
        match self.active.cmp(&index) {
            Ordering::Less => {}
            Ordering::Equal => self.active = MAIN,
            Ordering::Greater => self.active -= 1,
        }
        self.stacks.remove(index)
    }

    /// Makes a stack the active one, and returns its index. One that was left before it had calls is forgotten.
    fn activate(&mut self, index: usize) -> usize {
        let before = self.active;
        if before != index {
            self.switches += 1;
            self.stacks[index].active_since = self.switches;
            self.active = index;
            if before != MAIN && self.stacks[before].open.is_empty() {
                self.remove(before);
            }
        }
        self.active
    }
}

impl Stack {
    fn new(low: u64, high: u64) -> Self {
        Self {
            open: Vec::new(),
            base: None,
            low,
            high,
            active_since: 0,
            is_whole: false,
            resumed_by: None,
        }
    }

    /// Returns the parent of the first call on a stack that the thread goes on on from here.
    fn base_of_next(&self) -> Option<Base> {
        let top = self.open.last()?;
        Some(Base {
            index: self.open.len() - 1,
            seq: top.start.seq,
            depth: top.start.depth,
        })
    }

    /// Returns the stack with the calls of both, of which `lower` has those that began later, or lower.
    fn joined(mut self, mut lower: Stack) -> Stack {
        self.open.append(&mut lower.open);
        self.open.sort_by_key(|open| Reverse(open.start.slot));
        self
    }

    fn overlaps(&self, low: u64, end: u64) -> bool {
        self.low < end && low <= self.high
    }

    #[inline]
    fn holds(&self, slot: u64) -> bool {
        (self.low..=self.high).contains(&slot)
    }

    fn distance(&self, slot: u64) -> u64 {
        self.low
            .saturating_sub(slot)
            .max(slot.saturating_sub(self.high))
    }

    fn widen(&mut self, slot: u64) {
        self.low = self.low.min(slot);
        self.high = self.high.max(slot);
    }
}

impl Open {
    /// Returns a call that just began, entered as `form` says.
    #[inline]
    pub(super) fn new(start: CallStart, form: EnterForm, tid: Option<u32>) -> Self {
        Self {
            start,
            tid,
            child_ns: 0,
            hooked: !matches!(form, EnterForm::NoLeave | EnterForm::Only),
        }
    }
}
