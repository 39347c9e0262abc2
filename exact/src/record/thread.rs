//! The threads of the program, and what each of them is doing. Whose turn it is, `turns` knows.

use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

use super::system_call::Call;
use crate::log::Bytes;
use crate::translate::layout;

/// What a thread is doing.
#[derive(Debug)]
pub(super) enum State {
    /// It can go on from where it is stopped.
    Ready,
    /// It is in a system call.
    InCall(Call),
}

#[derive(Debug)]
pub(super) struct Thread {
    /// The block that gs points to.
    pub(super) block: u64,
    pub(super) state: State,
    /// Where zero is written when the thread ends (set_tid_address(2)).
    pub(super) clears: u64,
    /// Its stack for signals, if it has one: start and end.
    pub(super) alternate: (u64, u64),
    /// It is to execute the instruction of the program at this address where that lies, which is expected to fault.
    pub(super) outside: Option<u64>,
}

impl Thread {
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready)
    }

    /// The call that it is in.
    pub(super) fn call(&self) -> Option<&Call> {
        match &self.state {
            State::InCall(call) => Some(call),
            State::Ready => None,
        }
    }

    /// It is in a call no more; returns that.
    pub(super) fn leave_call(&mut self) -> Option<Call> {
        match std::mem::replace(&mut self.state, State::Ready) {
            State::InCall(call) => Some(call),
            State::Ready => None,
        }
    }
}

/// All of them, by their ids.
#[derive(Debug)]
pub(super) struct Threads {
    known: FxHashMap<i32, Thread>,
    /// Where the blocks lie (`layout::block`), and how many were given out.
    low: u64,
    given: u64,
}

impl Index<i32> for Threads {
    type Output = Thread;

    fn index(&self, tid: i32) -> &Thread {
        self.known.get(&tid).expect("the thread is known")
    }
}

impl IndexMut<i32> for Threads {
    fn index_mut(&mut self, tid: i32) -> &mut Thread {
        self.known.get_mut(&tid).expect("the thread is known")
    }
}

impl Threads {
    pub(super) fn new(low: u64) -> Threads {
        Threads {
            known: FxHashMap::default(),
            low,
            given: 0,
        }
    }

    /// A thread that can go on, with a block of its own.
    pub(super) fn add(&mut self, tid: i32, clears: u64) -> &mut Thread {
        let block = self.free_block();
        let thread = Thread {
            block,
            state: State::Ready,
            clears,
            alternate: (0, 0),
            outside: None,
        };
        self.known.entry(tid).insert_entry(thread).into_mut()
    }

    /// A block that no thread has; the last two are for other purposes.
    fn free_block(&mut self) -> u64 {
        let is_free = |block: &u64| self.known.values().all(|thread| thread.block != *block);
        let after = (0..layout::BLOCKS - 2).map(|more| self.given.wrapping_add(more));
        let mut blocks = after.map(|number| layout::block(self.low, number % (layout::BLOCKS - 2)));
        let next = layout::block(self.low, self.given % (layout::BLOCKS - 2));
        let block = blocks.find(is_free).unwrap_or(next);
        self.given += 1;
        block
    }

    pub(super) fn remove(&mut self, tid: i32) -> Option<Thread> {
        self.known.remove(&tid)
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.given = 0;
    }

    pub(super) fn has(&self, tid: i32) -> bool {
        self.known.contains_key(&tid)
    }

    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    pub(super) fn tids(&self) -> impl Iterator<Item = i32> {
        self.known.keys().copied()
    }

    /// What lay in the locks for which threads have begun to wait.
    pub(super) fn take_locks(&mut self) -> Vec<Bytes> {
        let all = self.known.values_mut();
        let calls = all.filter_map(|thread| match &mut thread.state {
            State::InCall(call) => call.take_lock(),
            State::Ready => None,
        });
        calls.collect()
    }

    /// Those that are in a system call.
    pub(super) fn in_calls(&self) -> impl Iterator<Item = (i32, &Call)> {
        let all = self.known.iter();
        all.filter_map(|(tid, thread)| Some((*tid, thread.call()?)))
    }
}
