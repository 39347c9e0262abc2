//! The moment that a question about a value means, and what the recording shows of the value after it.

use std::sync::atomic::Ordering;

use replay::history::HistoryScope;
use replay::{Event, Instant};
use serde::{Deserialize, Serialize};

use super::history::Change;
use super::{Past, Position, of_replay};
use crate::inspect::MemoryPlace;
use crate::protocol::Failure;
use crate::verbs::{moment_of_change, place_of_change};

/// Events before the first call: loaded modules and the like.
const MOST_BEFORE_CALLS: u64 = 200_000;

/// Most events after a stop among which a user's writes are looked for.
const MOST_WRITES: usize = 10_000;

/// What happened to a value after the moment that an answer is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Later {
    /// The event of that moment.
    pub up_to: u64,
    /// That moment is this many instructions later.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub steps: u64,
    /// How many later writes there are; absent if only changes are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// The last one.
    pub last: Change,
}

impl Later {
    /// Says that the answer is not about the whole recording.
    #[must_use]
    pub fn text(&self, expression: &str) -> String {
        let Later {
            up_to,
            steps,
            count,
            last,
        } = self;
        let place = match place_of_change(last) {
            place if place.is_empty() => place,
            place => format!(" ({place})"),
        };
        let at = format!("event {}{place}", moment_of_change(last));
        let later = match count {
            None => format!("{expression} changes later; the last change that was seen is at {at}"),
            Some(1) => format!("1 later write, at {at}"),
            Some(count) => format!("{count} later writes, the last at {at}"),
        };
        let moment = Instant {
            seq: *up_to,
            steps: *steps,
        };
        format!("This is up to event {moment}; {later}: goto last")
    }
}

fn is_nothing(number: &u64) -> bool {
    *number == 0
}

impl Past {
    /// Opens it at its first call instead: at its first event, no function has a place. One without calls stays where it is.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn at_first_call(self) -> Result<Past, Failure> {
        for seq in 0..self.timeline.events().min(MOST_BEFORE_CALLS) {
            let event = self.timeline.event(seq).map_err(|e| of_replay(&e))?;
            if let (Event::Enter(_), Some(tid)) = (&event, event.tid()) {
                *self.lock() = Position::of_event(seq, tid);
                break;
            }
        }
        Ok(self)
    }

    /// Moves from the stop of a live program over what the user wrote there, as far as the program did not run.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn go_over_own_writes(&self) -> Result<(), Failure> {
        let here = self.position();
        let mut last = here.seq;
        for seq in (here.seq + 1..self.timeline.events()).take(MOST_WRITES) {
            match self.timeline.event(seq).map_err(|e| of_replay(&e))? {
                Event::Other(event) if event.kind == "write" => last = seq,
                Event::Other(_) => {}
                // A function that the user called.
                Event::Enter(_) | Event::Leave(_) => break,
            }
        }
        if last > here.seq {
            self.return_to(Position::of_event(last, here.tid));
        }
        Ok(())
    }

    /// Answers a question about a value: at the current position if the user has chosen one, else at the end of the recording. If the
    /// expression means nothing there, the position decides.
    pub(super) fn at_end_unless_chosen<T>(
        &self,
        answer: impl Fn(Position) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let here = self.position();
        if self.is_chosen.load(Ordering::Relaxed) {
            return answer(here);
        }
        match self.end_position()? {
            end if end == here => answer(here),
            end => answer(end).or_else(|failure| answer(here).map_err(|_| failure)),
        }
    }

    /// Returns the position at the signal that ended the program, or at the last event.
    fn end_position(&self) -> Result<Position, Failure> {
        let crash = self.timeline.crash().map_err(|error| of_replay(&error))?;
        self.position_at(Some(crash.unwrap_or(self.timeline.last())))
    }

    /// Moves to the signal that ended the program, or to the last event.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn go_to_end(&self) -> Result<(), Failure> {
        let end = self.end_position()?;
        self.return_to(end);
        Ok(())
    }

    /// Finds the writes to a place after a moment, in a recording of every instruction.
    pub(super) fn instructions_that_write_later(
        &self,
        here: Position,
        place: &MemoryPlace,
        until: Instant,
        most: usize,
    ) -> Result<Option<Later>, Failure> {
        let timeline = &self.timeline;
        let span = (here.instant(), until);
        let found = timeline.writes_between(span, (place.address, place.len), most);
        let found = found.map_err(|error| of_replay(&error))?;
        let count = Some(found.len()).filter(|count| *count < most);
        let wrote = match (found.last(), count) {
            (None, _) => return Ok(None),
            (Some(last), Some(_)) => {
                Some(timeline.wrote(*last).map_err(|error| of_replay(&error))?)
            }
            // There are more.
            (Some(_), None) => timeline
                .last_write_before(until, place.address, place.len)
                .map_err(|error| of_replay(&error))?,
        };
        let later = wrote.map(|wrote| {
            Ok(Later {
                up_to: here.seq,
                steps: here.steps,
                count,
                last: self.written(place, &wrote)?,
            })
        });
        later.transpose()
    }

    /// Finds what is known of a value over global variables after a moment: its logged writes, or its last change.
    pub(super) fn known_later(
        &self,
        expression: &str,
        here: Position,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Later>, Failure> {
        if here.seq >= self.timeline.last() {
            return Ok(None);
        }
        if let Some(place) = self.global_place(expression, here) {
            let range = place.address..place.address.saturating_add(place.len);
            let later = self.timeline.logged_after(&range, here.seq);
            let (count, last) = later.map_err(|error| of_replay(&error))?;
            if let Some(last) = last {
                let value = self.logged_text(&place, here, &last.new);
                return Ok(Some(Later {
                    up_to: here.seq,
                    steps: here.steps,
                    count: Some(count),
                    last: Change::of_write(last, here.tid, None, value),
                }));
            }
        }
        let mut tracked = self.tracked_at(expression, here)?;
        if tracked.scope() != &HistoryScope::Everywhere {
            return Ok(None);
        }
        let end = self.end_position()?;
        let last = tracked.last_change_up_to(&self.timeline, (end.seq, end.tid), is_interrupted);
        let last = last.map_err(|error| of_replay(&error))?;
        let later = last.filter(|last| last.change.seq > here.seq);
        later
            .map(|last| {
                Ok(Later {
                    up_to: here.seq,
                    steps: here.steps,
                    count: None,
                    last: self.described(last.change)?,
                })
            })
            .transpose()
    }
}
