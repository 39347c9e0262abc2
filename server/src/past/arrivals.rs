//! Runs through all instructions: to breakpoints, to writes of watched values, and to the recorded stops.

use std::collections::{HashMap, VecDeque};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, PoisonError};

use replay::moves::{Direction, Stops};
use replay::{Arrival, Instant, Until, Walked, returns_to};

use super::breaks::StopAddress;
use super::judge::{Failed, Judge};
use super::{Past, Position, of_replay};
use crate::location::Target;
use crate::protocol::Failure;
use crate::session::{MotionReport, ReasonReport};
use crate::verbs::StepArgs;

/// Frames that are unwound for the selected one.
const FRAMES: usize = 2;

/// A breakpoint during a run.
struct Armed {
    id: u32,
    stops: Vec<StopAddress>,
    judge: Judge,
    /// This many hits are still to be skipped.
    ignored: u64,
}

/// A hit of breakpoints: the position, the thread, and which.
type Hit = (u64, u32, Vec<u32>);

/// The hits that a backward search still passes.
struct Passing {
    left: HashMap<u32, u64>,
    /// One out of this many hits stops.
    most: usize,
}

impl Passing {
    fn new(armed: &[Armed]) -> Passing {
        let all: u64 = armed.iter().map(|known| known.ignored).sum();
        Passing {
            left: armed
                .iter()
                .map(|known| (known.id, known.ignored))
                .collect(),
            most: usize::try_from(all).unwrap_or(usize::MAX).saturating_add(1),
        }
    }

    /// Passes a hit of these breakpoints, and returns those that stop there.
    fn stopping(&mut self, held: &[u32], told: &mut Told) -> Vec<u32> {
        let mut breaks = Vec::new();
        for id in held {
            match self.left.get_mut(id).filter(|left| **left > 0) {
                None => breaks.push(*id),
                Some(left) => {
                    *left -= 1;
                    *told.passed.entry(*id).or_default() += 1;
                }
            }
        }
        breaks
    }
}

/// Where a run ends: the place, the thread, and the breakpoints there.
pub(super) struct Stopped {
    /// After so many instructions; in a recording of calls the event.
    pub position: u64,
    pub tid: u32,
    pub breaks: Vec<u32>,
}

/// What a run reports about its breakpoints.
#[derive(Default)]
pub(super) struct Told {
    pub stopped: Option<Stopped>,
    /// How many hits were passed, by breakpoint.
    pub passed: HashMap<u32, u64>,
    pub failed: HashMap<u32, Failed>,
}

impl Past {
    /// Moves to the nearest breakpoint or recorded stop in a direction.
    pub(super) fn run_by_instructions(
        &self,
        direction: Direction,
    ) -> Result<MotionReport, Failure> {
        let here = self.position();
        let stops = Stops {
            logpoints: true,
            events: self.places_that_stop().1,
            ..Stops::default()
        };
        // Some instructions after an event, that event lies before.
        let from = here.seq + u64::from(direction == Direction::Back && here.steps > 0);
        let event = self.timeline.run(from, &stops, direction);
        let event = event.map_err(|error| of_replay(&error))?;
        let at_event = event.map(|seq| self.timeline.position_of(Instant::at(seq)));
        let at_event = at_event.transpose().map_err(|error| of_replay(&error))?;
        let until = at_event.filter(|_| direction == Direction::Forward);
        let told = self.nearest_break(here, until, direction)?;
        // No write behind the breakpoint, or behind the event, matters.
        let stopped = told.stopped.as_ref().map(|stopped| stopped.position);
        let stops = stopped.into_iter().chain(at_event);
        let until = match direction {
            Direction::Forward => stops.min(),
            Direction::Back => stops.max(),
        };
        let (wrote, changed) = self.nearest_write(direction, until)?;
        let instant = |stopped: &Stopped| {
            let instant = self.timeline.instant(stopped.position);
            Ok::<_, Failure>((
                instant.map_err(|error| of_replay(&error))?,
                Some(stopped.tid),
            ))
        };
        let event = event.map(|seq| (Instant::at(seq), None));
        let found = told.stopped.as_ref().map(instant).transpose()?;
        let wrote = wrote.map(|(instant, tid)| (instant, Some(tid)));
        // Among several stops at one moment, a breakpoint knows the thread.
        let all = found.into_iter().chain(wrote).chain(event);
        let nearest = match direction {
            Direction::Forward => all.min_by_key(|(instant, _)| *instant),
            Direction::Back => all.rev().max_by_key(|(instant, _)| *instant),
        };
        let Some((instant, tid)) = nearest else {
            self.tell_failed(&told);
            return Err(self.no_stop(here.instant(), direction));
        };
        self.go_to_instant(instant, tid)?;
        let is_here = |at: Option<(Instant, Option<u32>)>| at.is_some_and(|(at, _)| at == instant);
        let mut told = told;
        // Hits that were passed before another stop have passed.
        let passed_all = direction == Direction::Forward && found.is_none() && !is_here(wrote);
        if !is_here(found) && !passed_all {
            told = Told {
                failed: told.failed,
                ..Told::default()
            };
        }
        if instant.steps == 0 {
            self.with_caught(&mut told, instant.seq, tid);
        }
        if let Some(stopped) = &told.stopped {
            self.stand_at(&stopped.breaks)?;
        }
        let breaks = self.hit(&told);
        self.tell_failed(&told);
        let changed = match is_here(wrote) {
            true => changed,
            false => Vec::new(),
        };
        self.hit_watches(&changed);
        let mut report = self.motion_from(here)?;
        if let Some(stop) = &mut report.stop
            && let ReasonReport::Event {
                changed: told,
                breaks: hit,
                ..
            } = &mut stop.reason
        {
            *hit = breaks;
            *told = changed;
        }
        Ok(report)
    }

