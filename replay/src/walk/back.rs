//! Moves backwards. Earlier events are found by running towards the moment again, from an earlier position.

use std::sync::Arc;

use debuginfo::{CallAt, LineGoal};

use super::forward::{Called, Left};
use super::thread::Thread;
use super::{Activation, Walk, Walked, Walker, activation};

/// A statement of a function.
#[derive(Clone, Debug)]
struct Row {
    address: u64,
    place: (Arc<str>, u32),
    /// No statement of this line has a lower address.
    is_first: bool,
    /// So many of the inlined calls that begin there are inside of the frame that the line belongs to.
    calls_to_come: usize,
}

/// The last time that a function executed statements of one line, one after the other.
struct Run {
    /// Where it began.
    start: u64,
    place: (Arc<str>, u32),
    calls_to_come: usize,
    /// Some of it may precede the examined stretch.
    may_begin_earlier: bool,
}

impl Walker<'_> {
    pub(super) fn back(&mut self, walk: Walk) -> exact::Result<Walked> {
        let here = self.replay.position();
        let to_come = std::mem::take(&mut self.calls_to_come);
        let found = match walk {
            Walk::Instructions(count) => self.instructions_back(count, 0).map(|(found, taken)| {
                self.taken = taken;
                found
            }),
            Walk::InstructionOver => self.instruction_over_back()?,
            Walk::Line => self.line_back(to_come, true)?,
            Walk::LineOver => self.line_back(to_come, false)?,
            Walk::Call => self.beginning()?,
            Walk::CallOf(frame) => match frame.entry {
                Some(entry) => self.begun(&frame, entry)?,
                None => None,
            },
        };
        match found.filter(|found| *found < here) {
            Some(found) => {
                self.replay.goto(found)?;
                Ok(Walked::Done)
            }
            None => {
                self.replay.goto(here)?;
                Ok(Walked::AtTheEdge)
            }
        }
    }

    /// The moment before the thread's last instruction.
    pub(super) fn instruction_back(&self) -> Option<u64> {
        self.instructions_back(1, 0).map(|(found, _)| found)
    }

    /// The moment before the thread's last `count` instructions since position `begins`, or before all of them if there are
    /// fewer; and how many. `None` if there are none.
    pub(super) fn instructions_back(&self, count: u64, begins: u64) -> Option<(u64, u64)> {
        let here = self.replay.position();
        let turns = self.schedule.partition_point(|(at, _)| *at < here);
        let (mut until, mut taken, mut found) = (here, 0, None);
        for (from, tid) in self.schedule[..turns].iter().rev() {
            let own = until.saturating_sub((*from).max(begins));
            let run = own.min(count - taken);
            if *tid == self.tid && run > 0 {
                taken += run;
                found = Some((until - run, taken));
            }
            if taken == count || *from <= begins {
                break;
            }
            until = *from;
        }
        found
    }

    /// The same, but before the call if that instruction returned from one.
    fn instruction_over_back(&mut self) -> exact::Result<Option<u64>> {
        let Some(before) = self.instruction_back() else {
            return Ok(None);
        };
        let (sp, rip) = match self.thread() {
            Some(thread) => (thread.rsp(), thread.rip()),
            None => return Ok(Some(before)),
        };
        self.replay.goto(before)?;
        let frame = self.activation();
        let has_returned = frame
            .as_ref()
            .is_some_and(|frame| frame.back == Some(rip) && frame.cfa <= sp);
        let entry = frame.as_ref().and_then(|frame| frame.entry);
        match (has_returned, frame, entry) {
            (true, Some(frame), Some(entry)) if frame.cfa == sp => {
                let begun = self.begun(&frame, entry)?;
                Ok(begun
                    .and_then(|begun| begun.checked_sub(1))
                    .or(Some(before)))
            }
            _ => Ok(Some(before)),
        }
    }

    /// Where the function that runs was entered; at its entry, where the function around it was.
    fn beginning(&mut self) -> exact::Result<Option<u64>> {
        let Some((frame, entry)) = self.entered() else {
            return Ok(None);
        };
        if self.rip() != entry {
            return self.begun(&frame, entry);
        }
        let Some(before) = self.instruction_back() else {
            return Ok(None);
        };
        self.replay.goto(before)?;
        match self.entered() {
            Some((outer, entry)) => self.begun(&outer, entry),
            None => Ok(None),
        }
    }

    fn entered(&self) -> Option<(Activation, u64)> {
        let frame = self.activation()?;
        let entry = frame.entry?;
        Some((frame, entry))
    }

    /// When a function was entered that runs at the present moment.
    fn begun(&mut self, frame: &Activation, entry: u64) -> exact::Result<Option<u64>> {
        let (tid, sp) = (self.tid, frame.cfa.wrapping_sub(8));
        self.replay.previous_stop(&[entry], &mut |replay| {
            let thread = Thread::new(replay, tid).filter(|_| replay.thread() == tid);
            thread.is_some_and(|thread| thread.rsp() == sp)
        })
    }

    /// The beginning of the line before. `to_come`: as many of the inlined calls that begin here are still to come.
    fn line_back(&mut self, to_come: usize, into: bool) -> exact::Result<Option<u64>> {
        let here = self.replay.position();
        let Some((frame, entry)) = self.entered() else {
            return Ok(None);
        };
        let code = self.rip();
        if code == entry {
            return self.line_of_caller(here, into);
        }
        let to_come = to_come.min(self.space.calls_beginning(code));
        let around = self.around(code, to_come, into);
        let found = match self.line_before(&frame, (code, around.as_deref()), here)? {
            Some(found) => found,
            None => {
                self.replay.goto(here)?;
                let Some(begun) = self.begun(&frame, entry)? else {
                    return Ok(None);
                };
                return self.line_of_caller(begun, into);
            }
        };
        match into {
            true => Ok(Some(self.inside_since(found, here)?.unwrap_or(found))),
            false => Ok(Some(found)),
        }
    }

    /// The beginning of the line that called the function that begins at position `begun`.
    fn line_of_caller(&mut self, begun: u64, into: bool) -> exact::Result<Option<u64>> {
        self.replay.goto(begun)?;
        let Some(call) = self.instruction_back() else {
            return Ok(None);
        };
        self.replay.goto(call)?;
        let code = self.rip();
        if self.space.step_line(code).is_none() {
            // Nothing around it has lines: this is where it begins.
            return Ok(Some(begun));
        }
        match self.entered() {
            Some((outer, _)) => {
                let around = self.around(code, 0, into);
                let line = self.line_before(&outer, (code, around.as_deref()), begun)?;
                match line {
                    // What the line has called before.
                    Some(line) if into && line < call => {
                        Ok(Some(self.inside_since(line, call)?.unwrap_or(line)))
                    }
                    line => Ok(line),
                }
            }
            None => Ok(Some(begun)),
        }
    }

    /// The frame whose lines a move over calls stops at: the entries of the function and of the inlined copies around the
    /// place, outermost first.
    fn around(&self, code: u64, to_come: usize, into: bool) -> Option<Vec<u64>> {
        (!into).then(|| LineGoal::of(&self.space, code, to_come, into).copies)
    }

    /// The beginning of the line that a frame executed last before a moment. `code` is in its function. With a frame
    /// `around`, what is inlined into that is part of the calling line.
    pub(super) fn line_before(
        &mut self,
        frame: &Activation,
        (code, around): (u64, Option<&[u64]>),
        before: u64,
    ) -> exact::Result<Option<u64>> {
        let rows = self.rows(code, around);
        let function = self.space.function_at(code);
        let frame = &Activation {
            entry: function.map(|function| function.entry),
            ..*frame
        };
        let mut run = match self.run_before(frame, &rows, before)? {
            Some(run) => run,
            None => return Ok(None),
        };
        while run.may_begin_earlier {
            match self.run_before(frame, &rows, run.start)? {
                Some(earlier) if earlier.place == run.place => run = earlier,
                _ => break,
            }
        }
        self.calls_to_come = run.calls_to_come;
        Ok(Some(run.start))
    }

    fn run_before(
        &mut self,
        frame: &Activation,
        rows: &[Row],
        before: u64,
    ) -> exact::Result<Option<Run>> {
        self.replay.goto(before)?;
        let entry = frame.entry;
        let stops: Vec<u64> = rows.iter().map(|row| row.address).chain(entry).collect();
        let (tid, space) = (self.tid, Arc::clone(&self.space));
        let mut run: Option<Run> = None;
        let (mut last, mut has_begun) = (0, false);
        let found = self.replay.previous_stop(&stops, &mut |replay| {
            if replay.thread() != tid {
                return false;
            }
            let Some(thread) = Thread::new(replay, tid) else {
                return false;
            };
            let row = rows.iter().find(|row| row.address == thread.rip());
            let is_entry = Some(thread.rip()) == entry && thread.rsp() == frame.cfa.wrapping_sub(8);
            let position = replay.position();
            if is_entry || position < last {
                // The frame begins, or an earlier stretch does: nothing so far belongs to it.
                run = None;
                has_begun = is_entry;
            }
            let here = activation(&space, &thread);
            let Some(row) = row.filter(|_| here.is_some_and(|here| here.cfa == frame.cfa)) else {
                last = if is_entry { position } else { last };
                return is_entry;
            };
            last = position;
            let is_same = run.as_ref().is_some_and(|run| run.place == row.place);
            if !is_same || row.is_first {
                run = Some(Run {
                    start: position,
                    place: row.place.clone(),
                    calls_to_come: row.calls_to_come,
                    may_begin_earlier: run.is_none() && !row.is_first && !has_begun,
                });
            }
            true
        })?;
        Ok(run.filter(|_| found.is_some()))
    }

    /// The statements of the function around an address, as seen from a frame `around`.
    fn rows(&self, address: u64, around: Option<&[u64]>) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for part in self.code(address) {
            let mut at = part.start;
            while at < part.end
                && let Some(here) = self.space.step_line(at)
            {
                if here.is_statement && here.line > 0 {
                    let own = (here.file, here.line);
                    let calls = match around {
                        Some(_) => self.space.calls_at(here.range.start),
                        None => Vec::new(),
                    };
                    let seen = seen_from(around.unwrap_or_default(), &calls, own);
                    rows.extend(seen.map(|(place, calls_to_come)| Row {
                        address: here.range.start,
                        place,
                        is_first: false,
                        calls_to_come,
                    }));
                }
                at = here.range.end.max(at + 1);
            }
        }
        rows.sort_by_key(|row| row.address);
        for index in 0..rows.len() {
            let (before, row) = (&rows[..index], &rows[index]);
            rows[index].is_first = !before.iter().any(|earlier| earlier.place == row.place);
        }
        rows
    }

    /// The last line of the last function with lines that was called between two moments of a frame.
    fn inside_since(&mut self, from: u64, until: u64) -> exact::Result<Option<u64>> {
        let whole = self.end;
        self.end = until;
        let found = self.last_call(from, until);
        self.end = whole;
        let Some((frame, place, returned)) = found? else {
            return Ok(None);
        };
        self.line_before(&frame, (place, None), returned)
    }

    /// Whether a call has returned when a moment comes: a run that ends there does not stop at it.
    fn is_out_at(&mut self, called: &Called, moment: u64) -> exact::Result<bool> {
        self.replay.goto(moment)?;
        let is_out = |thread: Thread<'_>| thread.rip() == called.back && thread.rsp() >= called.sp;
        Ok(self.thread().is_some_and(is_out))
    }

    /// The last call of a function with lines between two moments: its frame, a place in it, and when it had returned.
    fn last_call(
        &mut self,
        from: u64,
        until: u64,
    ) -> exact::Result<Option<(Activation, u64, u64)>> {
        self.replay.goto(from)?;
        let mut last = None;
        while self.replay.position() < until {
            let Some(called) = self.instruction_or_call()? else {
                break;
            };
            let Some(called) = called else { continue };
            let place = self.place_in(called.target);
            if self.out_of(&called)? == Left::Not && !self.is_out_at(&called, until)? {
                break;
            }
            if let Some(place) = place {
                let frame = Activation {
                    entry: None,
                    cfa: called.sp,
                    back: Some(called.back),
                };
                last = Some((frame, place, self.replay.position()));
            }
        }
        Ok(last)
    }
}

/// Returns the line at which a frame, or one that it is inlined into, is at a place, and how many of the inlined calls that
/// begin there are inside of that frame. `None` in the middle of such a call.
fn seen_from(
    around: &[u64],
    calls: &[CallAt],
    own: (Arc<str>, u32),
) -> Option<((Arc<str>, u32), usize)> {
    let pairs = calls.iter().zip(around);
    let common = pairs.take_while(|(call, entry)| call.entry == **entry);
    let common = common.count();
    let inside = calls
        .get(common..)
        .filter(|_| common > 0)
        .unwrap_or_default();
    let Some(first) = inside.first() else {
        return Some((own, 0));
    };
    let call = first
        .call
        .as_ref()
        .filter(|_| inside.iter().all(|call| call.begins))?;
    Some(((call.file.clone(), call.line), inside.len()))
}
