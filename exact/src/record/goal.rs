//! When a stretch of recording is long enough.

use libc::user_regs_struct;
use rustc_hash::FxHashSet;

use super::{Recorder, State};
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
}

impl Recorder {
    /// Whether what was to be recorded is recorded. Asked when no thread runs in translated code.
    pub(super) fn is_enough(&mut self) -> Result<bool> {
        let Some(tid) = self.current.filter(|_| self.goal.is_some()) else {
            return Ok(false);
        };
        if let State::InCall(_) = self.threads[&tid].state {
            return Ok(false);
        }
        let registers = ptrace::registers(tid).context("read registers")?;
        if let Some(Goal::Count(wanted)) = self.goal {
            self.take_counter(tid, &registers, registers.rip)?;
            return Ok(self.count >= wanted);
        }
        // An exception or longjmp may have left them.
        self.left(tid, registers.rsp);
        let is_open = matches!(&self.goal, Some(Goal::Calls(calls)) if !calls.open.is_empty());
        Ok(!is_open)
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
        self.left(tid, registers.rsp);
        let own = self.own(tid, registers)?;
        if self.entered(tid, pc, registers.rsp)? {
            // Where it stands may have been forgotten.
            return self.enter(tid, &own);
        }
        Ok(())
    }

    /// If the thread is at the entry of a chosen function, its call is open from now on. Returns whether translations were forgotten.
    pub(super) fn entered(&mut self, tid: i32, pc: u64, stack: u64) -> Result<bool> {
        let Some(Goal::Calls(calls)) = &mut self.goal else {
            return Ok(false);
        };
        if !calls.entries.contains(&pc) {
            return Ok(false);
        }
        let is_known = |open: &Open| open.tid == tid && open.stack == stack;
        if !calls.open.iter().any(is_known) {
            calls.open.push(Open { tid, stack });
        }
        let returns = self.process.word(stack)?;
        let is_new = self.translator.add_stop(returns);
        if is_new {
            self.reenter()?;
        }
        Ok(is_new)
    }

    /// Calls of a thread whose frames lie below its stack pointer have been left. A handler on a stack of its own tells nothing.
    fn left(&mut self, tid: i32, stack: u64) {
        let (start, end) = self.threads[&tid].alternate;
        if let Some(Goal::Calls(calls)) = &mut self.goal {
            let is_of_handler = (start..end).contains(&stack);
            let is_left = |open: &Open| open.tid == tid && open.stack < stack && !is_of_handler;
            calls.open.retain(|open| !is_left(open));
        }
    }

    /// A thread has ended.
    pub(super) fn calls_end(&mut self, tid: i32) {
        if let Some(Goal::Calls(calls)) = &mut self.goal {
            calls.open.retain(|open| open.tid != tid);
        }
    }
}
