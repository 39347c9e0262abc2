//! A state with its modules and frames: everything that is asked about a stopped thread can be asked about it.

use std::collections::HashMap;
use std::sync::Arc;

use debuginfo::{
    Backtrace, Certainty, Frame, FrameRegisters, InnermostFrame, Machine, Register, Space, Unknown,
};

use crate::backtrace::Trace;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::machine::StateMachine;
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

/// Addresses whose frames are kept; with more, all are forgotten.
const MOST_PLACES: usize = 1 << 12;

/// What was found out about innermost frames, by address, so that it is found out once where many moments are looked at.
#[derive(Default)]
pub struct Places {
    space: Arc<Space>,
    /// By address, and whether a function is entered there.
    frames: HashMap<(u64, bool), Option<InnermostFrame>>,
}

impl Places {
    /// Makes the moment of the thread that `event` with number `seq` is about, with its innermost frame: the same as
    /// [`Moment::at`] with a limit of one.
    ///
    /// # Errors
    /// As there.
    pub fn moment<'t>(
        &mut self,
        timeline: &'t Timeline,
        seq: u64,
        event: Event,
    ) -> Result<Moment<'t>> {
        let tid = match event.tid() {
            Some(tid) => tid,
            None => timeline.thread_at(seq)?,
        };
        let state = State::of_event(timeline, seq, tid, event)?;
        let space = timeline.modules.space(seq);
        let trace = match self.frame(&state, &space) {
            Some(frame) => Trace {
                backtrace: Backtrace {
                    frames: vec![frame],
                    end: Some(Unknown::because("the limit of 1 frames was reached")),
                },
                gaps: Vec::new(),
            },
            None => state.backtrace(&space, 1)?,
        };
        Ok(Moment {
            state,
            space,
            trace,
        })
    }

    /// The innermost frame, if the registers alone tell where it lies.
    fn frame(&mut self, state: &State<'_>, space: &Arc<Space>) -> Option<Frame> {
        if !Arc::ptr_eq(&self.space, space) || self.frames.len() >= MOST_PLACES {
            self.frames.clear();
            self.space = Arc::clone(space);
        }
        let machine = StateMachine::new(state, space);
        let registers = FrameRegisters::innermost(&machine);
        let (pc, Certainty::Known) = registers.get(Register::RIP).ok()? else {
            return None;
        };
        let to_come = machine.calls_to_come();
        let known = self.frames.entry((pc, to_come > 0));
        let known = known.or_insert_with(|| InnermostFrame::at(space, pc, to_come));
        known.as_ref()?.of(registers)
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
