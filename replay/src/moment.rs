//! A state with its modules and frames: everything that is asked about a stopped thread can be asked about it.

use std::collections::HashMap;
use std::sync::Arc;

use debuginfo::{Certainty, Frame, FrameRegisters, InnermostFrame, Machine, Register, Space, Wish};

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

/// After so many vain attempts to do without registers at an address, no more are made.
const MISSES: u32 = 4;

/// What was found out about innermost frames, by address, so that it is found out once where many moments are looked at.
#[derive(Default)]
pub struct Places {
    space: Arc<Space>,
    /// By address, and whether a function is entered there.
    frames: HashMap<(u64, bool), Option<InnermostFrame>>,
    /// Where what was asked about frames needed registers, or may have: how often.
    misses: HashMap<u64, u32>,
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
            Some(frame) => Trace::of_one(frame),
            None => state.backtrace(&space, 1)?,
        };
        Ok(Moment {
            state,
            space,
            trace,
        })
    }

    /// Asks about the moment of a call's entry without reading any register: most expressions of global variables need none,
    /// and to find them is half of the work. `None`: it is no entry, or the answer may depend on registers.
    ///
    /// # Errors
    /// As [`Self::moment`].
    pub fn without_registers<T>(
        &mut self,
        timeline: &Timeline,
        seq: u64,
        event: &Event,
        ask: impl FnOnce(&Moment<'_>) -> Option<T>,
    ) -> Result<Option<T>> {
        let Event::Enter(call) = event else {
            return Ok(None);
        };
        let (Some(tid), Some(pc)) = (call.tid, timeline.entry_of(call.function, seq)) else {
            return Ok(None);
        };
        let space = timeline.modules.space(seq);
        self.keep_up_with(&space);
        if self.misses.get(&pc).is_some_and(|count| *count >= MISSES) {
            return Ok(None);
        }
        let state = State::of_event(timeline, seq, tid, Event::Enter(*call))?;
        if state.gone()?.is_some() {
            return Ok(None);
        }
        // As [`StateMachine`] says of entries.
        let known = self.frames.entry((pc, true));
        let known = known.or_insert_with(|| InnermostFrame::at(&space, pc, usize::MAX));
        let wish = Wish::default();
        let Some(frame) = known.as_ref().map(|known| known.unread(wish.clone())) else {
            return Ok(None);
        };
        let moment = Moment {
            state,
            space,
            trace: Trace::of_one(frame),
        };
        let answer = ask(&moment);
        // Where a frame lies follows from registers too: what is not known here may be known there.
        let answer = answer.filter(|_| !wish.was_made());
        if answer.is_none() {
            *self.misses.entry(pc).or_default() += 1;
        }
        Ok(answer)
    }

    fn keep_up_with(&mut self, space: &Arc<Space>) {
        let is_full = self.frames.len() >= MOST_PLACES;
        if !Arc::ptr_eq(&self.space, space) || is_full {
            self.frames.clear();
            self.misses.clear();
            self.space = Arc::clone(space);
        }
    }

    /// The innermost frame, if the registers alone tell where it lies.
    fn frame(&mut self, state: &State<'_>, space: &Arc<Space>) -> Option<Frame> {
        self.keep_up_with(space);
        let machine = StateMachine::new(state, space);
        let registers = FrameRegisters::innermost(&machine);
        let (pc, Certainty::Known) = registers.get(Register::RIP).ok()? else {
            return None;
        };
        let known = self.frames.entry((pc, machine.is_at_call()));
        let known = known.or_insert_with(|| InnermostFrame::at(space, pc, machine.calls_to_come()));
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
