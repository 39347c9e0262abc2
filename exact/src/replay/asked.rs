//! The system calls of a program, as it is run again: where each began, what its arguments point to, and what it returned.
//!
//! The log has the moment at which a call returned. One that waited had begun before other threads went on.

use libc::user_regs_struct;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Replay;
use super::trace::{Region, Traced};
use crate::error::Result;
use crate::log::{Entries, Entry};
use crate::system_calls::shown;

/// `syscall`
const CALL: [u8; 2] = [0x0f, 0x05];
/// Results from here on to -1 are errors.
const FIRST_ERROR: i64 = -4095;

/// The calls that threads are in.
pub(super) struct Asked {
    /// Entries at which a thread that waits in a call lets another one go on.
    waits: FxHashSet<usize>,
    begun: FxHashSet<i32>,
}

impl Asked {
    /// `first` is the thread that runs first.
    pub(super) fn of(entries: &Entries, first: i32) -> Asked {
        Asked {
            waits: waits(entries, first),
            begun: FxHashSet::default(),
        }
    }
}

/// Where the log says next, of a thread that lets another one go on, that its call returns: not that it goes on.
fn waits(entries: &Entries, first: i32) -> FxHashSet<usize> {
    let mut running = first;
    // The threads that do not run, and at which entry each has let another one go on.
    let mut left: FxHashMap<i32, usize> = FxHashMap::default();
    let mut waits = FxHashSet::default();
    for (index, entry) in entries.iter().enumerate() {
        match entry {
            Entry::SystemCall { tid, .. }
            | Entry::Signal {
                tid,
                call_done: true,
                ..
            } => waits.extend(left.remove(&tid)),
            Entry::Signal { tid, .. } | Entry::End { tid, .. } => {
                left.remove(&tid);
            }
            Entry::Switch { tid, .. } => {
                left.remove(&tid);
                left.insert(running, index);
                running = tid;
            }
            Entry::Resumed { running: tid, .. } => {
                left.clear();
                running = tid;
            }
            _ => {}
        }
    }
    waits
}

fn arguments(r: &user_regs_struct) -> [u64; 6] {
    [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]
}

impl Replay {
    fn registers_of_any(&self, tid: i32) -> Result<user_regs_struct> {
        match self.registers_of(tid) {
            Some(registers) => Ok(registers),
            None => self.registers(),
        }
    }

    /// A thread makes the call that is its next instruction, unless that is known.
    pub(super) fn trace_call_begins(&mut self, tid: i32) -> Result<()> {
        let is_new = |calls: &mut super::trace::Calls| calls.asked.begun.insert(tid);
        if !self.calls.as_mut().is_some_and(is_new) {
            return Ok(());
        }
        let registers = self.registers_of_any(tid)?;
        let arguments = arguments(&registers);
        let traced = Traced::SystemCall {
            position: self.now.count,
            tid,
            number: registers.rax,
            arguments,
            address: registers.rip,
            stack: registers.rsp,
            memory: self.shown(registers.rax, &arguments, None),
        };
        if let Some(calls) = &mut self.calls {
            calls.found.push(traced);
        }
        Ok(())
    }

    /// The call of a thread has returned; its registers are still those before it.
    pub(super) fn trace_system_call(
        &mut self,
        tid: i32,
        result: i64,
        output: Option<Vec<u8>>,
    ) -> Result<()> {
        if self.calls.is_none() {
            return Ok(());
        }
        let registers = self.registers_of_any(tid)?;
        let arguments = arguments(&registers);
        let memory = match (FIRST_ERROR..0).contains(&result) {
            true => Vec::new(),
            false => self.shown(registers.rax, &arguments, Some(result)),
        };
        let traced = Traced::Answer {
            position: self.now.count + 1,
            tid,
            number: registers.rax,
            arguments,
            result,
            stack: registers.rsp,
            memory,
            output,
        };
        self.trace_call_is_left(tid);
        if let Some(calls) = &mut self.calls {
            calls.found.push(traced);
        }
        Ok(())
    }

    /// A thread is in no call any more.
    pub(super) fn trace_call_is_left(&mut self, tid: i32) {
        if let Some(calls) = &mut self.calls {
            calls.asked.begun.remove(&tid);
        }
    }

    /// The thread that runs lets another one go on. If it waits in a call, that begins here.
    pub(super) fn trace_waiting(&mut self) -> Result<()> {
        let index = self.now.next.wrapping_sub(1);
        let waits = |calls: &super::trace::Calls| calls.asked.waits.contains(&index);
        match self.calls.as_ref().is_some_and(waits) && self.is_at_call()? {
            true => self.trace_call_begins(self.now.running),
            false => Ok(()),
        }
    }

    /// At the end: the call that ended the program, or made another one of it, does not return.
    pub(super) fn trace_last_call(&mut self) -> Result<()> {
        let next = self.recorded.entries.get(self.now.next);
        let is_last = matches!(
            next.as_deref(),
            Some(Entry::Exit { signal: 0, .. } | Entry::Executed { .. })
        );
        match is_last && self.is_at_call()? {
            true => self.trace_call_begins(self.now.running),
            false => Ok(()),
        }
    }

    /// Whether the next instruction of the thread that runs is a system call.
    fn is_at_call(&self) -> Result<bool> {
        let at = self.registers()?.rip;
        Ok(self.process.bytes(at, CALL.len()) == CALL)
    }

    /// What a call has written to standard output or standard error.
    pub(super) fn trace_output(
        &self,
        tid: i32,
        number: u64,
        result: i64,
    ) -> Result<Option<Vec<u8>>> {
        if self.calls.is_none() {
            return Ok(None);
        }
        let arguments = arguments(&self.registers_of_any(tid)?);
        Ok(self.output(number, &arguments, result))
    }

    fn output(&self, number: u64, arguments: &[u64; 6], result: i64) -> Option<Vec<u8>> {
        let length = usize::try_from(result).ok()?;
        if !matches!(arguments[0], 1 | 2) {
            return None;
        }
        match i64::try_from(number).ok()? {
            libc::SYS_write | libc::SYS_sendto => Some(self.process.bytes(arguments[1], length)),
            libc::SYS_writev => {
                let mut bytes = Vec::new();
                for index in 0..arguments[2].min(1024) {
                    let part = self.process.bytes(arguments[1] + 16 * index, 16);
                    let (at, size) = part.split_at_checked(8)?;
                    let at = u64::from_le_bytes(at.try_into().ok()?);
                    let size = u64::from_le_bytes(size.try_into().ok()?) as usize;
                    bytes.extend(self.process.bytes(at, size.min(length - bytes.len())));
                }
                Some(bytes)
            }
            _ => None,
        }
    }

    /// What tells more about a call than its arguments: before it, or after it, with its result.
    fn shown(&self, number: u64, arguments: &[u64; 6], result: Option<i64>) -> Vec<Region> {
        let spans = shown::spans(number, arguments, result, &self.process);
        let regions = spans.into_iter().map(|(address, length)| Region {
            address,
            bytes: self.process.bytes(address, length),
        });
        regions.filter(|region| !region.bytes.is_empty()).collect()
    }
}
