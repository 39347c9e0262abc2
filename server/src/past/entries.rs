//! Breakpoints in a recording of calls, during a run through time: they are hit where one of their functions is entered, or at events
//! that are caught, and may have a condition, a count, and hits that are passed.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use debuginfo::with_source_copies;
use replay::moves::Direction;
use replay::{Answers, CallHead, Entries, Event, Moment, Places};

use super::arrivals::{Stopped, Told};
use super::judge::Judge;
use super::{Break, Past, Position, of_replay};
use crate::protocol::Failure;

/// Frames that a condition may need: that of the function, and the caller's for values that only the caller still has.
const FRAMES: usize = 2;

/// A breakpoint during a run.
struct Armed {
    id: u32,
    functions: BTreeSet<u32>,
    events: Arc<BTreeSet<u64>>,
    judge: Judged,
    /// So many hits are still passed.
    ignored: u64,
}

impl Past {
    /// The functions of the breakpoints that stop at every entry, and the events of such catchpoints.
    pub(super) fn places_that_stop(&self) -> (BTreeSet<u32>, BTreeSet<u64>) {
        let breaks = self.breaks();
        let plain = || breaks.iter().filter(|known| is_plain(known));
        let functions = plain().flat_map(|known| known.functions.iter().copied());
        let events = plain().flat_map(|known| known.events.iter().copied());
        (functions.collect(), events.collect())
    }

    /// Looks for the nearest entry at which a breakpoint with a condition or a count stops, not further than `until`.
    pub(super) fn nearest_entry(
        &self,
        until: Option<u64>,
        direction: Direction,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Told, Failure> {
        let here = self.position().seq;
        let mut told = Told::default();
        let mut nearest = self.nearest_nth_entry((here, until), direction, is_interrupted)?;
        let until = nearest.as_ref().map(|nth| nth.position).or(until);
        let mut armed = self.armed_functions()?;
        let mut run = Run::new(
            self,
            armed.iter().map(|known| (&known.functions, &*known.events)),
            (here, until),
            direction,
        );
        while !armed.is_empty() {
            let Some(entry) = run.next(is_interrupted)? else {
                break;
            };
            let mut breaks = Vec::new();
            let is_here = |known: &&mut Armed| {
                let is_entered = |call: &CallHead| known.functions.contains(&call.function);
                entry.call.as_ref().is_some_and(is_entered) || known.events.contains(&entry.seq)
            };
            for known in armed.iter_mut().filter(is_here) {
                match self.holds(&mut known.judge, &mut run.places, &entry) {
                    Ok(false) => {}
                    Ok(true) if known.ignored > 0 => {
                        known.ignored -= 1;
                        *told.passed.entry(known.id).or_default() += 1;
                    }
                    Ok(true) => breaks.push(known.id),
                    Err(why) => told
                        .failed
                        .entry(known.id)
                        .or_default()
                        .note(entry.seq, why),
                }
            }
            let Entry { seq, tid, .. } = entry;
            if !breaks.is_empty() {
                // The Nth hit of another one may be here, too.
                let nth = nearest.take().filter(|nth| nth.position == seq);
                breaks.extend(nth.into_iter().flat_map(|nth| nth.breaks));
                nearest = Some(Stopped {
                    position: seq,
                    tid,
                    breaks,
                });
                break;
            }
        }
        told.stopped = nearest;
        Ok(told)
    }

    /// The breakpoints with a condition or with hits that are passed.
    fn armed_functions(&self) -> Result<Vec<Armed>, Failure> {
        let breaks = self.all_breaks().into_iter();
        let armed =
            breaks.filter(|known| !known.disabled && known.hit_count == 0 && !is_plain(known));
        armed
            .map(|known| {
                Ok(Armed {
                    id: known.id,
                    judge: Judged::new(self.judge_of(&known)?),
                    functions: known.functions,
                    events: known.events,
                    ignored: known.ignored,
                })
            })
            .collect()
    }

    fn judge_of(&self, known: &Break) -> Result<Judge, Failure> {
        Judge::new(known.condition.as_deref(), self.shared_kept(), false)
    }

    fn entry(&self, seq: u64) -> Result<Entry, Failure> {
        let event = self
            .timeline
            .event(seq)
            .map_err(|error| of_replay(&error))?;
        Ok(Entry {
            seq,
            tid: event.tid().unwrap_or(self.position().tid),
            call: match event {
                Event::Enter(call) => Some(call),
                _ => None,
            },
        })
    }

    fn holds(
        &self,
        judged: &mut Judged,
        places: &mut Places,
        entry: &Entry,
    ) -> Result<bool, String> {
        let Judged { judge, answers } = judged;
        if !judge.is_conditional() {
            return Ok(true);
        }
        let mut ask = || self.evaluate(judge, places, entry);
        match (answers, &entry.call) {
            (Some(answers), Some(call)) => {
                let answer = answers.at_entry(&self.timeline, call, ask);
                answer.unwrap_or_else(|error| Err(of_replay(&error).message))
            }
            _ => ask(),
        }
    }

    /// Evaluates a condition, with as few registers and frames as that takes.
    fn evaluate(&self, judge: &Judge, places: &mut Places, entry: &Entry) -> Result<bool, String> {
        let position = Position::of_event(entry.seq, entry.tid);
        if let Some(call) = entry.call {
            let ask = |moment: &Moment<'_>| {
                let looked = self.looked(moment, position);
                judge.holds_in(&looked.view()).ok()
            };
            let answer = with_source_copies(self.timeline.sources(), || {
                places.ask(&self.timeline, entry.seq, Event::Enter(call), ask)
            });
            if let Ok(Some(holds)) = answer {
                return Ok(holds);
            }
        }
        let held = self.look_at(
            position,
            FRAMES,
            |looked| Ok(judge.holds_in(&looked.view())),
        );
        held.unwrap_or_else(|failure| Err(failure.message))
    }

