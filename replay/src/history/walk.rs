//! Walks the events at which a value may be known, in one direction. It gathers one window of events at a time, so a
//! walk costs time for the events it passes and memory for one window.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::entries::AtEntry;
use super::{Functions, HistoryScope};
use crate::calls::{CallHead, Entered};
use crate::error::Result;
use crate::event::{Event, Kind};
use crate::moves::Direction;
use crate::timeline::Timeline;

/// Events of the first window; each next one is twice as long, up to the limit.
const FIRST_WINDOW: u64 = 1 << 14;
const MOST_WINDOW: u64 = 1 << 20;
/// Most frames of a stop that are searched for a function.
const FRAMES: usize = 64;
/// Most frames of a call that contain its caller: others were inlined into it.
pub(super) const NEAR_FRAMES: usize = 17;

/// An event at which a value may be known.
#[derive(Clone, Copy, Debug)]
pub(super) struct When {
    pub seq: u64,
    /// The event's thread, if it has one.
    pub tid: Option<u32>,
    /// The call of one of the functions that begins there, if any.
    pub entered: Option<CallHead>,
    /// Number of frames to search for the functions.
    pub frames: usize,
}

/// A walk over such events.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    direction: Direction,
    /// The range that is not gathered yet.
    left: Range<u64>,
    window: u64,
    gathered: VecDeque<When>,
    /// Functions whose entries are passed, unless something was captured there.
    passed: BTreeSet<u32>,
}

impl Walk {
    /// Walks over the events `range`.
    pub fn over(range: Range<u64>, direction: Direction) -> Self {
        Self {
            direction,
            left: range,
            window: FIRST_WINDOW,
            gathered: VecDeque::new(),
            passed: BTreeSet::new(),
        }
    }

    /// Passes the entries of a function from now on, unless something was captured there.
    pub fn pass_entries_of(&mut self, timeline: &Timeline, function: u32) {
        self.passed.insert(function);
        let is_captured = |seq| match timeline.captures.is_any() {
            // What cannot be read is reported where it is needed.
            true => !matches!(timeline.captures.at(seq), Ok(None)),
            false => false,
        };
        self.gathered.retain(|when| {
            let is_entry = when.entered.is_some_and(|call| call.function == function);
            !is_entry || is_captured(when.seq)
        });
    }

    /// Returns whether it passes the entries of a function.
    pub fn passes_entries_of(&self, function: u32) -> bool {
        self.passed.contains(&function)
    }

    /// Returns the next event; the inner `None`: a window had none. The outer: there are no more.
    pub fn next(
        &mut self,
        timeline: &Timeline,
        scope: &HistoryScope,
    ) -> Result<Option<Option<When>>> {
        if let Some(next) = self.gathered.pop_front() {
            return Ok(Some(Some(next)));
        }
        if self.left.is_empty() {
            return Ok(None);
        }
        let part = self.part();
        self.pass(&part);
        let mut found = moments(timeline, scope, &self.passed, &part)?;
        if self.direction == Direction::Back {
            found.reverse();
        }
        self.gathered = found.into();
        Ok(Some(self.gathered.pop_front()))
    }
}

impl Walk {
    /// The next window.
    fn part(&self) -> Range<u64> {
        let length = self.window.min(self.left.end - self.left.start);
        match self.direction {
            Direction::Forward => self.left.start..self.left.start + length,
            Direction::Back => self.left.end - length..self.left.end,
        }
    }

    fn pass(&mut self, part: &Range<u64>) {
        match self.direction {
            Direction::Forward => self.left.start = part.end,
            Direction::Back => self.left.end = part.start,
        }
        self.window = (self.window * 2).min(MOST_WINDOW);
    }

    /// Passes the next window if its events are entries alone, and returns these, in their order in time; `None`: the
    /// events must be examined one by one.
    pub fn next_entries(
        &mut self,
        timeline: &Timeline,
        parameter: &AtEntry<'_>,
    ) -> Result<Option<Vec<Entered>>> {
        let is_between = self.gathered.is_empty() && !self.left.is_empty();
        if !is_between {
            return Ok(None);
        }
        let part = self.part();
        let found = parameter.entries(timeline, &part)?;
        if found.is_some() {
            self.pass(&part);
        }
        Ok(found)
    }
}

/// The events among `range` at which a value may be known, in order. Entries of the functions in `passed` count if
/// something was captured there.
fn moments(
    timeline: &Timeline,
    scope: &HistoryScope,
    passed: &BTreeSet<u32>,
    range: &Range<u64>,
) -> Result<Vec<When>> {
    let kinds: &[Kind] = match scope {
        HistoryScope::Everywhere => &[Kind::Pause, Kind::Write, Kind::LoggedWrite, Kind::Snapshot],
        // A copy of memory shows no more of a frame than the stop before it.
        HistoryScope::Within(_) => &[Kind::Pause, Kind::Write],
    };
    let mut found = Vec::new();
    for kind in kinds {
        let marks = timeline.marks.between(*kind, range.start, range.end - 1);
        found.extend(marks.iter().map(|mark| When {
            seq: mark.seq,
            tid: mark.tid,
            entered: None,
            frames: FRAMES,
        }));
    }
    if let HistoryScope::Within(functions) = scope {
        let logged = timeline.logged_bytes()?;
        let is_any = logged
            .targets()
            .iter()
            .any(|target| functions.is_of(target));
        let marks = timeline
            .marks
            .between(Kind::LoggedWrite, range.start, range.end - 1);
        let its = marks.iter().filter(|mark| {
            let written = logged.at(mark.seq);
            is_any && written.is_some_and(|written| functions.is_of(written.target))
        });
        found.extend(its.map(|mark| When {
            seq: mark.seq,
            tid: mark.tid,
            entered: None,
            frames: 1,
        }));
    }
    if let HistoryScope::Within(functions) = scope
        && !functions.ids.is_empty()
    {
        // No copy has begun where the function around it is entered.
        let wanted = &functions.ids - passed;
        let entered = match functions.is_inlined || wanted.is_empty() {
            true => Vec::new(),
            false => timeline.calls.entered_in(range, &wanted)?,
        };
        found.extend(entered.into_iter().map(|call| When {
            seq: call.start,
            tid: call.tid,
            entered: Some(call),
            frames: 1,
        }));
        found.extend(called(timeline, functions, passed, range)?);
    }
    if *scope == HistoryScope::Everywhere {
        let captured = timeline.captures.showing(range, |seq, mut addresses| {
            Iterator::any(&mut addresses, |at| timeline.modules.covers(at, seq))
        })?;
        found.extend(captured.into_iter().map(|(seq, tid)| When {
            seq,
            tid,
            entered: None,
            frames: FRAMES,
        }));
    }
    found.sort_unstable_by_key(|when| when.seq);
    Ok(found)
}

