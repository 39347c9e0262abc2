//! Watches in a recording of every instruction: each is on some memory, for as long as that belongs to what was watched.

use debuginfo::short_name;
use replay::moves::Direction;
use replay::{Activation, Instant, Wrote};

use super::writes::{MOST_FRAMES, NO_MEMORY, Owner, frame_of, in_a_register};
use super::{Past, Position, frames_for, of_replay};
use crate::inspect::{self, MemoryPlace};
use crate::protocol::Failure;
use crate::session::{WatchChange, hex};

/// Watched memory.
#[derive(Clone)]
pub(super) struct Bytes {
    pub text: String,
    pub place: MemoryPlace,
    /// The call in whose frame it lies.
    pub call: Option<Lifetime>,
}

/// From when to when a call ran.
#[derive(Clone)]
pub(super) struct Lifetime {
    /// The short name of its function.
    pub function: String,
    tid: u32,
    /// So many instructions were executed before it; `None` if it began before the recording.
    begins: Option<u64>,
    /// So many were executed when it had ended; `None` if the recording does not show that.
    ends: Option<u64>,
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

    fn lifetime(&self, here: Position, owner: &Owner) -> Result<Lifetime, Failure> {
        let (begins, ends) = match self.call_of(here, owner)? {
            Some(call) => {
                let end = call.end.filter(|_| !call.open_at_end);
                (Some(Instant::at(call.start)), end.map(Instant::at))
            }
            None => self.unrecorded_call(here, owner)?,
        };
        let position = |at: Instant| {
            let position = self.timeline.position_of(at);
            position.map_err(|error| of_replay(&error))
        };
        let function = owner.function.as_deref().map(short_name);
        Ok(Lifetime {
            function: function.unwrap_or_else(|| hex(owner.entry)),
            tid: here.tid,
            begins: begins.map(position).transpose()?,
            ends: ends.map(position).transpose()?,
        })
    }

    /// When a call began and ended that has no events.
    fn unrecorded_call(
        &self,
        here: Position,
        owner: &Owner,
    ) -> Result<(Option<Instant>, Option<Instant>), Failure> {
        let (from, tid) = (here.instant(), here.tid);
        let begins = self.timeline.entered(from, tid, (owner.entry, owner.cfa));
        let begins = begins.map_err(|error| of_replay(&error))?;
        let ends = match owner.back {
            Some(_) => self.timeline.left(from, tid, owner.activation()),
            None => Ok(None),
        };
        Ok((begins, ends.map_err(|error| of_replay(&error))?))
    }

    /// The nearest change of a watched value, or the nearest end of a watch: the moment after it (before it in a backward
    /// search), its thread, and what has changed.
    pub(super) fn nearest_write(
        &self,
        direction: Direction,
        until: Option<u64>,
    ) -> Result<(Option<(Instant, u32)>, Vec<WatchChange>), Failure> {
        let here = self.timeline.position_of(self.position().instant());
        let here = here.map_err(|error| of_replay(&error))?;
        let (mut nearest, mut changed) = (None, Vec::new());
        for (watch, bytes) in self.bytes_of_watches() {
            let ahead = match direction {
                Direction::Forward => self.ahead(&bytes, here, until)?,
                Direction::Back => self.behind(&bytes, here)?,
            };
            let Some(ahead) = ahead else { continue };
            let is_nearer = |best: Instant| match direction {
                Direction::Forward => ahead.at < best,
                Direction::Back => ahead.at > best,
            };
            match nearest {
                Some((best, _)) if ahead.at != best && !is_nearer(best) => continue,
                Some((best, _)) if ahead.at == best => {}
                _ => changed.clear(),
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

    /// The next change of the memory within its call, or the end of the call.
    fn ahead(
        &self,
        bytes: &Bytes,
        here: u64,
        until: Option<u64>,
    ) -> Result<Option<Ahead>, Failure> {
        let (begins, ends) = bytes.span();
        if ends.is_some_and(|ends| here >= ends) {
            return Ok(None);
        }
        let end = self.timeline.instructions();
        let end = end.map_err(|error| of_replay(&error))?;
        let stretch =
            here.max(begins.unwrap_or(0))..end.min(ends.unwrap_or(end)).min(until.unwrap_or(end));
        let place = &bytes.place;
        let wrote = self
            .timeline
            .first_change(stretch, place.address, place.len);
        match wrote.map_err(|error| of_replay(&error))? {
            Some(wrote) => self.change(bytes, &wrote, wrote.after).map(Some),
            None => match ends.filter(|ends| until.is_none_or(|until| *ends <= until)) {
                Some(ends) => self.left_call(bytes, ends, "has ended"),
                None => Ok(None),
            },
        }
    }

    /// The last change of the memory within its call before a moment, or the beginning of the call.
    fn behind(&self, bytes: &Bytes, here: u64) -> Result<Option<Ahead>, Failure> {
        let (begins, ends) = bytes.span();
        if begins.is_some_and(|begins| here <= begins) {
            return Ok(None);
        }
        let stretch = begins.unwrap_or(0)..here.min(ends.unwrap_or(here));
        let place = &bytes.place;
        let wrote = self.timeline.last_change(stretch, place.address, place.len);
        match (wrote.map_err(|error| of_replay(&error))?, begins) {
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
        let at = self.timeline.instant(position);
        let at = at.map_err(|error| of_replay(&error))?;
        let old = self.value_at(&bytes.place, at, call.tid)?;
        Ok(Some(Ahead {
            at,
            tid: call.tid,
            old: old.unwrap_or_else(|| NO_MEMORY.to_owned()),
            new: String::new(),
            removed: Some(format!(
                "the call of {} in whose frame it lies {what}",
                call.function
            )),
        }))
    }
}

impl Bytes {
    /// Says that the call whose variable is watched lies in the other direction from a position.
    pub(super) fn is_over(&self, here: u64, direction: Direction) -> Option<String> {
        let call = self.call.as_ref()?;
        let (is_over, what) = match direction {
            Direction::Forward => (call.ends? <= here, "has ended"),
            Direction::Back => (call.begins? >= here, "begins later"),
        };
        let (text, function) = (&self.text, &call.function);
        is_over.then(|| format!("{text} is a variable of a call of {function} that {what}"))
    }

    /// The positions between which the memory belongs to what was watched.
    fn span(&self) -> (Option<u64>, Option<u64>) {
        let call = self.call.as_ref();
        call.map_or((None, None), |call| (call.begins, call.ends))
    }
}

impl Owner {
    /// Returns the same for moves.
    pub(super) fn activation(&self) -> Activation {
        Activation {
            entry: Some(self.entry),
            cfa: self.cfa,
            back: self.back,
        }
    }
}
