//! Pairs the enters and leaves of one thread to calls, and numbers every event.
//!
//! Stacks grow down. An enter at a slot shows that calls at lower slots have ended, and so has one at the same slot
//! unless a tail call replaced it. A leave shows that calls at lower slots have ended, and so does a record of frames
//! that were left. Calls that ended without a leave of their own get one marked `unwound`, right before the event that
//! shows it.

use super::stacks::{Open, Stacks};
use crate::clock::Clock;
use crate::columns::{CallEnd, CallStart, CaptureRow, EventKind, EventRow, StateRow};
use crate::error::Result;
use crate::wire::{ENTER_MAX_XMM, Enter, EnterForm, Leave};

/// Receives finished calls and other events, in order of their numbers.
pub(super) trait Sink {
    /// Receives a call.
    fn call(
        &mut self,
        tid: Option<u32>,
        start: &CallStart,
        child_ns: i64,
        end: &CallEnd,
    ) -> Result<()>;
    /// Receives an event.
    fn event(&mut self, row: &EventRow<'_>) -> Result<()>;
    /// Receives the state of a thread at a pause, right after that event.
    fn state(&mut self, row: &StateRow<'_>) -> Result<()>;
    /// Receives the capture of an enter or leave, right after that event.
    fn capture(&mut self, row: &CaptureRow<'_>) -> Result<()>;
}

/// A sink that numbers its events.
pub(super) struct Numbered<S> {
    pub(super) sink: S,
    pub(super) clock: Clock,
    pub(super) next_seq: u64,
    /// Time of the last event, in nanoseconds.
    pub(super) last_ts_ns: i64,
}

impl<S: Sink> Numbered<S> {
    /// Returns the number of the event at `ts_ns`.
    #[inline]
    pub(super) fn take_seq(&mut self, ts_ns: i64) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.last_ts_ns = ts_ns;
        seq
    }

    /// Numbers and adds an event that is not part of a call.
    pub(super) fn event<'a>(
        &mut self,
        ts_ns: i64,
        tid: Option<u32>,
        kind: EventKind,
        fill: impl FnOnce(EventRow<'a>) -> EventRow<'a>,
    ) -> Result<()> {
        let seq = self.take_seq(ts_ns);
        self.sink.event(&fill(EventRow::new(seq, ts_ns, tid, kind)))
    }
}

/// Adds an enter.
#[inline]
pub(super) fn enter<S: Sink>(
    stacks: &mut Stacks,
    tid: Option<u32>,
    ts_ns: i64,
    enter: &Enter<'_>,
    out: &mut Numbered<S>,
) -> Result<()> {
    let slot = enter.slot();
    let form = enter.form();
    if form == EnterForm::Only {
        return entered_only(tid, ts_ns, enter, out);
    }
    let index = stacks.at_enter(slot);
    while let Some(top) = stacks.get(index).open.last()
        && (top.start.slot < slot || top.start.slot == slot && form != EnterForm::Tail)
    {
        end_unwound(stacks, index, tid, ts_ns, out)?;
    }
    let parent = stacks.parent(index);
    let start = begun(out.take_seq(ts_ns), ts_ns, parent, enter);
    stacks.get(index).open.push(Open::new(start, form, tid));
    Ok(())
}

/// Returns the start of a call.
#[inline]
fn begun(seq: u64, ts_ns: i64, parent: Option<(u64, u32)>, enter: &Enter<'_>) -> CallStart {
    let mut xmm = [0; ENTER_MAX_XMM];
    for (i, register) in xmm.iter_mut().enumerate().take(enter.xmm_count()) {
        *register = enter.xmm(i).expect("counted just now");
    }
    CallStart {
        seq,
        ts_ns,
        function_id: enter.function_id(),
        depth: parent.map_or(0, |(_, depth)| depth + 1),
        parent_seq: parent.map(|(seq, _)| seq),
        tail: enter.form() == EnterForm::Tail,
        slot: enter.slot(),
        return_addr: enter.return_addr(),
        args: enter.args(),
        xmm_count: enter.xmm_count() as u8,
        xmm,
    }
}

/// Adds an enter whose end and inner calls are not recorded. No event stands for its end.
#[cold]
fn entered_only<S: Sink>(
    tid: Option<u32>,
    ts_ns: i64,
    enter: &Enter<'_>,
    out: &mut Numbered<S>,
) -> Result<()> {
    let start = begun(out.take_seq(ts_ns), ts_ns, None, enter);
    out.sink.call(tid, &start, 0, &CallEnd::NotRecorded)
}

/// Adds a leave.
#[inline]
pub(super) fn leave<S: Sink>(
    stacks: &mut Stacks,
    tid: Option<u32>,
    ts_ns: i64,
    leave: &Leave,
    out: &mut Numbered<S>,
) -> Result<()> {
    let Some(index) = stacks.at_leave(leave.slot) else {
        return orphan(tid, ts_ns, leave, out);
    };
    let mut returned = false;
    while let Some(top) = stacks.get(index).open.last()
        && top.start.slot <= leave.slot
    {
        if top.start.slot < leave.slot || !top.hooked {
            end_unwound(stacks, index, tid, ts_ns, out)?;
            continue;
        }
        returned = true;
        let end = CallEnd::Returned {
            seq: out.take_seq(ts_ns),
            ts_ns,
            rax: leave.rax,
            rdx: leave.rdx,
            xmm: leave.xmm,
        };
        end_top(stacks, index, tid, ts_ns, &end, out)?;
    }
    stacks.drop_if_empty(index);
    if returned {
        return Ok(());
    }
    orphan(tid, ts_ns, leave, out)
}

/// Ends the calls below `stack`, where the unwinder or `longjmp` resumes the program. Calls on other stacks may go on:
/// coroutines switch by `longjmp`, too.
#[cold]
pub(super) fn frames_left<S: Sink>(
    stacks: &mut Stacks,
    tid: Option<u32>,
    ts_ns: i64,
    stack: u64,
    out: &mut Numbered<S>,
) -> Result<()> {
    let Some(index) = stacks.at_leave(stack) else {
        return Ok(());
    };
    while let Some(top) = stacks.get(index).open.last()
        && top.start.slot < stack
    {
        end_unwound(stacks, index, tid, ts_ns, out)?;
    }
    stacks.drop_if_empty(index);
    Ok(())
}

/// Ends all open calls of a thread that has ended, innermost first.
pub(super) fn end_all<S: Sink>(
    stacks: &mut Stacks,
    tid: Option<u32>,
    ts_ns: i64,
    out: &mut Numbered<S>,
) -> Result<()> {
    while let Some(index) = stacks.next_to_end() {
        let seq = out.take_seq(ts_ns);
        let end = CallEnd::OpenAtEnd { seq, ts_ns };
        end_top(stacks, index, tid, ts_ns, &end, out)?;
        stacks.drop_if_empty(index);
    }
    Ok(())
}

/// Ends the innermost call of stack `index` without a return.
#[cold]
fn end_unwound<S: Sink>(
    stacks: &mut Stacks,
    index: usize,
    tid: Option<u32>,
    ts_ns: i64,
    out: &mut Numbered<S>,
) -> Result<()> {
    let seq = out.take_seq(ts_ns);
    end_top(
        stacks,
        index,
        tid,
        ts_ns,
        &CallEnd::Unwound { seq, ts_ns },
        out,
    )
}

#[inline]
fn end_top<S: Sink>(
    stacks: &mut Stacks,
    index: usize,
    tid: Option<u32>,
    ts_ns: i64,
    end: &CallEnd,
    out: &mut Numbered<S>,
) -> Result<()> {
    let open = &mut stacks.get(index).open;
    let (call, callers) = open.split_last_mut().expect("callers saw a call");
    let tid = call.tid.or(tid);
    out.sink.call(tid, &call.start, call.child_ns, end)?;
    let dur_ns = ts_ns - call.start.ts_ns;
    match callers.last_mut() {
        Some(parent) => parent.child_ns += dur_ns,
        None => stacks.add_to_base(index, dur_ns),
    }
    let open = &mut stacks.get(index).open;
    open.truncate(open.len() - 1);
    Ok(())
}

#[cold]
fn orphan<S: Sink>(
    tid: Option<u32>,
    ts_ns: i64,
    leave: &Leave,
    out: &mut Numbered<S>,
) -> Result<()> {
    out.event(ts_ns, tid, EventKind::Leave, |row| EventRow {
        addr: Some(leave.slot),
        value: Some(leave.rax as i64),
        ..row
    })
}
