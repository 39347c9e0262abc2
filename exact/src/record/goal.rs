//! When a stretch of recording is long enough.

use libc::user_regs_struct;
use rustc_hash::FxHashSet;

use super::Recorder;
use crate::error::{Context as _, Result};
use crate::ptrace;

/// A call of one of the chosen functions.
#[derive(Debug)]
struct Open {
    tid: i32,
    /// The stack pointer at its entry, where the return address lies.
    stack: u64,
}

/// What is waited for.
#[derive(Debug)]
pub(super) enum Goal {
    /// So many instructions of all threads; it may be some more.
    Count(u64),
    /// All calls of these functions have been left.
    Calls(Calls),
}

#[derive(Debug)]
pub(super) struct Calls {
    entries: FxHashSet<u64>,
    open: Vec<Open>,
}

impl Goal {
    pub(super) fn calls(entries: impl Iterator<Item = u64>) -> Goal {
        Goal::Calls(Calls {
            entries: entries.collect(),
            open: Vec::new(),
        })
    }

    /// The calls that are waited for, if any are.
    fn open(&mut self) -> Option<&mut Calls> {
        match self {
            Goal::Calls(calls) => Some(calls),
            Goal::Count(_) => None,
        }
    }

    /// A thread has ended.
    pub(super) fn end_of(&mut self, tid: i32) {
        if let Some(calls) = self.open() {
            calls.open.retain(|open| open.tid != tid);
        }
    }

    /// Calls of a thread whose frames lie below its stack pointer have been left. A handler on a stack of its own, `alternate`, tells nothing.
    fn left(&mut self, tid: i32, stack: u64, alternate: (u64, u64)) {
        let is_of_handler = (alternate.0..alternate.1).contains(&stack);
        if let Some(calls) = self.open().filter(|_| !is_of_handler) {
            let is_left = |open: &Open| open.tid == tid && open.stack < stack;
            calls.open.retain(|open| !is_left(open));
        }
    }

    /// If a thread is at the entry of a chosen function, its call is open from now on. Returns whether it is.
    fn entered(&mut self, tid: i32, pc: u64, stack: u64) -> bool {
        let Some(calls) = self.open().filter(|calls| calls.entries.contains(&pc)) else {
            return false;
        };
        let is_known = |open: &Open| open.tid == tid && open.stack == stack;
        if !calls.open.iter().any(is_known) {
            calls.open.push(Open { tid, stack });
        }
        true
    }
}

impl Recorder {
    /// Whether what was to be recorded is recorded. Asked when no thread runs in translated code.
    pub(super) fn is_enough(&mut self) -> Result<bool> {
        let (Some(tid), Some(goal)) = (self.turns.current, &mut self.part.goal) else {
            return Ok(false);
        };
        let thread = &self.threads[tid];
        if !thread.is_ready() {
            return Ok(false);
        }
        let registers = ptrace::registers(tid).context("read registers")?;
        // An exception or longjmp may have left calls.
        goal.left(tid, registers.rsp, thread.alternate);
        match goal {
            Goal::Calls(calls) => Ok(calls.open.is_empty()),
            Goal::Count(wanted) => {
                let wanted = *wanted;
                self.take_counter(tid, &registers, registers.rip)?;
                Ok(self.count >= wanted)
            }
        }
    }

    /// A thread is at the entry of a function, or where a call returns to; it is stopped behind the trap at `at`.
    pub(super) fn at_stop(
        &mut self,
        tid: i32,
        registers: &user_regs_struct,
        at: u64,
        pc: u64,
    ) -> Result<()> {
        self.take_counter(tid, registers, at)?;
        if let Some(goal) = &mut self.part.goal {
            goal.left(tid, registers.rsp, self.threads[tid].alternate);
        }
        let own = self.own(tid, registers)?;
        if self.entered(tid, pc, registers.rsp)? {
            // Where it stands may have been forgotten.
            return self.enter(tid, &own);
        }
        Ok(())
    }

    /// If the thread is at the entry of a chosen function, its call is open from now on. Returns whether translations were forgotten.
    pub(super) fn entered(&mut self, tid: i32, pc: u64, stack: u64) -> Result<bool> {
        let enters = |goal: &mut Goal| goal.entered(tid, pc, stack);
        if !self.part.goal.as_mut().is_some_and(enters) {
            return Ok(false);
        }
        let returns = self.process.word(stack)?;
        let is_new = self.translator.add_stop(returns);
        if is_new {
            self.reenter()?;
        }
        Ok(is_new)
    }
}
