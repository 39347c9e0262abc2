//! From when to when a call runs, in a recording of every instruction. Both are looked for when they matter: each takes a run
//! of the program.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use debuginfo::short_name;
use replay::{Activation, CallEnd, Instant};

use super::writes::Owner;
use super::{Past, Position, of_replay};
use crate::protocol::Failure;
use crate::session::hex;

/// From when to when a call runs.
#[derive(Clone)]
pub(super) struct Lifetime {
    /// The short name of its function.
    pub function: String,
    pub tid: u32,
    frame: Activation,
    /// A position, in instructions since the start, at which it is open.
    open: u64,
    edges: Arc<Mutex<Edges>>,
}

/// What is known of its beginning and its end.
#[derive(Clone, Copy)]
struct Edges {
    begins: Edge,
    ends: Edge,
}

#[derive(Clone, Copy)]
enum Edge {
    At(u64),
    /// Beyond this position, at which the call is open; it was not looked for there.
    Beyond(u64),
    /// The recording does not show it.
    NotShown,
}

impl Edge {
    fn position(self) -> Option<u64> {
        match self {
            Edge::At(position) => Some(position),
            Edge::Beyond(_) | Edge::NotShown => None,
        }
    }
}

impl Lifetime {
    fn edges(&self) -> MutexGuard<'_, Edges> {
        self.edges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether its end is known and not after a position.
    pub fn is_known_to_end_by(&self, position: u64) -> bool {
        let ends = self.edges().ends.position();
        ends.is_some_and(|ends| ends <= position)
    }

    /// Returns whether its beginning is known and not before a position.
    pub fn is_known_to_begin_from(&self, position: u64) -> bool {
        let begins = self.edges().begins.position();
        begins.is_some_and(|begins| begins >= position)
    }
}

impl Past {
    /// The life of the call that has a frame at a position.
    pub(super) fn lifetime(&self, here: Position, owner: &Owner) -> Result<Lifetime, Failure> {
        let open = self.executed_before(here.instant())?;
        let edges = match self.call_of(here, owner)? {
            Some(call) => Edges {
                begins: Edge::At(self.executed_before(Instant::at(call.start))?),
                ends: match call.end.filter(|_| !call.open_at_end) {
                    Some(end) => Edge::At(self.executed_before(Instant::at(end))?),
                    None => Edge::NotShown,
                },
            },
            None => Edges {
                begins: Edge::Beyond(open),
                ends: match owner.back {
                    Some(_) => Edge::Beyond(open),
                    None => Edge::NotShown,
                },
            },
        };
        let function = owner.function.as_deref().map(short_name);
        Ok(Lifetime {
            function: function.unwrap_or_else(|| hex(owner.entry)),
            tid: here.tid,
            frame: owner.activation(),
            open,
            edges: Arc::new(Mutex::new(edges)),
        })
    }

    /// The first position from `here` on at which a call is open; `None` if it has ended.
    pub(super) fn open_from(&self, call: &Lifetime, here: u64) -> Result<Option<u64>, Failure> {
        if self.end_by(call, here)?.is_some() {
            return Ok(None);
        }
        let begins = match here < call.open {
            true => self.begin(call)?,
            false => None,
        };
        Ok(Some(here.max(begins.unwrap_or(0))))
    }

    /// When a call began, if the recording shows that.
    pub(super) fn begin(&self, call: &Lifetime) -> Result<Option<u64>, Failure> {
        let mut begins = call.edges().begins;
        if let Edge::Beyond(open) = begins {
            begins = self.find_begin(call, open)?;
            call.edges().begins = begins;
        }
        Ok(begins.position())
    }

    fn find_begin(&self, call: &Lifetime, open: u64) -> Result<Edge, Failure> {
        let Some(entry) = call.frame.entry else {
            return Ok(Edge::NotShown);
        };
        let (from, frame) = (self.instant_after(open)?, (entry, call.frame.cfa));
        let begins = self.timeline.entered(from, call.tid, frame);
        match begins.map_err(|error| of_replay(&error))? {
            Some(begins) => Ok(Edge::At(self.executed_before(begins)?)),
            None => Ok(Edge::NotShown),
        }
    }

    /// When a call ended, if that is not after position `limit`.
    pub(super) fn end_by(&self, call: &Lifetime, limit: u64) -> Result<Option<u64>, Failure> {
        let mut ends = call.edges().ends;
        if let Edge::Beyond(open) = ends
            && open < limit
        {
            ends = self.find_end(call, open, limit)?;
            call.edges().ends = ends;
        }
        Ok(ends.position().filter(|end| *end <= limit))
    }

    fn find_end(&self, call: &Lifetime, open: u64, limit: u64) -> Result<Edge, Failure> {
        let from = self.instant_after(open)?;
        let end = self
            .timeline
            .left(from, call.tid, call.frame, limit.saturating_add(1));
        match end {
            Ok(CallEnd::At(end)) => Ok(Edge::At(self.executed_before(end)?)),
            Ok(CallEnd::Later) => Ok(Edge::Beyond(limit)),
            // Its thread ended in it.
            Ok(CallEnd::NotShown) | Err(replay::Error::NoMove(_)) => Ok(Edge::NotShown),
            Err(error) => Err(of_replay(&error)),
        }
    }

    /// How many instructions were executed before a moment.
    pub(super) fn executed_before(&self, instant: Instant) -> Result<u64, Failure> {
        let position = self.timeline.position_of(instant);
        position.map_err(|error| of_replay(&error))
    }

    /// The moment after so many instructions.
    pub(super) fn instant_after(&self, position: u64) -> Result<Instant, Failure> {
        let instant = self.timeline.instant(position);
        instant.map_err(|error| of_replay(&error))
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
