//! Breakpoints in a recording of calls, during a run through time: they are hit where one of their functions is entered, or at events
//! that are caught, and may have a condition, a count, and hits that are passed.

use std::collections::BTreeSet;
use std::sync::Arc;

use replay::Event;
use replay::moves::{Direction, Stops};

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
    judge: Judge,
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
        let stops = stops_of(armed.iter().map(|known| (&known.functions, &*known.events)));
        let mut seq = here;
        while !armed.is_empty() {
            let Some(Entry {
                seq: entry,
                tid,
                function,
            }) = self.next_entry(seq, &stops, direction)?
            else {
                break;
            };
            if until.is_some_and(|until| is_before((until, entry), direction)) {
                break;
            }
            interrupted(is_interrupted)?;
            seq = entry;
            let mut breaks = Vec::new();
            let is_here = |known: &&mut Armed| {
                let is_entered =
                    function.is_some_and(|function| known.functions.contains(&function));
                is_entered || known.events.contains(&entry)
            };
            for known in armed.iter_mut().filter(is_here) {
                match self.holds(&known.judge, (entry, tid)) {
                    Ok(false) => {}
                    Ok(true) if known.ignored > 0 => {
                        known.ignored -= 1;
                        *told.passed.entry(known.id).or_default() += 1;
                    }
                    Ok(true) => breaks.push(known.id),
                    Err(why) => told.failed.entry(known.id).or_default().note(entry, why),
                }
            }
            if !breaks.is_empty() {
                // The Nth hit of another one may be here, too.
                let nth = nearest.take().filter(|nth| nth.position == entry);
                breaks.extend(nth.into_iter().flat_map(|nth| nth.breaks));
                nearest = Some(Stopped {
                    position: entry,
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
                    judge: Judge::new(known.condition.as_deref(), self.shared_kept(), false)?,
                    functions: known.functions,
                    events: known.events,
                    ignored: known.ignored,
                })
            })
            .collect()
    }

    /// The nearest of the events.
    fn next_entry(
        &self,
        from: u64,
        stops: &Stops,
        direction: Direction,
    ) -> Result<Option<Entry>, Failure> {
        let found = self.timeline.run(from, stops, direction);
        let Some(seq) = found.map_err(|error| of_replay(&error))? else {
            return Ok(None);
        };
        self.entry(seq).map(Some)
    }

    fn entry(&self, seq: u64) -> Result<Entry, Failure> {
        let event = self
            .timeline
            .event(seq)
            .map_err(|error| of_replay(&error))?;
        Ok(Entry {
            seq,
            tid: event.tid().unwrap_or(self.position().tid),
            function: match event {
                Event::Enter(call) => Some(call.function),
                _ => None,
            },
        })
    }

    fn holds(&self, judge: &Judge, (seq, tid): (u64, u32)) -> Result<bool, String> {
        if !judge.is_conditional() {
            return Ok(true);
        }
        let held = self.look_at(Position::of_event(seq, tid), FRAMES, |looked| {
            Ok(judge.holds_in(&looked.view()))
        });
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
        let judge = Judge::new(known.condition.as_deref(), self.shared_kept(), false)?;
        let (mut seq, mut hits, mut found) = (0, 0, None);
        let stops = stops_of(std::iter::once((&known.functions, &*known.events)));
        while let Some(entry) = self.next_entry(seq, &stops, Direction::Forward)? {
            interrupted(is_interrupted)?;
            seq = entry.seq;
            let here = (entry.seq, entry.tid);
            hits += u64::from(self.holds(&judge, here).unwrap_or(false));
            if hits == known.hit_count {
                found = Some(here);
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
            entry
                .function
                .is_some_and(|function| known.functions.contains(&function))
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
#[derive(Clone, Copy)]
struct Entry {
    seq: u64,
    tid: u32,
    /// The function that is entered, if it is the entry of one.
    function: Option<u32>,
}

/// The entries of functions and the events at which runs look at breakpoints.
fn stops_of<'b>(breaks: impl Iterator<Item = (&'b BTreeSet<u32>, &'b BTreeSet<u64>)>) -> Stops {
    let mut stops = Stops {
        passes_pauses: true,
        ..Stops::default()
    };
    for (functions, events) in breaks {
        stops.functions.extend(functions);
        stops.events.extend(events);
    }
    stops
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

fn interrupted(is_interrupted: &dyn Fn() -> bool) -> Result<(), Failure> {
    match is_interrupted() {
        true => Err(of_replay(&replay::Error::Interrupted)),
        false => Ok(()),
    }
}
