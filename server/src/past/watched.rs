//! Watches in a recording of every instruction: each is on some memory, for as long as that belongs to what was watched.

use replay::moves::Direction;
use replay::{Instant, Wrote};

use super::call_span::Lifetime;
use super::writes::{MOST_FRAMES, NO_MEMORY, frame_of, in_a_register};
use super::{Past, frames_for, of_replay};
use crate::inspect::{self, MemoryPlace};
use crate::protocol::Failure;
use crate::session::WatchChange;

/// Watched memory.
#[derive(Clone)]
pub(super) struct Bytes {
    pub text: String,
    pub place: MemoryPlace,
    /// The call to which it belongs.
    pub call: Option<Lifetime>,
}

/// Where a watch stops a run.
struct Ahead {
    at: Instant,
    tid: u32,
    old: String,
    new: String,
    /// Why the watch is removed there.
    removed: Option<String>,
}

impl Past {
    /// Finds the memory of an expression, and the call to which it belongs.
    pub(super) fn watched_bytes(&self, expression: &str) -> Result<Bytes, Failure> {
        let here = self.position();
        let frames = frames_for(expression).max(MOST_FRAMES);
        let (place, owner) = self.look_at(here, frames, |looked| {
            let place = inspect::evaluate_place(&looked.view(), expression);
            let place =
                place.map_err(|failure| in_a_register(expression, looked.explained(failure)))?;
            let owner = frame_of(looked, place.address);
            Ok((place, owner))
        })?;
        let call = owner.map(|owner| self.lifetime(here, &owner)).transpose()?;
        Ok(Bytes {
            text: expression.to_owned(),
            place,
            call,
        })
    }

    /// The nearest change of a watched value, or the nearest end of a watch: the moment after it (before it in a backward
    /// search), its thread, and what has changed. `until`: the position that it is not to lie behind.
    pub(super) fn nearest_write(
        &self,
        direction: Direction,
        until: Option<u64>,
    ) -> Result<(Option<(Instant, u32)>, Vec<WatchChange>), Failure> {
        let here = self.executed_before(self.position().instant())?;
        let mut bound = until;
        let mut nearest: Option<(Instant, u32)> = None;
        let mut changed = Vec::new();
        for (watch, bytes) in self.bytes_of_watches() {
            let ahead = match direction {
                Direction::Forward => self.ahead(&bytes, here, bound)?,
                Direction::Back => self.behind(&bytes, here, bound)?,
            };
            let Some(ahead) = ahead else { continue };
            // It is no further than the nearest so far.
            bound = Some(self.executed_before(ahead.at)?);
            if nearest.is_some_and(|(best, _)| best != ahead.at) {
                changed.clear();
            }
            nearest = Some((ahead.at, ahead.tid));
            changed.push(WatchChange {
                watch,
                expression: bytes.text,
                old: ahead.old,
                new: ahead.new,
                removed: ahead.removed,
            });
        }
        Ok((nearest, changed))
    }

    fn bytes_of_watches(&self) -> Vec<(u32, Bytes)> {
        let watches = self.watches();
        let all = watches.iter().filter_map(|watch| {
            let bytes = watch.bytes()?;
            Some((watch.id, bytes.clone()))
        });
        all.collect()
    }

    /// The next change of the memory within its call, or the end of the call; not behind position `until`.
    fn ahead(
        &self,
        bytes: &Bytes,
        here: u64,
        until: Option<u64>,
    ) -> Result<Option<Ahead>, Failure> {
        let last = self.end()?;
        let until = until.unwrap_or(last).min(last);
        let call = bytes.call.as_ref();
        let from = match call {
            Some(call) => self.open_from(call, here)?,
            None => Some(here),
        };
        let Some(from) = from else { return Ok(None) };
        let place = &bytes.place;
        let wrote = self
            .timeline
            .first_change(from..until, place.address, place.len);
        let wrote = wrote.map_err(|error| of_replay(&error))?;
        // The end of the call matters only if it comes first.
        let before = wrote
            .map(|wrote| self.executed_before(wrote.before))
            .transpose()?;
        let ends = match call {
            Some(call) => self.end_by(call, before.unwrap_or(until))?,
            None => None,
        };
        match (ends, wrote) {
            (Some(ends), _) => self.left_call(bytes, ends, "has ended"),
            (None, Some(wrote)) => self.change(bytes, &wrote, wrote.after).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The last change of the memory within its call before a moment, or the beginning of the call; not before position
    /// `until`.
    fn behind(
        &self,
        bytes: &Bytes,
        here: u64,
        until: Option<u64>,
    ) -> Result<Option<Ahead>, Failure> {
        let until = until.unwrap_or(0);
        let (begins, ends) = match &bytes.call {
            Some(call) => (self.begin(call)?, self.end_by(call, here)?),
            None => (None, None),
        };
        if begins.is_some_and(|begins| here <= begins) {
            return Ok(None);
        }
        let stretch = begins.unwrap_or(0).max(until)..here.min(ends.unwrap_or(here));
        let place = &bytes.place;
        let wrote = self.timeline.last_change(stretch, place.address, place.len);
        let wrote = wrote.map_err(|error| of_replay(&error))?;
        match (wrote, begins.filter(|begins| *begins >= until)) {
            (Some(wrote), _) => self.change(bytes, &wrote, wrote.before).map(Some),
            (None, Some(begins)) => self.left_call(bytes, begins, "begins here"),
            (None, None) => Ok(None),
        }
    }

    fn change(&self, bytes: &Bytes, wrote: &Wrote, at: Instant) -> Result<Ahead, Failure> {
        let change = self.written(&bytes.place, wrote)?;
        Ok(Ahead {
            at,
            tid: wrote.tid,
            old: change.old.unwrap_or_else(|| NO_MEMORY.to_owned()),
            new: change.value,
            removed: None,
        })
    }

    /// The stop where the memory no longer belongs to the watched value, or does not yet.
    fn left_call(
        &self,
        bytes: &Bytes,
        position: u64,
        what: &str,
    ) -> Result<Option<Ahead>, Failure> {
        let Some(call) = &bytes.call else {
            return Ok(None);
        };
        let at = self.instant_after(position)?;
        let old = self.value_at(&bytes.place, at, call.tid)?;
        Ok(Some(Ahead {
            at,
            tid: call.tid,
            old: old.unwrap_or_else(|| NO_MEMORY.to_owned()),
            new: String::new(),
            removed: Some(format!(
                "the call of {} to which it belongs {what}",
                call.function
            )),
        }))
    }
}

impl Bytes {
    /// Says that the call whose variable is watched lies in the other direction from a position.
    pub(super) fn is_over(&self, here: u64, direction: Direction) -> Option<String> {
        let call = self.call.as_ref()?;
        let what = match direction {
            Direction::Forward => call.is_known_to_end_by(here).then_some("has ended"),
            Direction::Back => call.is_known_to_begin_from(here).then_some("begins later"),
        };
        let (text, function) = (&self.text, &call.function);
        what.map(|what| format!("{text} is a variable of a call of {function} that {what}"))
    }
}