    /// Continues with the current thread to a place in the selected frame or an outer one, or out of the frame; without a
    /// place, to a later line of the innermost frame. `deeper`: what the frame calls may reach the place, too.
    pub(crate) fn run_until(
        &self,
        target: Option<&Target>,
        deeper: bool,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<MotionReport, Failure> {
        if !self.timeline.has_every_instruction() {
            return Err(self.needs_every_instruction(match deeper {
                true => "advance",
                false => "until",
            }));
        }
        let here = self.position();
        let selected = if target.is_some() { here.frame } else { 0 };
        let ((cfa, back), past) = self.look(selected + FRAMES, |looked| {
            let frames = &looked.moment.trace.backtrace.frames;
            let own = frames.iter().skip(selected).find(|frame| !frame.inlined);
            let cfa = own.and_then(|frame| frame.cfa);
            let back = returns_to(frames, selected);
            let pc = frames.first().map(|frame| frame.pc);
            let past = pc.map(|pc| looked.moment.space.statements_past(pc));
            Ok(((cfa, back), past.unwrap_or_default()))
        })?;
        let addresses = match target {
            Some(target) => all_addresses(&self.stop_addresses(target)?),
            None if past.is_empty() => {
                return self.next(&StepArgs::default(), Direction::Forward, is_interrupted);
            }
            None => past,
        };
        let until = Until {
            addresses,
            cfa: cfa.unwrap_or(0),
            back,
            deeper,
        };
        let walked = self.timeline.walk_until(here.instant(), here.tid, until);
        let (instant, walked) = walked.map_err(|error| of_replay(&error))?;
        if let Some(report) = self.break_up_to(here, instant, Direction::Forward)? {
            return Ok(report);
        }
        self.go_to_instant(instant, Some(here.tid))?;
        let mut report = self.motion_from(here)?;
        if walked == Walked::AtTheEdge
            && let Some(stop) = &mut report.stop
            && let ReasonReport::Event { what, .. } = &mut stop.reason
        {
            *what = match target {
                Some(target) => format!("{what}; {target} was not reached"),
                None => format!("{what}; no later line was reached"),
            };
        }
        Ok(report)
    }

    /// Moves to the first breakpoint on the way to a moment, or at it, if there is one: what a move goes over may stop, as it does live.
    /// `start`: where the whole move began.
    pub(super) fn break_up_to(
        &self,
        start: Position,
        to: Instant,
        direction: Direction,
    ) -> Result<Option<MotionReport>, Failure> {
        if self.breaks().iter().all(|known| known.disabled) {
            return Ok(None);
        }
        let to = self.timeline.position_of(to);
        let to = to.map_err(|error| of_replay(&error))?;
        let told = self.nearest_break(self.position(), Some(to), direction)?;
        self.tell_failed(&told);
        let Some(stopped) = &told.stopped else {
            self.hit(&told);
            return Ok(None);
        };
        let instant = self.timeline.instant(stopped.position);
        let instant = instant.map_err(|error| of_replay(&error))?;
        self.go_to_instant(instant, Some(stopped.tid))?;
        self.stand_at(&stopped.breaks)?;
        let breaks = self.hit(&told);
        let mut report = self.motion_from(start)?;
        if let Some(stop) = &mut report.stop
            && let ReasonReport::Event { breaks: hit, .. } = &mut stop.reason
        {
            *hit = breaks;
        }
        Ok(Some(report))
    }

    /// Selects the frame that the first of these breakpoints refers to, as at a stop of a live program: the thread is there.
    fn stand_at(&self, breaks: &[u32]) -> Result<(), Failure> {
        let pc = self.look(FRAMES, |looked| {
            let frames = &looked.moment.trace.backtrace.frames;
            Ok(frames.first().map(|frame| frame.pc))
        })?;
        let known = self.all_breaks().into_iter();
        let mut stops = known.filter(|known| breaks.contains(&known.id));
        let stop = stops.find_map(|known| {
            let mut stops = known.stops.into_iter();
            stops.find(|stop| Some(stop.address) == pc)
        });
        if let Some(stop) = stop {
            self.choose().calls_to_come = Some(stop.calls_to_come);
        }
        Ok(())
    }

    /// Looks for the nearest breakpoint, not further than `until`, which belongs to the search.
    fn nearest_break(
        &self,
        here: Position,
        until: Option<u64>,
        direction: Direction,
    ) -> Result<Told, Failure> {
        let position = self.timeline.position_of(here.instant());
        let position = position.map_err(|error| of_replay(&error))?;
        let is_within = |fixed: &Stopped| match (until, direction) {
            (None, _) => true,
            (Some(until), Direction::Forward) => fixed.position <= until,
            (Some(until), Direction::Back) => fixed.position >= until,
        };
        let fixed = self.counted_hits(position, direction)?.filter(is_within);
        let armed = self.armed()?;
        let until = fixed.as_ref().map(|fixed| fixed.position).or(until);
        let mut told = Told::default();
        if !armed.is_empty() {
            told = match direction {
                Direction::Forward => self.next_break(armed, position, until)?,
                Direction::Back => self.previous_break(armed, position, until)?,
            };
        }
        match (&mut told.stopped, fixed) {
            (None, fixed) => told.stopped = fixed,
            // Both stop there.
            (Some(found), Some(fixed)) if found.position == fixed.position => {
                found.breaks.extend(fixed.breaks);
            }
            (Some(_), _) => {}
        }
        Ok(told)
    }

    /// The breakpoints that stop at every hit.
    fn armed(&self) -> Result<Vec<Armed>, Failure> {
        let breaks = self.all_breaks().into_iter();
        let armed = breaks.filter(|known| !known.disabled && known.hit_count == 0);
        armed
            .map(|known| {
                Ok(Armed {
                    id: known.id,
                    judge: Judge::new(known.condition.as_deref(), self.shared_kept(), false)?,
                    stops: known.stops,
                    ignored: known.ignored,
                })
            })
            .collect()
    }

    /// The nearest of the breakpoints that stop at their Nth hit only.
    fn counted_hits(&self, here: u64, direction: Direction) -> Result<Option<Stopped>, Failure> {
        let mut nearest: Option<Stopped> = None;
        for known in self.all_breaks() {
            if known.disabled || known.hit_count == 0 {
                continue;
            }
            let nth = match known.nth {
                Some(nth) => nth,
                None => {
                    let judge = Judge::new(known.condition.as_deref(), self.shared_kept(), false)?;
                    let nth = self.nth_hit(known.stops, judge, known.hit_count)?;
                    let mut breaks = self.breaks();
                    if let Some(known) = breaks.iter_mut().find(|other| other.id == known.id) {
                        known.nth = Some(nth);
                    }
                    nth
                }
            };
            let Some((position, tid)) = nth else { continue };
            let (is_ahead, is_nearer) = match direction {
                Direction::Forward => (
                    position > here,
                    nearest.as_ref().is_none_or(|best| position < best.position),
                ),
                Direction::Back => (
                    position < here,
                    nearest.as_ref().is_none_or(|best| position > best.position),
                ),
            };
            if is_ahead && is_nearer {
                nearest = Some(Stopped {
                    position,
                    tid,
                    breaks: vec![known.id],
                });
            }
        }
        Ok(nearest)
    }

    fn nth_hit(
        &self,
        stops: Vec<StopAddress>,
        judge: Judge,
        wanted: u64,
    ) -> Result<Option<(u64, u32)>, Failure> {
        let found = Arc::new(Mutex::new(None));
        let end = self.end()?;
        let (mut hits, nth) = (0, Arc::clone(&found));
        let addresses = all_addresses(&stops);
        let ran = self.timeline.arrivals(0..end, &addresses, move |arrival| {
            look_from(&stops, arrival);
            hits += u64::from(judge.holds(arrival, None).unwrap_or(false));
            if hits < wanted {
                return ControlFlow::Continue(());
            }
            *nth.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((arrival.position, arrival.tid));
            ControlFlow::Break(())
        });
        ran.map_err(|error| of_replay(&error))?;
        let found = *found.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(found)
    }

    pub(super) fn end(&self) -> Result<u64, Failure> {
        self.timeline
            .instructions()
            .map_err(|error| of_replay(&error))
    }

    fn next_break(
        &self,
        mut armed: Vec<Armed>,
        here: u64,
        until: Option<u64>,
    ) -> Result<Told, Failure> {
        let end = match until {
            Some(until) => until.saturating_add(1).min(self.end()?),
            None => self.end()?,
        };
        let told = Arc::new(Mutex::new(Told::default()));
        let shared = Arc::clone(&told);
        let addresses = all_addresses(armed.iter().flat_map(|known| &known.stops));
        let ran = self
            .timeline
            .arrivals(here..end, &addresses, move |arrival| {
                if arrival.position == here {
                    return ControlFlow::Continue(());
                }
                let mut told = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let held = held(&armed, arrival, &mut told.failed);
                let mut breaks = Vec::new();
                for known in armed.iter_mut().filter(|known| held.contains(&known.id)) {
                    match known.ignored {
                        0 => breaks.push(known.id),
                        _ => {
                            known.ignored -= 1;
                            *told.passed.entry(known.id).or_default() += 1;
                        }
                    }
                }
                if breaks.is_empty() {
                    return ControlFlow::Continue(());
                }
                told.stopped = Some(Stopped {
                    position: arrival.position,
                    tid: arrival.tid,
                    breaks,
                });
                ControlFlow::Break(())
            });
        ran.map_err(|error| of_replay(&error))?;
        Ok(taken(&told))
    }

    /// Looks for the last breakpoint before `here`, down to `until` if that is given.
    fn previous_break(
        &self,
        armed: Vec<Armed>,
        here: u64,
        until: Option<u64>,
    ) -> Result<Told, Failure> {
        let addresses = all_addresses(armed.iter().flat_map(|known| &known.stops));
        let mut passing = Passing::new(&armed);
        let armed = Arc::new(armed);
        let told = Arc::new(Mutex::new(Told::default()));
        let mut before = here;
        loop {
            let (known, shared) = (Arc::clone(&armed), Arc::clone(&told));
            let accept = move |arrival: &mut Arrival<'_>| {
                let mut told = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let held = held(&known, arrival, &mut told.failed);
                (!held.is_empty()).then_some(held)
            };
            let hits = match until {
                Some(until) => {
                    self.hits_between(until..before, &addresses, passing.most, accept)?
                }
                None => {
                    let found =
                        self.timeline
                            .last_arrivals(before, &addresses, passing.most, accept);
                    found.map_err(|error| of_replay(&error))?.into()
                }
            };
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            for (position, tid, held) in hits.iter().rev() {
                let breaks = passing.stopping(held, &mut told);
                if !breaks.is_empty() {
                    told.stopped = Some(Stopped {
                        position: *position,
                        tid: *tid,
                        breaks,
                    });
                    return Ok(std::mem::take(&mut *told));
                }
            }
            match hits.front() {
                Some((first, ..)) if until.is_none() => before = *first,
                _ => return Ok(std::mem::take(&mut *told)),
            }
        }
    }

