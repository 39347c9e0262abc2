//! Changes of a value: all of them in order, or the nearest one in a direction.
//!
//! The event of a change is the first that shows the new value. Where the value was unknown in between, the change may
//! have happened at any moment since the event that showed the old one.

use std::collections::HashMap;
use std::ops::Range;

use debuginfo::Diagnostic;
use rustc_hash::FxHashMap;

use super::entries::AtEntry;
use super::walk::{Walk, When};
use super::{Seen, Sight, Tracked};
use crate::calls::{CallHead, Entered};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::moment::Moment;
use crate::moves::Direction;
use crate::timeline::Timeline;

/// A known value that differs from the last known one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The event that shows it.
    pub seq: u64,
    /// The thread.
    pub tid: u32,
    /// The thread that owns the value, where threads do not share it.
    pub own: Option<u32>,
    /// The last value known before; `None` where there was none.
    pub old: Option<String>,
    /// The last event that showed the old value, and its thread; `None` if it was not looked up.
    pub old_at: Option<(u64, u32)>,
    /// The value.
    pub new: String,
    /// The same in the form that [`Tracked::showing`] selects, if that leaves something out.
    pub shown: Option<String>,
    /// The value is that of a call around the innermost one of its function: of the call that began with this event.
    pub of_call: Option<u64>,
}

/// The place of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stand {
    /// The function.
    pub function: Option<String>,
    /// The source file.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
}

/// The progress of a search for changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The next change.
    Change(Change),
    /// None among the examined events; there are more.
    More,
    /// The search is complete.
    End,
}

/// A known value.
#[derive(Clone)]
pub(super) struct Known {
    pub seq: u64,
    pub tid: u32,
    /// The thread that owns it, where threads do not share it.
    pub own: Option<u32>,
    pub value: String,
    pub shown: Option<String>,
    /// The call that has it, if that is not the innermost one of its function.
    pub of_call: Option<u64>,
}

/// The last known value of a thread, or of all.
struct Last {
    seq: u64,
    tid: u32,
    value: LastValue,
}

enum LastValue {
    Text(String),
    /// Of the parameter that is tracked.
    Bits(u64),
}

/// All changes from the beginning, in order.
pub struct Changes {
    walk: Walk,
    /// Entries that were gathered, and how many of them were passed.
    entries: (Vec<Entered>, usize),
    last: FxHashMap<Option<u32>, Last>,
    known_at: usize,
    count: usize,
    wanted: Range<usize>,
    has_meaning: bool,
    failure: Option<Diagnostic>,
}

impl Changes {
    /// Begins at the recording's first event.
    #[must_use]
    pub fn of(timeline: &Timeline) -> Self {
        Self::before(timeline.events())
    }

    /// Only those before event `end`, from the first event on.
    #[must_use]
    pub fn before(end: u64) -> Self {
        Self {
            walk: Walk::over(0..end, Direction::Forward),
            entries: (Vec::new(), 0),
            last: FxHashMap::default(),
            known_at: 0,
            count: 0,
            wanted: 0..usize::MAX,
            has_meaning: false,
            failure: None,
        }
    }

    /// Requests only these of the changes, by their numbers from 0. The others are only counted.
    #[must_use]
    pub fn wanting(self, wanted: Range<usize>) -> Self {
        Self { wanted, ..self }
    }

    /// Returns the number of changes so far: the one that was just returned has the number before it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of events so far at which the value was known.
    #[must_use]
    pub fn known_at(&self) -> usize {
        self.known_at
    }

