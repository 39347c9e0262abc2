//! The queue of probe hits that the tracer evaluates without stopping the thread: `struct hs_asks` of
//! agent/runtime/layout.h, from the tracer's side.
//!
//! The thread owns a question from [`FREE`] to [`WAITING`], and again once it is answered. At [`WAITING`] either side
//! may change the state, and the change takes the question: the tracer answers it, or the thread gives up.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::*},
    },
};

use super::{ASKS_OFFSET, Shared};

/// Threads that can wait for an evaluation at the same time.
pub const ASKS: usize = 64;
/// Most bytes of its stack that each of them shows.
pub const STACK_BYTES: usize = 1536;
/// Length in bytes.
pub(super) const BYTES: u64 = size_of::<Asks>() as u64;

pub(super) const FREE: u64 = 0;
pub(super) const WAITING: u64 = 2;
pub(super) const TAKEN: u64 = 3;
pub(super) const PASS: u64 = 4;
pub(super) const STOP: u64 = 5;

#[repr(C)]
struct Ask {
    state: AtomicU64,
    tid: AtomicU32,
    unused_a: u32,
    site: AtomicU64,
    flags: AtomicU64,
    thread_block: AtomicU64,
    stack_at: AtomicU64,
    stack_bytes: AtomicU64,
    unused_b: u64,
    registers: [AtomicU64; 16],
    vectors: [AtomicU64; 32],
    unused_c: [u64; 8],
    stack: [AtomicU64; STACK_BYTES / 8],
}

#[repr(C)]
struct Asks {
    listening: AtomicU32,
    unused_a: [u32; 15],
    waiting: AtomicU64,
    unused_b: [u64; 7],
    ask: [Ask; ASKS],
}

const _: () = assert!(size_of::<Ask>() == 2048);
const _: () = assert!(size_of::<Asks>() == 128 + ASKS * 2048);

/// A thread that waits for an evaluation. Data that most evaluations do not need stays in place: each cache line that
/// is read must be transferred from the other processor.
#[derive(Clone, Debug)]
pub struct Asked {
    shared: Arc<Shared>,
    /// Number of the question, for the answer.
    pub number: usize,
    /// The thread.
    pub tid: u32,
    /// The statement's address.
    pub site: u64,
    /// Its flags, as programs can see them.
    pub flags: u64,
    /// The base of fs.
    pub thread_block: u64,
    /// General registers by their DWARF numbers.
    pub registers: [u64; 16],
    stack: Range<u64>,
}

impl Asked {
    /// Returns xmm0 to xmm15 by number. Valid until the question is answered.
    pub fn vector(&self, number: usize) -> Option<[u8; 16]> {
        let words = self.ask().vectors.get(number * 2..number * 2 + 2)?;
        let mut vector = [0; 16];
        vector[..8].copy_from_slice(&words[0].load(Relaxed).to_le_bytes());
        vector[8..].copy_from_slice(&words[1].load(Relaxed).to_le_bytes());
        Some(vector)
    }

    /// Fills `bytes` with the stack at `address`, if it is shown and none of its words is one that
    /// `is_other` matches: the hooks' return addresses. Valid until the question is answered.
    pub fn read_stack(
        &self,
        address: u64,
        bytes: &mut [u8],
        is_other: impl Fn(u64) -> bool,
    ) -> bool {
        let end = address.checked_add(bytes.len() as u64);
        if address < self.stack.start || end.is_none_or(|end| end > self.stack.end) {
            return false;
        }
        let start = (address - self.stack.start) as usize;
        let stack = &self.ask().stack;
        let mut done = 0;
        while done < bytes.len() {
            let (index, skipped) = ((start + done) / 8, (start + done) % 8);
            let Some(word) = stack.get(index) else {
                return false;
            };
            let word = word.load(Relaxed);
            if is_other(word) {
                return false;
            }
            let count = (8 - skipped).min(bytes.len() - done);
            bytes[done..done + count]
                .copy_from_slice(&word.to_le_bytes()[skipped..skipped + count]);
            done += count;
        }
        true
    }

    fn ask(&self) -> &Ask {
        &self.shared.asks().ask[self.number]
    }
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The thread continues.
    Pass,
    /// The thread runs into the trap.
    Stop,
}

impl Shared {
    /// Sets whether threads may ask. After they no longer may, the last questions must still be taken.
    pub fn listen(&self, on: bool) {
        let asks = self.asks();
        if asks.listening.load(Relaxed) != u32::from(on) {
            asks.listening.store(on.into(), SeqCst);
        }
    }

    /// Takes a waiting question, if there is one. It must be answered.
    pub fn take_ask(self: &Arc<Self>) -> Option<Asked> {
        let asks = self.asks();
        loop {
            let waiting = asks.waiting.load(SeqCst);
            if waiting == 0 {
                return None;
            }
            let number = waiting.trailing_zeros() as usize;
            asks.waiting.fetch_and(!(1 << number), SeqCst);
            let ask = &asks.ask[number];
            let taken = ask.state.compare_exchange(WAITING, TAKEN, AcqRel, Relaxed);
            if taken.is_ok() {
                return Some(ask.taken(self, number));
            }
        }
    }

    /// Answers a question.
    pub fn answer(&self, number: usize, verdict: Verdict) {
        let state = match verdict {
            Verdict::Pass => PASS,
            Verdict::Stop => STOP,
        };
        self.asks().ask[number].state.store(state, Release);
    }

    /// Sends a waiting thread into the trap, and returns whether it had asked.
    pub fn dismiss(&self, tid: u32) -> bool {
        let mut has_asked = false;
        for ask in self.asks().ask.iter().filter(|ask| ask.is_of(tid)) {
            let _ = ask.state.compare_exchange(WAITING, STOP, AcqRel, Relaxed);
            has_asked = true;
        }
        has_asked
    }

    /// Forgets the question of a thread that is gone.
    pub fn forget_asks(&self, tid: u32) {
        for ask in self.asks().ask.iter().filter(|ask| ask.is_of(tid)) {
            ask.tid.store(0, Relaxed);
            ask.state.store(FREE, Release);
        }
    }

    fn asks(&self) -> &Asks {
        // SAFETY: inside the mapping and aligned; both sides use atomics, and any bits are a value of each field.
        unsafe { &*self.base.add(ASKS_OFFSET as usize).cast::<Asks>() }
    }
}

impl Ask {
    fn is_of(&self, tid: u32) -> bool {
        self.state.load(Acquire) != FREE && self.tid.load(Relaxed) == tid
    }

    fn taken(&self, shared: &Arc<Shared>, number: usize) -> Asked {
        let at = self.stack_at.load(Relaxed);
        // The program can write any value here: only its own question is read.
        let shown = self.stack_bytes.load(Relaxed).min(STACK_BYTES as u64);
        Asked {
            shared: Arc::clone(shared),
            number,
            tid: self.tid.load(Relaxed),
            site: self.site.load(Relaxed),
            flags: self.flags.load(Relaxed),
            thread_block: self.thread_block.load(Relaxed),
            registers: std::array::from_fn(|index| self.registers[index].load(Relaxed)),
            stack: at..at.saturating_add(shown),
        }
    }
}

#[cfg(test)]
use super::layout_tests::{Fields, fields, size_of_field};

#[cfg(test)]
pub(super) fn ask_fields() -> Fields {
    fields!(Ask:
        state tid unused_a site flags thread_block stack_at stack_bytes unused_b registers vectors unused_c stack)
}

#[cfg(test)]
pub(super) fn asks_fields() -> Fields {
    fields!(Asks: listening unused_a waiting unused_b ask)
}
