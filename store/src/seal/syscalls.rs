//! Pairs the two ends of the system calls of one thread, by the stack pointer.
//!
//! A signal handler that interrupts a call makes its own calls in between. A call that a handler jumps out of, or that
//! ends the thread, has no end.

use serde::{Deserialize, Serialize};

use super::pair::{Numbered, Sink};
use crate::columns::{EventKind, EventRow};
use crate::error::Result;
use crate::wire::{Syscall, SyscallEnd};

/// More open calls than this were jumped out of.
const MOST_OPEN: usize = 256;

/// The open system calls of a thread, the outermost first: stack pointer and event.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Syscalls {
    open: Vec<(u64, u64)>,
}

impl Syscalls {
    /// Adds a call that begins in the call `within`.
    pub(super) fn begin<S: Sink>(
        &mut self,
        call: &Syscall<'_>,
        within: Option<u64>,
        tid: Option<u32>,
        ts_ns: i64,
        out: &mut Numbered<S>,
    ) -> Result<()> {
        if self.open.len() == MOST_OPEN {
            self.open.remove(0);
        }
        // A call that was open at the same place did not return.
        self.open.retain(|(stack, _)| *stack != call.stack);
        self.open.push((call.stack, out.next_seq));
        let bytes = [call.arguments, call.memory].concat();
        out.event(ts_ns, tid, EventKind::Syscall, |row| EventRow {
            addr: Some(call.addr),
            size: within,
            bytes: Some(&bytes),
            ..row.value(call.number as i64)
        })
    }

    /// Adds the end of a call.
    pub(super) fn end<S: Sink>(
        &mut self,
        end: &SyscallEnd<'_>,
        tid: Option<u32>,
        ts_ns: i64,
        out: &mut Numbered<S>,
    ) -> Result<()> {
        let found = self.open.iter().rposition(|(stack, _)| *stack == end.stack);
        let began = found.map(|index| {
            let (_, seq) = self.open[index];
            self.open.truncate(index);
            seq
        });
        out.event(ts_ns, tid, EventKind::SyscallEnd, |row| EventRow {
            size: began,
            bytes: Some(end.memory).filter(|memory| !memory.is_empty()),
            ..row.value(end.result as i64)
        })
    }
}