    /// Examines at most `most` events for the next change.
    ///
    /// # Errors
    /// [`Error::Expression`] at the end if the expression meant nothing anywhere; the files cannot be read.
    pub fn next(
        &mut self,
        timeline: &Timeline,
        tracked: &mut Tracked,
        most: usize,
    ) -> Result<Progress> {
        for _ in 0..most {
            if let Some(parameter) = tracked.at_entry() {
                if self.entries.1 == self.entries.0.len()
                    && let Some(found) = self.walk.next_entries(timeline, &parameter)?
                {
                    self.entries = (found, 0);
                    self.has_meaning = true;
                }
                if self.entries.1 < self.entries.0.len() {
                    match self.pass_entries(&parameter) {
                        Some(change) => return Ok(Progress::Change(change)),
                        None => continue,
                    }
                }
            }
            let Some(when) = self.walk.next(timeline, &tracked.scope)? else {
                let failure = self.failure.take().filter(|_| !self.has_meaning);
                return match failure {
                    Some(why) => Err(Error::expression(why)),
                    None => Ok(Progress::End),
                };
            };
            let Some(when) = when else { continue };
            let sight = tracked.sight_on(timeline, &mut self.walk, &when)?;
            let Some(known) = self.seen(timeline, tracked, &when, sight)? else {
                continue;
            };
            self.has_meaning = true;
            self.known_at += 1;
            let last = Last {
                seq: known.seq,
                tid: known.tid,
                value: LastValue::Text(known.value.clone()),
            };
            let old = self.last.insert(known.own, last);
            let old_at = old.as_ref().map(|old| (old.seq, old.tid));
            let old = old.map(|old| match (old.value, tracked.at_entry()) {
                (LastValue::Text(text), _) => text,
                (LastValue::Bits(bits), Some(parameter)) => parameter.text(bits),
                (LastValue::Bits(_), None) => unreachable!("a parameter that was found is kept"),
            });
            if old.as_ref() != Some(&known.value) {
                self.count += 1;
                return Ok(Progress::Change(Change {
                    old_at,
                    ..change(known, old)
                }));
            }
        }
        Ok(Progress::More)
    }

    /// Returns what an event shows: the value in the innermost call, or else in the call that made it.
    fn seen(
        &mut self,
        timeline: &Timeline,
        tracked: &Tracked,
        when: &When,
        sight: Sight,
    ) -> Result<Option<Known>> {
        let why = match sight {
            Sight::Known(value, own) => return known(timeline, when, value, own).map(Some),
            Sight::Unknown => {
                self.has_meaning = true;
                None
            }
            Sight::Meaningless(why) => Some(why),
            Sight::Elsewhere => None,
        };
        if why.is_some() {
            self.failure = why;
        }
        tracked.known_in_caller(timeline, when)
    }

    /// Passes entries up to the next wanted change.
    fn pass_entries(&mut self, parameter: &AtEntry<'_>) -> Option<Change> {
        while let Some(entered) = self.entries.0.get(self.entries.1) {
            self.entries.1 += 1;
            let (Some(bits), Some(tid)) = (entered.bits, entered.tid) else {
                continue;
            };
            self.known_at += 1;
            let bits = parameter.bits(bits);
            let last = Last {
                seq: entered.seq,
                tid,
                value: LastValue::Bits(bits),
            };
            let old = self.last.insert(Some(tid), last);
            let is_change = match old.as_ref().map(|old| &old.value) {
                None => true,
                Some(LastValue::Bits(old)) => parameter.differ(*old, bits),
                Some(LastValue::Text(old)) => *old != parameter.text(bits),
            };
            if !is_change {
                continue;
            }
            self.count += 1;
            if self.wanted.contains(&(self.count - 1)) {
                return Some(Change {
                    seq: entered.seq,
                    tid,
                    own: Some(tid),
                    old_at: old.as_ref().map(|old| (old.seq, old.tid)),
                    old: old.map(|old| match old.value {
                        LastValue::Text(text) => text,
                        LastValue::Bits(bits) => parameter.text(bits),
                    }),
                    new: parameter.text(bits),
                    shown: None,
                    of_call: None,
                });
            }
        }
        None
    }
}

