//! Releases the records of one thread and keeps the thread's metadata.

use serde::{Deserialize, Serialize};

use super::describe;
use super::live::Live;
use super::pair::{self, Numbered, Sink};
use super::queue::{Block, Queue};
use super::stacks::{Open, Stacks};
use super::syscalls::Syscalls;
use crate::columns::{CaptureRow, EventKind};
use crate::error::Result;
use crate::wire::{Record, Records};

/// Most buffers that are kept for the next blocks.
const MAX_POOL: usize = 64;

/// What all threads share.
pub(super) struct Shared<'m> {
    pub(super) live: &'m Live,
    /// Stacks of coroutines that no thread uses.
    pub(super) parked: &'m mut Stacks,
    /// Buffers for the next blocks.
    pub(super) pool: &'m mut Vec<Vec<u8>>,
}

/// One thread: one use of a ring.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Thread {
    /// Ring and tenancy.
    pub(super) id: (u32, u32),
    tid: Option<u32>,
    /// Whether its end was seen.
    ended: bool,
    /// The event of its last enter or leave: captures belong to it.
    #[serde(default)]
    last_call: Option<u64>,
    /// Its open system calls.
    #[serde(default)]
    syscalls: Syscalls,
    pub(super) queue: Queue,
    stacks: Stacks,
}

impl Thread {
    /// Returns an empty thread.
    pub(super) fn new(id: (u32, u32)) -> Self {
        Self {
            id,
            tid: None,
            ended: false,
            last_call: None,
            syscalls: Syscalls::default(),
            queue: Queue::default(),
            stacks: Stacks::default(),
        }
    }

    /// Returns the thread's id, if known.
    pub(super) fn tid(&self) -> Option<u32> {
        self.tid
    }

    /// Returns its open calls, in no particular order.
    pub(super) fn open(&self) -> impl Iterator<Item = &Open> {
        self.stacks.open()
    }

    /// Returns whether it is finished: no record waits and no call is open.
    pub(super) fn is_over(&self) -> bool {
        self.queue.is_empty() && self.open().next().is_none()
    }

    /// Releases records older than `stop_at`, at most `budget` of them, and returns the time of the next one.
    pub(super) fn release<S: Sink>(
        &mut self,
        stop_at: u64,
        budget: &mut u64,
        shared: &mut Shared<'_>,
        out: &mut Numbered<S>,
    ) -> Result<Option<u64>> {
        while let Some(mut block) = self.queue.take() {
            let next = self.release_block(&mut block, stop_at, budget, shared, out)?;
            if next.is_some() {
                self.queue.put_back(block);
                return Ok(next);
            }
            if shared.pool.len() < MAX_POOL {
                shared.pool.push(block.bytes);
            }
        }
        Ok(None)
    }

    /// Releases records of a block and returns the time of its next one, if there is one.
    fn release_block<S: Sink>(
        &mut self,
        block: &mut Block,
        stop_at: u64,
        budget: &mut u64,
        shared: &mut Shared<'_>,
        out: &mut Numbered<S>,
    ) -> Result<Option<u64>> {
        let mut records = Records::new(&block.bytes[block.at..]);
        loop {
            let offset = block.at + records.offset();
            let Some(record) = records.next() else {
                return Ok(None);
            };
            let raw_ticks = record.as_ref().ok().map(|record| record.ticks);
            let ticks = self.queue.clamp(raw_ticks, block.floor);
            // A capture is released with the event before it, so that both are in the same order.
            let goes_on = matches!(&record, Ok(decoded) if decoded.record.is_capture());
            if (ticks >= stop_at || *budget == 0) && !goes_on {
                block.at = offset;
                return Ok(Some(ticks));
            }
            *budget = budget.saturating_sub(1);
            self.queue.advance(ticks);
            let ts_ns = out.clock.ns_from_ticks(ticks);
            match record {
                Ok(decoded) => self.record(ts_ns, &decoded.record, shared, out)?,
                Err(_) => {
                    describe::torn(self.tid, ts_ns, out)?;
                    return Ok(None);
                }
            }
        }
    }

    #[inline]
    fn record<S: Sink>(
        &mut self,
        ts_ns: i64,
        record: &Record<'_>,
        shared: &mut Shared<'_>,
        out: &mut Numbered<S>,
    ) -> Result<()> {
        match record {
            Record::Enter(enter) => pair::enter(&mut self.stacks, self.tid, ts_ns, enter, out)?,
            Record::Leave(leave) => pair::leave(&mut self.stacks, self.tid, ts_ns, leave, out)?,
            _ => return self.rare_record(ts_ns, record, shared, out),
        }
        self.last_call = Some(out.next_seq - 1);
        Ok(())
    }

    #[inline(never)]
    fn rare_record<S: Sink>(
        &mut self,
        ts_ns: i64,
        record: &Record<'_>,
        shared: &mut Shared<'_>,
        out: &mut Numbered<S>,
    ) -> Result<()> {
        match *record {
            Record::Thread {
                tid,
                stack_low,
                stack_high,
                ..
            } => {
                self.tid = Some(tid);
                self.stacks.set_main(stack_low, stack_high);
            }
            Record::ThreadExit { tid } => {
                return self.end(tid, ts_ns, out);
            }
            Record::Capture(capture) => {
                // Without its call (the recording begins here) it has no meaning.
                let Some(seq) = self.last_call.take() else {
                    return Ok(());
                };
                let tid = self.tid;
                return out.sink.capture(&CaptureRow {
                    seq,
                    ts_ns,
                    tid,
                    capture,
                });
            }
            Record::Syscall(syscall) => {
                let within = self.stacks.enclosing(syscall.stack);
                let tid = self.tid;
                return self.syscalls.begin(&syscall, within, tid, ts_ns, out);
            }
            Record::FramesLeft { stack } => {
                return pair::frames_left(&mut self.stacks, self.tid, ts_ns, stack, out);
            }
            Record::StackSwitch { from, low, end } => {
                pair::frames_left(&mut self.stacks, self.tid, ts_ns, from, out)?;
                self.stacks.switch(from, (low, end), shared.parked);
                return Ok(());
            }
            Record::SyscallEnd(end) => return self.syscalls.end(&end, self.tid, ts_ns, out),
            _ => {}
        }
        describe::record(record, shared.live, self.tid, ts_ns, out)
    }

    /// Ends the thread's open calls, without an event of the thread itself.
    pub(super) fn end_calls<S: Sink>(&mut self, ts_ns: i64, out: &mut Numbered<S>) -> Result<()> {
        pair::end_all(&mut self.stacks, self.tid, ts_ns, out)
    }

    /// Ends the thread `tid` with its open calls; the second time only the calls.
    pub(super) fn end<S: Sink>(
        &mut self,
        tid: u32,
        ts_ns: i64,
        out: &mut Numbered<S>,
    ) -> Result<()> {
        self.tid = self.tid.or(Some(tid));
        self.end_calls(ts_ns, out)?;
        match std::mem::replace(&mut self.ended, true) {
            true => Ok(()),
            false => out.event(ts_ns, self.tid, EventKind::ThreadExit, |row| row),
        }
    }
}
