//! A state with its modules and frames: everything that is asked about a stopped thread can be asked about it.

use std::sync::Arc;

use debuginfo::Space;

use crate::backtrace::Trace;
use crate::error::{Error, Result};
use crate::state::State;
use crate::timeline::Timeline;

/// A thread at a moment.
pub struct Moment<'t> {
    /// Registers and memory.
    pub state: State<'t>,
    /// The modules.
    pub space: Arc<Space>,
    /// The frames.
    pub trace: Trace,
}

impl<'t> Moment<'t> {
    /// Makes the moment of thread `tid` just after event `seq`, with at most `limit` frames.
    ///
    /// # Errors
    /// There is no such event, or the files cannot be read.
    pub fn at(timeline: &'t Timeline, seq: u64, tid: u32, limit: usize) -> Result<Moment<'t>> {
        let state = State::new(timeline, seq, tid)?;
        let space = timeline.modules.space(seq);
        let trace = state.backtrace(&space, limit)?;
        Ok(Moment {
            state,
            space,
            trace,
        })
    }
}

impl Timeline {
    /// Returns the thread that a moment is about if nobody says: the event's, or else the one that was seen last before it.
    ///
    /// # Errors
    /// [`Error::NoEvent`], [`Error::NoThread`], or the files cannot be read.
    pub fn thread_at(&self, seq: u64) -> Result<u32> {
        if let Some(tid) = self.event(seq)?.tid() {
            return Ok(tid);
        }
        let mut before = seq;
        for _ in 0..1000 {
            let Some(earlier) = before.checked_sub(1) else {
                break;
            };
            before = earlier;
            if let Some(tid) = self.event(before)?.tid() {
                return Ok(tid);
            }
        }
        let threads = self.threads()?;
        let first = threads.first().map(|thread| thread.tid);
        first.ok_or(Error::NoThread {
            tid: 0,
            known: "none".to_owned(),
        })
    }
}
