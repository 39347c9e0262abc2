//! Moves through time: from an event and a thread to another event. They only read the recording.
//!
//! The *level* of a thread after an event is the number of its open recorded calls. `next` and its reverse stop only at
//! events after which the level is not higher than now, so they step over calls.

use std::collections::BTreeSet;

use debuginfo::{Diagnostic, Glob, names_function, short_name_at};

use crate::calls::CallHead;
use crate::error::{Error, Result};
use crate::event::{Event, Kind};
use crate::marks::Mark;
use crate::timeline::Timeline;

/// A direction in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To later events.
    Forward,
    /// To earlier events.
    Back,
}

/// The stops of a run through time, besides the recorded ones.
#[derive(Clone, Debug, Default)]
pub struct Stops {
    /// Enter events of these functions.
    pub functions: BTreeSet<u32>,
    /// Logpoints that were passed.
    pub logpoints: bool,
    /// These events.
    pub events: BTreeSet<u64>,
    /// It does not stop at the recorded stops of the program.
    pub passes_pauses: bool,
}

/// A user's text at an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The event.
    pub seq: u64,
    /// The text.
    pub text: String,
    /// It was added after the program had ended.
    pub added: bool,
}

fn no_move<T>(what: impl Into<Diagnostic>) -> Result<T> {
    Err(Error::NoMove(what.into()))
}

impl Timeline {
    /// Returns the event `count` events further.
    ///
    /// # Errors
    /// [`Error::NoMove`] at the recording's first or last event.
    pub fn step(&self, seq: u64, count: u64, direction: Direction) -> Result<u64> {
        match direction {
            Direction::Forward if seq >= self.last() => {
                let what = Diagnostic::new("this is the last event of the recording");
                no_move(what.with_hint("go back with: step back"))
            }
            Direction::Back if seq == 0 => no_move("this is the first event of the recording"),
            Direction::Forward => Ok(seq.saturating_add(count).min(self.last())),
            Direction::Back => Ok(seq.saturating_sub(count)),
        }
    }

    /// Returns the next event of the thread in the same call or an enclosing one.
    ///
    /// # Errors
    /// [`Error::NoMove`], or the files cannot be read.
    pub fn next(&self, tid: u32, seq: u64) -> Result<u64> {
        let Some(next) = self.first_of_thread(tid, seq + 1)? else {
            return no_move(format!("thread {tid} has no later event"));
        };
        match self.event(next)? {
            Event::Enter(call) => match call.end {
                Some(end) => Ok(end),
                None if call.only_entered => self.end_not_recorded(&call),
                None => {
                    let what = Diagnostic::new(format!(
                        "the call of {} that begins at event {next} has not ended in this recording",
                        self.name(&call)
                    ));
                    no_move(what.with_hint("go into it with: step"))
                }
            },
            _ => Ok(next),
        }
    }

    /// Returns the event of the thread before this one in the same call or an enclosing one.
    ///
    /// # Errors
    /// [`Error::NoMove`], or the files cannot be read.
    pub fn next_back(&self, tid: u32, seq: u64) -> Result<u64> {
        let until = match self.event(seq)? {
            Event::Leave(call) if call.tid == Some(tid) => call.start,
            _ => seq,
        };
        let earlier = match until.checked_sub(1) {
            Some(until) => self.last_of_thread(tid, until, 0)?,
            None => None,
        };
        match earlier {
            Some(earlier) => Ok(earlier),
            None => no_move(format!("thread {tid} has no earlier event")),
        }
    }

    /// Returns the end of the thread's current call.
    ///
    /// # Errors
    /// [`Error::NoMove`], or the files cannot be read.
    pub fn finish(&self, tid: u32, seq: u64) -> Result<u64> {
        let Some(call) = self.innermost(tid, seq)? else {
            return no_move(format!("thread {tid} is in no recorded call here"));
        };
        self.end_of(&call)
    }

    /// Returns the end of a call.
    ///
    /// # Errors
    /// [`Error::NoMove`]: it is not recorded.
    pub fn end_of(&self, call: &CallHead) -> Result<u64> {
        match call.end {
            Some(end) => Ok(end),
            None if call.only_entered => self.end_not_recorded(call),
            None => {
                let what = Diagnostic::new(format!(
                    "the call of {} has not ended in this recording",
                    self.name(call)
                ));
                no_move(what.with_hint("its last event: goto last"))
            }
        }
    }

    fn end_not_recorded(&self, call: &CallHead) -> Result<u64> {
        let name = self.name(call);
        let what = format!("of the call of {name} only the entry is recorded, not its end");
        no_move(Diagnostic::new(what).with_hint("go to the next entry with: step"))
    }

    /// Returns the start of the thread's current call; at that event, the start of the enclosing call.
    ///
    /// # Errors
    /// [`Error::NoMove`], or the files cannot be read.
    pub fn reverse_finish(&self, tid: u32, seq: u64) -> Result<u64> {
        let mut call = self.innermost(tid, seq)?;
        if let Some(here) = call.filter(|call| call.start == seq) {
            call = self.parent(&here)?;
        }
        match call {
            Some(call) => Ok(call.start),
            None => no_move(format!("thread {tid} is in no recorded call here")),
        }
    }