/// The events among `range` with a capture while one of the functions ran, or had directly or indirectly called the
/// running one: the capture may show the function's variables. Also the entries of the functions in `passed` with one.
fn called(
    timeline: &Timeline,
    functions: &Functions,
    passed: &BTreeSet<u32>,
    range: &Range<u64>,
) -> Result<Vec<When>> {
    let mut found = Vec::new();
    let mut around = Around::default();
    // Hash of the last capture outside the inner frames, by the call that the function has made.
    let mut seen: FxHashMap<u64, u64> = FxHashMap::default();
    for (seq, tid) in timeline.captures.showing(range, |_, _| true)? {
        let (call, is_own) = match timeline.event(seq)? {
            // The innermost of the functions counts: the one that is entered. No copy has begun there, but that of a call around
            // it has.
            Event::Enter(call)
                if functions.ids.contains(&call.function) && !functions.is_inlined =>
            {
                let is_passed = passed.contains(&call.function);
                found.extend(is_passed.then_some(When {
                    seq,
                    tid: call.tid,
                    entered: Some(call),
                    frames: 1,
                }));
                continue;
            }
            Event::Enter(call) | Event::Leave(call) => (call, false),
            // A logpoint lies in the innermost call.
            Event::Other(_) => match tid.map(|tid| timeline.innermost(tid, seq)).transpose()? {
                Some(Some(call)) => (call, functions.ids.contains(&call.function)),
                _ => continue,
            },
        };
        let mut frames = NEAR_FRAMES;
        if !is_own {
            let Some((called, caller)) = around.made(timeline, functions, call)? else {
                continue;
            };
            let now = outside(timeline, seq, &call, (&called, &caller))?;
            let is_same = now.is_none() || seen.get(&called.start) == now.as_ref();
            if let Some(now) = now {
                seen.insert(called.start, now);
            }
            if called != call {
                if is_same {
                    continue;
                }
                // Unrecorded functions may lie between.
                let between = call.depth.saturating_sub(called.depth) as usize;
                frames = FRAMES.max(NEAR_FRAMES + 4 * between);
            }
        }
        found.push(When {
            seq,
            tid,
            entered: None,
            frames,
        });
    }
    Ok(found)
}

/// For calls with a tracked function around them: the call that the innermost such function has made, and that
/// function's call.
#[derive(Default)]
struct Around {
    known: FxHashMap<u64, Option<(CallHead, CallHead)>>,
}

impl Around {
    /// Returns the call that the innermost of the functions around `call` has made (`call` or one around it), and the
    /// call of that function.
    fn made(
        &mut self,
        timeline: &Timeline,
        functions: &Functions,
        call: CallHead,
    ) -> Result<Option<(CallHead, CallHead)>> {
        let (mut called, mut passed) = (call, Vec::new());
        let made = loop {
            if let Some(known) = self.known.get(&called.start) {
                break *known;
            }
            let Some(caller) = timeline.parent(&called)? else {
                break None;
            };
            if functions.ids.contains(&caller.function) {
                break Some((called, caller));
            }
            passed.push(called.start);
            called = caller;
        };
        // The call itself is not examined again until its other end.
        let around = passed.into_iter().skip(1).chain([called.start]);
        self.known.extend(around.map(|start| (start, made)));
        Ok(made)
    }
}

/// Returns a hash of the capture at event `seq`, an end of `call`, without the frames inside that of `caller`, which
/// made the call `called`; `None` without a capture. Of the stack from rsp on only the part in the caller's frame
/// counts.
fn outside(
    timeline: &Timeline,
    seq: u64,
    call: &CallHead,
    (called, caller): (&CallHead, &CallHead),
) -> Result<Option<u64>> {
    let Some(capture) = timeline.captures.at(seq)? else {
        return Ok(None);
    };
    let mut hasher = DefaultHasher::new();
    let mut is_any = false;
    for section in capture.sections() {
        let end = section.addr.saturating_add(section.bytes.len() as u64);
        // rsp is at the slot, or one word above it once the return address has been popped.
        let is_window = section.addr.wrapping_sub(call.slot) <= 8;
        let (from, to) = match is_window {
            true => (section.addr.max(called.slot), end.min(caller.slot)),
            false if section.addr >= call.slot && end <= called.slot => continue,
            false => (section.addr, end),
        };
        if from < to {
            let part = (from - section.addr) as usize..(to - section.addr) as usize;
            (from, &section.bytes[part]).hash(&mut hasher);
            is_any = true;
        }
    }
    Ok(is_any.then(|| hasher.finish()))
}
