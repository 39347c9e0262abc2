//! Two recordings side by side after they were compared: which moment of the second one belongs to a moment of the first.
//!
//! A moment belongs to a call, and the call to the one that it was aligned with. The walk to it begins at the last chunk of
//! rows before it up to which both threads are equal.

use std::sync::Arc;

use replay::{CallHead, Event};

use super::Asked;
use super::digest::Digest;
use super::identity::Identities;
use super::origins::Origins;
use super::rows::Row;
use super::side::{Common, Side};
use super::threads::Matched;
use super::walk::{self, Told};
use crate::error::Result;
use crate::overview::told;
use crate::session::Session;

/// The threads of both recordings that belong together.
#[derive(Debug)]
pub struct Twins {
    pairs: Vec<Pair>,
    origins: (Arc<Origins>, Arc<Origins>),
}

/// A thread of both.
#[derive(Debug)]
struct Pair {
    tids: (u32, u32),
    digests: (Digest, Digest),
}

/// A moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadEvent {
    /// The event.
    pub seq: u64,
    /// Its thread.
    pub tid: u32,
}

/// The moment that belongs to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twin {
    /// In the call that is the same one.
    Same(ThreadEvent),
    /// The call is in the first recording only: where the second one was then.
    Before(ThreadEvent),
}

impl Twin {
    /// Returns the moment.
    #[must_use]
    pub fn place(&self) -> ThreadEvent {
        match self {
            Twin::Same(place) | Twin::Before(place) => *place,
        }
    }
}

/// Looks for the row that belongs to a call of the first recording.
struct Finder {
    start: u64,
    last: Option<Row>,
    found: Option<Row>,
    is_done: bool,
}

impl Finder {
    fn pair(&mut self, a: &Row, b: &Row) {
        if a.start == self.start {
            (self.found, self.is_done) = (Some(*b), true);
        }
        if !self.is_done {
            self.last = Some(*b);
        }
    }
}

impl Told for Finder {
    fn same(&mut self, a: &[Row], b: &[Row]) {
        a.iter().zip(b).for_each(|(a, b)| self.pair(a, b));
    }

    fn differ(&mut self, _: Option<&Row>, _: Option<&Row>, _: bool) {}

    fn changed(&mut self, a: &Row, b: &Row) {
        self.pair(a, b);
    }

    fn only(&mut self, row: &Row, is_a: bool) {
        self.is_done |= is_a && row.start == self.start;
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

/// Where a row ends; where it begins, if it had not ended.
pub fn end_of(row: &Row) -> u64 {
    match row.end {
        u64::MAX => row.start,
        end => end,
    }
}

impl Twins {
    /// Keeps what a comparison matched.
    pub(super) fn of(matched: Matched, origins: (Arc<Origins>, Arc<Origins>)) -> Twins {
        let pair = |(a, b, _): (super::threads::Thread, super::threads::Thread, u32)| Pair {
            tids: (a.tid, b.tid),
            digests: (a.digest, b.digest),
        };
        Twins {
            pairs: matched.pairs.into_iter().map(pair).collect(),
            origins,
        }
    }

    /// Finds the moment of the second recording that belongs to a moment of the first; `None` if no call that both can
    /// have was open then, or nothing of its thread had happened in the second one.
    ///
    /// # Errors
    /// A recording cannot be read; [`crate::Error::Stopped`].
    pub fn twin(
        &self,
        (a, b): (&Session, &Session),
        asked: &Asked,
        at: ThreadEvent,
    ) -> Result<Option<Twin>> {
        let Some(pair) = self.pairs.iter().find(|pair| pair.tids.0 == at.tid) else {
            return Ok(None);
        };
        let last = |session: &Session| session.extent().events.saturating_sub(1);
        // The beginnings belong together, and so do the ends.
        let end = match at.seq {
            0 => Some(0),
            seq if seq == last(a) => Some(last(b)),
            _ => None,
        };
        if let Some(seq) = end {
            let tid = pair.tids.1;
            return Ok(Some(Twin::Same(ThreadEvent { seq, tid })));
        }
        let identities = Identities::of(a.definitions(), b.definitions());
        let common = Common::new((a, b), &identities, asked)?;
        let mut own = Side::new(a, b, &common, true)?;
        let mut other = Side::new(b, a, &common, false)?;
        own.set_origins(Arc::clone(&self.origins.0));
        other.set_origins(Arc::clone(&self.origins.1));
        let Some((call, is_end)) = compared_at(&own, at)? else {
            return Ok(None);
        };
        let (of_a, of_b) = (&pair.digests.0, &pair.digests.1);
        let (from_a, from_b) = of_a.equal_up_to(of_b, call.place().unwrap_or(u64::MAX));
        let mut rows_a = own.rows(pair.tids.0, from_a);
        let mut rows_b = other.rows(pair.tids.1, from_b);
        let mut finder = Finder {
            start: call.start,
            last: None,
            found: None,
            is_done: false,
        };
        walk::walk(&mut rows_a, &mut rows_b, &mut finder)?;
        let place = |seq| ThreadEvent {
            seq,
            tid: pair.tids.1,
        };
        Ok(match (finder.found, finder.last) {
            (Some(row), _) if is_end => Some(Twin::Same(place(end_of(&row)))),
            (Some(row), _) => Some(Twin::Same(place(row.start))),
            (None, Some(row)) => Some(Twin::Before(place(end_of(&row)))),
            (None, None) => None,
        })
    }
}

/// Returns the innermost call at a moment that is compared, and whether the moment is its end.
fn compared_at(side: &Side<'_>, at: ThreadEvent) -> Result<Option<(CallHead, bool)>> {
    let Some(timeline) = side.source.timeline() else {
        return Ok(None);
    };
    let is_own = |call: &CallHead| call.tid == Some(at.tid);
    let (mut call, mut is_end) = match told(timeline.event(at.seq))? {
        Event::Enter(call) if is_own(&call) => (Some(call), false),
        Event::Leave(call) if is_own(&call) => (Some(call), true),
        _ => (told(timeline.innermost(at.tid, at.seq))?, false),
    };
    while let Some(inner) = call {
        if side.compared(inner.function).is_some() {
            return Ok(Some((inner, is_end)));
        }
        call = told(timeline.parent(&inner))?;
        is_end = false;
    }
    Ok(None)
}