    /// The nearest of the breakpoints that stop at their Nth hit only.
    fn nearest_nth_entry(
        &self,
        (here, until): (u64, Option<u64>),
        direction: Direction,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Stopped>, Failure> {
        let mut nearest: Option<Stopped> = None;
        for known in self.all_breaks() {
            if known.disabled || known.hit_count == 0 {
                continue;
            }
            let nth = match known.nth {
                Some(nth) => nth,
                None => self.find_nth_entry(&known, is_interrupted)?,
            };
            let Some((position, tid)) = nth else { continue };
            let limit = nearest.as_ref().map(|best| best.position).or(until);
            let is_ahead = is_before((here, position), direction);
            if is_ahead && limit.is_none_or(|limit| !is_before((limit, position), direction)) {
                let mut breaks = vec![known.id];
                let same = nearest.take().filter(|best| best.position == position);
                breaks.extend(same.into_iter().flat_map(|best| best.breaks));
                nearest = Some(Stopped {
                    position,
                    tid,
                    breaks,
                });
            }
        }
        Ok(nearest)
    }

    /// Looks for the Nth hit of the whole run, and remembers it.
    fn find_nth_entry(
        &self,
        known: &Break,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<(u64, u32)>, Failure> {
        let mut judged = Judged::new(self.judge_of(known)?);
        let mut run = Run::new(
            self,
            std::iter::once((&known.functions, &*known.events)),
            (0, None),
            Direction::Forward,
        );
        let (mut hits, mut found) = (0, None);
        while let Some(entry) = run.next(is_interrupted)? {
            let holds = self.holds(&mut judged, &mut run.places, &entry);
            hits += u64::from(holds.unwrap_or(false));
            if hits == known.hit_count {
                found = Some((entry.seq, entry.tid));
                break;
            }
        }
        let mut breaks = self.breaks();
        if let Some(known) = breaks.iter_mut().find(|other| other.id == known.id) {
            known.nth = Some(found);
        }
        Ok(found)
    }

    /// Adds the plain breakpoints at an entry to what a run tells of those there.
    pub(super) fn with_plain(&self, told: &mut Told, seq: u64) -> Result<(), Failure> {
        let entry = self.entry(seq)?;
        let is_entered = |known: &Break| {
            let entered = entry.call.as_ref();
            entered.is_some_and(|call| known.functions.contains(&call.function))
        };
        let plain: Vec<u32> = {
            let breaks = self.breaks();
            let plain = breaks.iter().filter(|known| is_plain(known));
            let here = plain.filter(|known| is_entered(known) || known.events.contains(&seq));
            here.map(|known| known.id).collect()
        };
        if plain.is_empty() {
            return Ok(());
        }
        let stopped = told.stopped.get_or_insert_with(|| Stopped {
            position: seq,
            tid: entry.tid,
            breaks: Vec::new(),
        });
        stopped.breaks.extend(plain);
        stopped.breaks.sort_unstable();
        Ok(())
    }

    /// Adds the catchpoints at an event to what a run through all instructions tells of it.
    pub(super) fn with_caught(&self, told: &mut Told, seq: u64, tid: Option<u32>) {
        let breaks = self.breaks();
        let here = breaks
            .iter()
            .filter(|known| is_plain(known) && known.events.contains(&seq));
        let here: Vec<u32> = here.map(|known| known.id).collect();
        if !here.is_empty() {
            let stopped = told.stopped.get_or_insert_with(|| Stopped {
                position: seq,
                tid: tid.unwrap_or(0),
                breaks: Vec::new(),
            });
            stopped.breaks.extend(here);
        }
    }
}

/// Where a run may stop.
struct Entry {
    seq: u64,
    tid: u32,
    /// The call that begins there, if it is the entry of a function.
    call: Option<CallHead>,
}

/// A condition, and its answers that are known, if it depends on arguments alone.
struct Judged {
    judge: Judge,
    answers: Option<Answers>,
}

impl Judged {
    fn new(judge: Judge) -> Judged {
        let answers = judge.operands().and_then(Answers::about);
        Judged { judge, answers }
    }
}

/// A run past the entries of functions and the events at which breakpoints are.
struct Run<'p> {
    past: &'p Past,
    entries: Entries<'p>,
    events: BTreeSet<u64>,
    direction: Direction,
    /// What comes next, in the order of the run.
    next: VecDeque<Entry>,
    /// How many have passed.
    passed: u64,
    places: Places,
}

/// So many entries pass between two looks at the clock.
const BETWEEN: u64 = 256;

impl<'p> Run<'p> {
    fn new<'b>(
        past: &'p Past,
        breaks: impl Iterator<Item = (&'b BTreeSet<u32>, &'b BTreeSet<u64>)>,
        from_until: (u64, Option<u64>),
        direction: Direction,
    ) -> Run<'p> {
        let (mut functions, mut events) = (BTreeSet::new(), BTreeSet::new());
        for (of_functions, of_events) in breaks {
            functions.extend(of_functions);
            events.extend(of_events);
        }
        Run {
            past,
            entries: Entries::new(&past.timeline, functions, from_until, direction),
            events,
            direction,
            next: VecDeque::new(),
            passed: 0,
            places: Places::default(),
        }
    }

    fn next(&mut self, is_interrupted: &dyn Fn() -> bool) -> Result<Option<Entry>, Failure> {
        while self.next.is_empty() {
            let window = self.entries.window().map_err(|error| of_replay(&error))?;
            let Some((window, calls)) = window else {
                return Ok(None);
            };
            let at = match self.direction {
                Direction::Forward => window.start,
                Direction::Back => window.end,
            };
            goes_on(at, is_interrupted)?;
            self.take(window, calls)?;
        }
        self.passed += 1;
        let next = self.next.pop_front();
        if let Some(next) = next
            .as_ref()
            .filter(|_| self.passed.is_multiple_of(BETWEEN))
        {
            goes_on(next.seq, is_interrupted)?;
        }
        Ok(next)
    }

    fn take(&mut self, window: Range<u64>, calls: Vec<CallHead>) -> Result<(), Failure> {
        let here = self.past.position().tid;
        self.next.extend(calls.into_iter().map(|call| Entry {
            seq: call.start,
            tid: call.tid.unwrap_or(here),
            call: Some(call),
        }));
        if self.events.range(window.clone()).next().is_some() {
            let entered: HashSet<u64> = self.next.iter().map(|entry| entry.seq).collect();
            for seq in self
                .events
                .range(window)
                .filter(|seq| !entered.contains(seq))
            {
                let event = self.past.entry(*seq)?;
                self.next.push_back(event);
            }
            let all = self.next.make_contiguous();
            all.sort_unstable_by_key(|entry| entry.seq);
            if self.direction == Direction::Back {
                all.reverse();
            }
        }
        Ok(())
    }
}

/// Tells whether a breakpoint stops at every entry of its functions, or at every event of its own.
fn is_plain(known: &Break) -> bool {
    !known.disabled && known.condition.is_none() && known.hit_count == 0 && known.ignored == 0
}

/// Tells whether a run comes by `one` before it comes by `other`.
fn is_before((one, other): (u64, u64), direction: Direction) -> bool {
    match direction {
        Direction::Forward => one < other,
        Direction::Back => one > other,
    }
}

/// Tells who waits how far a run is, unless they have gone.
fn goes_on(seq: u64, is_interrupted: &dyn Fn() -> bool) -> Result<(), Failure> {
    match !is_interrupted() && replay::goes_on(seq) {
        true => Ok(()),
        false => Err(of_replay(&replay::Error::Interrupted)),
    }
}
