//! What a watchpoint watches, and whether its variable still exists.

use debuginfo::{Frame, Type};
use recorder::live::{ProbeId, Stop, Tid, WatchedCall};
use replay::returns_to;

use super::LiveSession;
use crate::inspect::{View, frame_with};

/// Most frames that are searched for that of the variable.
const FRAMES: usize = 4096;

/// A watched place.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its type: stops report values, not bytes.
    pub ty: Type,
    /// The expression, as written.
    pub expression: String,
    /// The frame that it is in, if it is on a thread's stack.
    pub frame: Option<WatchedFrame>,
}

/// A frame, for as long as its function has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedFrame {
    tid: Tid,
    cfa: u64,
    entry: Option<u64>,
    /// Where its function returns, if its caller is known.
    returns_to: Option<u64>,
}

impl Watched {
    /// Returns the same in a copy of the program: a process with one thread, in which the frame is the same.
    pub(super) fn in_copy(&self, tid: Tid) -> Watched {
        Watched {
            frame: self.frame.map(|frame| WatchedFrame { tid, ..frame }),
            ..self.clone()
        }
    }
}

impl WatchedFrame {
    /// Returns the selected frame of a view, or the one that it is inlined into, if the place at `address` belongs to it.
    pub fn around(address: u64, view: &View<'_>, tid: Tid) -> Option<WatchedFrame> {
        let mut outer = view.frames.get(view.frame..)?.iter();
        let own = view.frame + outer.position(|frame| !frame.inlined)?;
        let frame = &view.frames[own];
        let cfa = frame.cfa?;
        (frame_with(view, address)? == own).then_some(WatchedFrame {
            tid,
            cfa,
            entry: frame.function_entry,
            returns_to: returns_to(view.frames, own),
        })
    }

    fn call(self) -> Option<WatchedCall> {
        Some(WatchedCall {
            tid: self.tid,
            cfa: self.cfa,
            returns_to: self.returns_to?,
        })
    }
}

impl LiveSession {
    /// Stores what a watchpoint watches, which ends with the call whose variable it is.
    pub fn remember_watched(&self, probe: ProbeId, watched: Watched) {
        if let Some(call) = watched.frame.and_then(WatchedFrame::call) {
            // Where no trap can be set, the stack tells at the next access.
            _ = self.live.watch_until_return(probe, call);
        }
        self.watched().insert(probe, watched);
    }

    /// Returns whether the function whose variable a watchpoint watches has returned, according to the stack of the thread
    /// that stopped there.
    pub(super) fn has_left(&self, watched: &Watched, stop: &Stop) -> bool {
        let Some(frame) = watched.frame.filter(|frame| frame.tid == stop.tid) else {
            return false;
        };
        let Ok(moment) = self.moment_of(stop.clone(), FRAMES) else {
            return false;
        };
        let frames = &moment.backtrace.frames;
        let is_it =
            |found: &Frame| found.cfa == Some(frame.cfa) && found.function_entry == frame.entry;
        let is_whole = moment.backtrace.end.is_none();
        // A frame further out shows that the stack was followed beyond the place.
        let is_beyond = frames
            .iter()
            .any(|found| found.cfa.is_some_and(|cfa| cfa > frame.cfa));
        (is_whole || is_beyond) && !frames.iter().any(is_it)
    }
}