impl Tracked {
    /// Returns the nearest change on one side of event `from`, up to event `limit`: between a known value and
    /// another known value. It polls `stop` to give up early.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or the files cannot be read.
    pub fn nearest_change(
        &mut self,
        timeline: &Timeline,
        from: u64,
        limit: Option<u64>,
        direction: Direction,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Change>> {
        match direction {
            Direction::Forward => self.next_change(timeline, from, limit, stop),
            Direction::Back => self.last_change(timeline, from, limit, stop),
        }
    }

    fn next_change(
        &mut self,
        timeline: &Timeline,
        from: u64,
        limit: Option<u64>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Change>> {
        let end = limit.map_or(timeline.events(), |limit| limit + 1);
        let mut walk = Walk::over(from + 1..end.max(from + 1), Direction::Forward);
        let mut seen: HashMap<Option<u32>, Option<String>> = HashMap::new();
        while let Some(known) = self.next_known(timeline, &mut walk, None, stop)? {
            let before = match seen.get(&known.own) {
                Some(before) => before.clone(),
                None => self.last_known(timeline, from, known.own, stop)?,
            };
            match before {
                Some(old) if old != known.value => return Ok(Some(change(known, Some(old)))),
                _ => _ = seen.insert(known.own, Some(known.value)),
            }
        }
        Ok(None)
    }

    /// The last known value at or before event `from`.
    fn last_known(
        &mut self,
        timeline: &Timeline,
        from: u64,
        own: Option<u32>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<String>> {
        let mut walk = Walk::over(0..from + 1, Direction::Back);
        while let Some(known) = self.next_known(timeline, &mut walk, own, stop)? {
            if known.own == own {
                return Ok(Some(known.value));
            }
        }
        Ok(None)
    }

    fn last_change(
        &mut self,
        timeline: &Timeline,
        from: u64,
        limit: Option<u64>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Change>> {
        let mut walk = Walk::over(0..from, Direction::Back);
        // The first event with the value seen last: it is a change if a different value precedes it.
        let mut first: HashMap<Option<u32>, Known> = HashMap::new();
        let mut best: Option<Change> = None;
        let mut floor = limit.unwrap_or(0);
        while let Some(known) = self.next_known(timeline, &mut walk, None, stop)? {
            let here = known.seq;
            if let Some(later) = first.insert(known.own, known)
                && later.seq >= floor
            {
                let own = later.own;
                let old = first.get(&own).map(|known| known.value.clone());
                let is_better = best.as_ref().is_none_or(|best| later.seq > best.seq);
                if old.as_ref() != Some(&later.value) && is_better {
                    floor = later.seq;
                    best = Some(change(later, old));
                }
            }
            if here < floor && first.values().all(|known| known.seq < floor) {
                break;
            }
        }
        Ok(best)
    }

    /// The next event of a walk at which the value is known. With `own`, events of other threads are skipped.
    fn next_known(
        &mut self,
        timeline: &Timeline,
        walk: &mut Walk,
        own: Option<u32>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Known>> {
        while let Some(when) = walk.next(timeline, &self.scope)? {
            if stop() {
                return Err(Error::Interrupted);
            }
            let Some(when) = when else { continue };
            if own.is_some() && when.tid.is_some() && when.tid != own {
                continue;
            }
            if let Sight::Known(value, own) = self.sight_on(timeline, walk, &when)? {
                return known(timeline, &when, value, own).map(Some);
            }
        }
        Ok(None)
    }
}

impl Timeline {
    /// Returns the place of a thread at an event, as far as it is known: the function alone if its line is unknown.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn stand(&self, seq: u64, tid: u32) -> Result<Stand> {
        if let Event::Enter(call) = self.event(seq)?
            && call.tid == Some(tid)
            && let Some(stand) = self.stand_at_entry(&call)
        {
            return Ok(stand);
        }
        let moment = Moment::at(self, seq, tid, 1)?;
        let Some(frame) = moment.trace.backtrace.frames.first() else {
            return Ok(Stand::default());
        };
        Ok(Stand {
            function: frame.function.clone(),
            file: frame.source.as_ref().map(|source| source.file.to_string()),
            line: frame.source.as_ref().map(|source| source.line),
        })
    }

    fn stand_at_entry(&self, call: &CallHead) -> Option<Stand> {
        let function = self.function(call.function)?;
        Some(Stand {
            function: Some(function.name.clone()),
            file: function.file.clone(),
            line: function.line,
        })
    }
}

pub(super) fn known(
    timeline: &Timeline,
    when: &When,
    value: Seen,
    own: Option<u32>,
) -> Result<Known> {
    Ok(Known {
        seq: when.seq,
        tid: match when.tid {
            Some(tid) => tid,
            None => timeline.thread_at(when.seq)?,
        },
        own,
        value: value.whole,
        shown: value.shown,
        of_call: None,
    })
}

pub(super) fn change(known: Known, old: Option<String>) -> Change {
    Change {
        seq: known.seq,
        tid: known.tid,
        own: known.own,
        old,
        old_at: None,
        new: known.value,
        shown: known.shown,
        of_call: known.of_call,
    }
}