    /// The last hits in a stretch, at most `most`, in order.
    fn hits_between(
        &self,
        stretch: Range<u64>,
        addresses: &[u64],
        most: usize,
        mut accept: impl FnMut(&mut Arrival<'_>) -> Option<Vec<u32>> + Send + 'static,
    ) -> Result<VecDeque<Hit>, Failure> {
        let hits = Arc::new(Mutex::new(VecDeque::new()));
        let (shared, end) = (Arc::clone(&hits), stretch.end);
        let ran = self.timeline.arrivals(stretch, addresses, move |arrival| {
            if arrival.position < end
                && let Some(held) = accept(arrival)
            {
                let mut hits = shared.lock().unwrap_or_else(PoisonError::into_inner);
                if hits.len() >= most {
                    hits.pop_front();
                }
                hits.push_back((arrival.position, arrival.tid, held));
            }
            ControlFlow::Continue(())
        });
        ran.map_err(|error| of_replay(&error))?;
        Ok(std::mem::take(
            &mut *hits.lock().unwrap_or_else(PoisonError::into_inner),
        ))
    }

    /// Counts a stop at breakpoints, and returns which.
    pub(super) fn hit(&self, told: &Told) -> Vec<u32> {
        let hit = told.stopped.as_ref().map(|stopped| stopped.breaks.clone());
        let hit = hit.unwrap_or_default();
        let mut breaks = self.breaks();
        for known in breaks.iter_mut() {
            let passed = told.passed.get(&known.id).copied().unwrap_or(0);
            known.ignored = known.ignored.saturating_sub(passed);
            // As in gdb, hits that are ignored count.
            known.hits += passed + u64::from(hit.contains(&known.id));
        }
        breaks.retain(|known| !(known.once && hit.contains(&known.id)));
        hit
    }

    /// Has failed conditions told with the answer.
    pub(super) fn tell_failed(&self, told: &Told) {
        let mut failed: Vec<_> = told.failed.iter().collect();
        failed.sort_by_key(|(id, _)| **id);
        for (id, failed) in failed {
            let Some((count, position, why)) = failed.first() else {
                continue;
            };
            self.tell(format!(
                "breakpoint {id}: its condition could not be evaluated {}, first at {}: {why}",
                crate::quantity::count(count, "time"),
                self.moment_text(position),
            ));
        }
    }

    /// Writes the moment after this many instructions.
    pub(super) fn moment_text(&self, position: u64) -> String {
        if !self.timeline.has_every_instruction() {
            return format!("event {position}");
        }
        match self.timeline.instant(position) {
            Ok(instant) => instant.to_string(),
            Err(_) => format!("instruction {position}"),
        }
    }
}

fn all_addresses<'s>(stops: impl IntoIterator<Item = &'s StopAddress>) -> Vec<u64> {
    let mut all: Vec<u64> = stops.into_iter().map(|stop| stop.address).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The breakpoints at the thread's position whose conditions are true.
fn held(armed: &[Armed], arrival: &mut Arrival<'_>, failed: &mut HashMap<u32, Failed>) -> Vec<u32> {
    let mut held = Vec::new();
    for known in armed {
        if !look_from(&known.stops, arrival) {
            continue;
        }
        match known.judge.holds(arrival, None) {
            Ok(true) => held.push(known.id),
            Ok(false) => {}
            Err(why) => failed
                .entry(known.id)
                .or_default()
                .note(arrival.position, why),
        }
    }
    held
}

/// Has expressions evaluated in the frame that a breakpoint refers to. Returns whether the thread is at it.
pub(super) fn look_from(stops: &[StopAddress], arrival: &mut Arrival<'_>) -> bool {
    let address = arrival.address();
    match stops.iter().find(|stop| stop.address == address) {
        Some(stop) => {
            arrival.look_from(stop.inside);
            true
        }
        None => false,
    }
}

fn taken(told: &Mutex<Told>) -> Told {
    std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner))
}
