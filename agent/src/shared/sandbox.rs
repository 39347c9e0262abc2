//! Finds out whether the program is in a sandbox (seccomp(2)). If it can enter one unseen by the runtime, a thread
//! that is about to make system calls for the recording first asks for permission and waits for the answer.

use std::sync::atomic::Ordering::*;

use super::Shared;

pub(super) const SEEN: u32 = 0;
pub(super) const ASK: u32 = 1;
pub(super) const ENTERED: u32 = 2;
pub(super) const STRICT: u32 = 3;

/// Which sandbox a program has entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// A filter of system calls.
    Filter,
    /// Strict mode, of one thread at least; it forbids the time stamp counter too.
    Strict,
}

impl Shared {
    /// Makes threads ask from now on. Until then the runtime is assumed to see every way into a sandbox.
    pub fn ask_about_sandbox(&self) {
        let word = &self.control().sandbox;
        // If they ask already, nothing changes.
        let _ = word.compare_exchange(SEEN, ASK, AcqRel, Acquire);
    }

    /// Returns whether threads ask.
    pub fn asks_about_sandbox(&self) -> bool {
        self.control().sandbox.load(Acquire) != SEEN
    }

    /// Returns the number of the latest question, if it has no answer.
    pub fn sandbox_asked(&self) -> Option<u32> {
        let control = self.control();
        let asked = control.sandbox_asked.load(Acquire);
        (asked != control.sandbox_answered.load(Acquire)).then_some(asked)
    }

    /// Answers all questions up to `asked`, by a check made after that number was read. Returns whether the sandbox is
    /// new.
    pub fn answer_sandbox(&self, asked: u32, found: Option<Sandbox>) -> bool {
        let control = self.control();
        let state = match found {
            None => ASK,
            Some(Sandbox::Filter) => ENTERED,
            Some(Sandbox::Strict) => STRICT,
        };
        let before = control.sandbox.fetch_max(state, AcqRel);
        control.sandbox_answered.store(asked, Release);
        before < ENTERED && state >= ENTERED
    }
}