    /// Returns the nearest event in a direction at which `stops` stops, or at which the program was stopped during
    /// recording; `None` if there is none.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn run(&self, seq: u64, stops: &Stops, direction: Direction) -> Result<Option<u64>> {
        let mut candidates = Vec::new();
        if !stops.passes_pauses {
            candidates.push(self.run_to_mark(seq, direction));
        }
        candidates.push(match direction {
            Direction::Forward => stops.events.range(seq + 1..).next().copied(),
            Direction::Back => stops.events.range(..seq).next_back().copied(),
        });
        if !stops.functions.is_empty() {
            candidates.push(self.run_to_function(seq, &stops.functions, direction)?);
        }
        if stops.logpoints {
            candidates.push(self.run_to_logpoint(seq, direction)?);
        }
        let found = candidates.into_iter().flatten();
        Ok(match direction {
            Direction::Forward => found.min(),
            Direction::Back => found.max(),
        })
    }

    fn run_to_mark(&self, seq: u64, direction: Direction) -> Option<u64> {
        let all = self.marks.all(Kind::Pause);
        let found = match direction {
            Direction::Forward => all.get(all.partition_point(|mark| mark.seq <= seq)),
            Direction::Back => {
                let at = all.partition_point(|mark| mark.seq < seq);
                at.checked_sub(1).map(|at| &all[at])
            }
        };
        found.map(|mark| mark.seq)
    }

    fn run_to_logpoint(&self, seq: u64, direction: Direction) -> Result<Option<u64>> {
        let is_logpoint = |head: &crate::others::Head| head.kind == Kind::Logpoint;
        let head = match direction {
            Direction::Forward => self.others.first(seq + 1, u64::MAX, is_logpoint)?,
            Direction::Back => match seq.checked_sub(1) {
                Some(until) => self.others.last(0, until, is_logpoint)?,
                None => None,
            },
        };
        Ok(head.map(|head| head.seq))
    }

    /// Returns the nearest enter event of one of `functions`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn run_to_function(
        &self,
        seq: u64,
        functions: &BTreeSet<u32>,
        direction: Direction,
    ) -> Result<Option<u64>> {
        let mut best: Option<u64> = None;
        match direction {
            Direction::Forward => {
                for block in self.calls.blocks_from(seq + 1) {
                    // A page whose calls all began later than the best one found has no better one.
                    if best.is_some_and(|best| self.calls.starts(block).0 > best) {
                        continue;
                    }
                    self.calls.each(std::iter::once(block), |call| {
                        let is_better = best.is_none_or(|best| call.start < best);
                        if call.start > seq && is_better && functions.contains(&call.function) {
                            best = Some(call.start);
                        }
                        true
                    })?;
                }
            }
            Direction::Back => {
                let here = self.calls.blocks_from(seq);
                let look = |block: usize, best: &mut Option<u64>| {
                    self.calls.each(std::iter::once(block), |call| {
                        let is_better = best.is_none_or(|best| call.start > best);
                        if call.start < seq && is_better && functions.contains(&call.function) {
                            *best = Some(call.start);
                        }
                        true
                    })
                };
                for block in (0..here.start).rev() {
                    // A call that began after the best one also ended after it.
                    if best.is_some_and(|best| self.calls.last_end(block) < best) {
                        break;
                    }
                    look(block, &mut best)?;
                }
                for block in here {
                    let (first, last) = self.calls.starts(block);
                    if first < seq && best.is_none_or(|best| last > best) {
                        look(block, &mut best)?;
                    }
                }
            }
        }
        Ok(best)
    }

    /// Returns the thread's open calls at an event, the innermost first, at most `limit`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn calls_around(&self, tid: u32, seq: u64, limit: usize) -> Result<Vec<CallHead>> {
        let mut calls = Vec::new();
        let mut call = self.innermost(tid, seq)?;
        while let Some(found) = call.filter(|_| calls.len() < limit) {
            calls.push(found);
            call = self.parent(&found)?;
        }
        Ok(calls)
    }

    /// Returns the calls directly inside `call`, or of the thread's outermost level, that begin at or after `from`, in
    /// order, at most `limit`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn calls_inside(
        &self,
        tid: u32,
        call: Option<&CallHead>,
        from: u64,
        limit: usize,
    ) -> Result<Vec<CallHead>> {
        let mut found = Vec::new();
        if call.is_some_and(|call| call.only_entered) {
            return Ok(found);
        }
        let until = call.and_then(|call| call.end).unwrap_or(u64::MAX);
        let mut at = from;
        while found.len() < limit
            && let Some(next) = self.first_of_thread(tid, at)?
            && next < until
        {
            at = next + 1;
            if let Event::Enter(inner) = self.event(next)? {
                found.push(inner);
                match inner.end {
                    Some(end) => at = end + 1,
                    None if inner.only_entered => {}
                    None => break,
                }
            }
        }
        Ok(found)
    }

    /// Returns the readable name of a call's function.
    #[must_use]
    pub fn name(&self, call: &CallHead) -> String {
        match self.function(call.function) {
            Some(function) => function.name.clone(),
            None => format!("function {}", call.function),
        }
    }

    /// Returns the short name of the function of a call.
    #[must_use]
    pub fn short_name(&self, call: &CallHead) -> String {
        match self.function(call.function) {
            Some(function) => {
                short_name_at(&function.name, function.file.as_deref(), function.line)
            }
            None => self.name(call),
        }
    }

    /// Returns the ids of the functions whose name matches `pattern`, a [`Glob`]; if there are none, of those whose name
    /// ends with it.
    #[must_use]
    pub fn functions_matching(&self, pattern: &str) -> BTreeSet<u32> {
        let glob = Glob::new(pattern);
        let matches = |name: &str| glob.matches(name);
        let found = self.functions().filter(|function| {
            let plain = function.name.split(['(', '<']).next().unwrap_or_default();
            glob.matches_function(&function.name) || matches(&function.linkage) || matches(plain)
        });
        let found: BTreeSet<u32> = found.map(|function| function.id).collect();
        if !found.is_empty() {
            return found;
        }
        let ending = self.functions();
        let ending = ending.filter(|function| names_function(pattern, &function.name));
        ending.map(|function| function.id).collect()
    }

    /// Returns the ids of the functions that are declared in a file whose path ends with `file`, the last one at or
    /// before `line`.
    #[must_use]
    pub fn functions_at_line(&self, file: &str, line: u32) -> BTreeSet<u32> {
        let is_here = |path: &str| {
            path == file || path.ends_with(file) && path[..path.len() - file.len()].ends_with('/')
        };
        let inside = |function: &&store::control::FunctionDef| {
            function.file.as_deref().is_some_and(is_here)
                && function.line.is_some_and(|first| first <= line)
        };
        let last = self.functions().filter(inside).filter_map(|f| f.line).max();
        let found = self.functions().filter(inside);
        found
            .filter(|function| function.line == last)
            .map(|function| function.id)
            .collect()
    }

    /// Returns the recorded stops of threads: events and threads, in order.
    #[must_use]
    pub fn stops(&self) -> Vec<(u64, u32)> {
        let marks = self.marks.all(Kind::Pause).iter();
        marks
            .filter_map(|mark| Some((mark.seq, mark.tid?)))
            .collect()
    }

    /// Returns the notes in the order of their events: those of the recording, and those added since.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn notes(&self) -> Result<Vec<Note>> {
        let mut notes = Vec::new();
        for mark in self.marks.all(Kind::Note) {
            if let Some(text) = self.others.event(mark.seq)?.and_then(|event| event.text) {
                notes.push(Note {
                    seq: mark.seq,
                    text,
                    added: false,
                });
            }
        }
        let added = store::notes::read(self.recording())?.into_iter();
        let added = added.filter(|note| note.seq < self.events());
        notes.extend(added.map(|note| Note {
            seq: note.seq,
            text: note.text,
            added: true,
        }));
        notes.sort_by_key(|note| note.seq);
        Ok(notes)
    }

    /// Adds a note at an event.
    ///
    /// # Errors
    /// [`Error::NoEvent`], and the errors of [`store::notes::add`].
    pub fn add_note(&self, seq: u64, text: &str) -> Result<()> {
        self.check(seq)?;
        store::notes::add(self.recording(), seq, text)?;
        Ok(())
    }

    /// Returns the enter events of a function and their threads, at most `limit`, unordered.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn entries(&self, function: u32, limit: usize) -> Result<Vec<(u64, u32)>> {
        let mut found = Vec::new();
        self.calls.each(self.calls.blocks_from(0), |call| {
            if let (true, Some(tid)) = (call.function == function, call.tid) {
                found.push((call.start, tid));
            }
            found.len() < limit
        })?;
        Ok(found)
    }

    /// Returns the events of output to descriptors 1 and 2, at or after `from`, at most `limit`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn output(&self, from: u64, limit: usize) -> Result<Vec<store::columns::ReadEvent>> {
        let mut found = Vec::new();
        let mut at = from;
        while found.len() < limit
            && let Some(head) = self
                .others
                .first(at, u64::MAX, |head| head.kind == Kind::Output)?
        {
            found.push(Mark {
                seq: head.seq,
                tid: head.tid,
            });
            at = head.seq + 1;
        }
        // A page of events is decoded once for all that it has.
        self.others.events(&found)
    }

    /// Returns the events of output to descriptors 1 and 2 before `before`, the newest first, at most `limit`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn output_before(
        &self,
        before: u64,
        limit: usize,
    ) -> Result<Vec<store::columns::ReadEvent>> {
        let mut marks = Vec::new();
        let mut end = before;
        while marks.len() < limit
            && let Some(last) = end.checked_sub(1)
            && let Some(head) = self
                .others
                .last(0, last, |head| head.kind == Kind::Output)?
        {
            marks.push(Mark {
                seq: head.seq,
                tid: head.tid,
            });
            end = head.seq;
        }
        marks.reverse();
        let mut events = self.others.events(&marks)?;
        events.reverse();
        Ok(events)
    }
}
