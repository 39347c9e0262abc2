//! A state with its modules and frames: it answers the same questions as a stopped thread.

use std::sync::Arc;

use debuginfo::{
    AddressSpace, Certainty, Frame, FrameRegisters, InnermostFrame, Machine, Register, Wish,
};
use rustc_hash::FxHashMap;

use crate::backtrace::Trace;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::machine::StateMachine;
use crate::state::State;
use crate::timeline::Timeline;
use crate::walk::Instant;

/// A thread at a moment.
pub struct Moment<'t> {
    /// Registers and memory.
    pub state: State<'t>,
    /// The modules.
    pub space: Arc<AddressSpace>,
    /// The frames.
    pub trace: Trace,
}

impl<'t> Moment<'t> {
    /// Makes the moment of thread `tid` just after event `seq`, with at most `limit` frames.
    ///
    /// # Errors
    /// There is no such event, or the files cannot be read.
    pub fn at(timeline: &'t Timeline, seq: u64, tid: u32, limit: usize) -> Result<Moment<'t>> {
        Self::after(timeline, seq, 0, tid, limit)
    }

    /// The same this many instructions later, counting those of all threads.
    ///
    /// # Errors
    /// As for [`Self::at`], or instructions are not recorded.
    pub fn after(
        timeline: &'t Timeline,
        seq: u64,
        steps: u64,
        tid: u32,
        limit: usize,
    ) -> Result<Moment<'t>> {
        Self::of(State::after(timeline, seq, steps, tid)?, limit)
    }

    /// The same with the frames that a moment of this thread had before, at the same place.
    ///
    /// # Errors
    /// As for [`Self::after`].
    pub fn with_trace(
        timeline: &'t Timeline,
        instant: Instant,
        tid: u32,
        trace: Trace,
    ) -> Result<Moment<'t>> {
        let state = State::after(timeline, instant.seq, instant.steps, tid)?;
        let space = timeline.modules.space(state.seq);
        Ok(Moment {
            state,
            space,
            trace,
        })
    }

    /// The same for a thread that a move has left before some of the inlined calls that begin at its place, see
    /// [`Machine::calls_to_come`].
    ///
    /// # Errors
    /// As for [`Self::after`].
    pub fn before_calls(
        timeline: &'t Timeline,
        instant: Instant,
        tid: u32,
        calls_to_come: Option<usize>,
        limit: usize,
    ) -> Result<Moment<'t>> {
        let mut state = State::after(timeline, instant.seq, instant.steps, tid)?;
        state.calls_to_come = calls_to_come;
        Self::of(state, limit)
    }

    fn of(state: State<'t>, limit: usize) -> Result<Moment<'t>> {
        let space = state.timeline.modules.space(state.seq);
        let trace = state.backtrace(&space, limit)?;
        Ok(Moment {
            state,
            space,
            trace,
        })
    }

    /// Returns the event at which the function of a frame was entered, if a recorded call is certain to have made the
    /// frame.
    #[must_use]
    pub fn entered_at(&self, frame: usize) -> Option<u64> {
        let frame = self.trace.backtrace.frames.get(frame)?;
        if frame.inlined || self.state.steps > 0 {
            return None;
        }
        let (cfa, entry) = (frame.cfa?, frame.function_entry?);
        let call = self.state.call_of_frame(&self.space, cfa, entry)?;
        Some(call.start)
    }

    /// Calls a function of the program in the thread, in a copy of the process that ends with the call; `None` if not every instruction
    /// is recorded.
    ///
    /// # Errors
    /// The program cannot be run again up to the moment.
    pub fn call(&self, call: exact::Call) -> Result<Option<exact::Called>> {
        let Some((every, position)) = self.state.every()? else {
            return Ok(None);
        };
        if every.is_over(position)? {
            let what = "the program was not recorded up to here".to_owned();
            return Err(Error::NoMove(what.into()));
        }
        let tid = self.state.tid().cast_signed();
        let called = every.at(position, move |replay| replay.call(tid, &call))?;
        Ok(Some(called))
    }

    /// Returns the machine from which its frames are read. It takes stack memory of an unrecorded function only from
    /// events after the call of that function.
    #[must_use]
    pub fn machine(&self) -> StateMachine<'_> {
        StateMachine::new(&self.state, &self.space).with_frames(&self.trace.backtrace.frames)
    }
}

/// Addresses whose frames are kept; with more, all are forgotten.
const MOST_PLACES: usize = 1 << 12;

/// The limit of failed attempts to use fewer registers at an address.
const MISSES: u32 = 4;

/// How many of a thread's registers are read before an expression is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effort {
    /// None: most expressions of global variables need none. The event is an entry.
    Nothing,
    /// The registers that the event itself shows; they locate a frame and its parameters. The event is an enter or a
    /// return.
    Shown,
}

/// Cached results about innermost frames, by address, for evaluations at many moments.
#[derive(Default)]
pub struct Places {
    space: Arc<AddressSpace>,
    /// By address, and the number of inlined calls still to come there.
    frames: FxHashMap<(u64, usize), Option<InnermostFrame>>,
    /// How often a question about a frame needed more registers, or may have.
    misses: FxHashMap<(u64, Effort), u32>,
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

    /// Evaluates at a moment with as few registers as the answer needs: finding all of them is most of the work.
    ///
    /// # Errors
    /// As [`Self::moment`].
    pub fn ask<T>(
        &mut self,
        timeline: &Timeline,
        seq: u64,
        event: Event,
        ask: impl Fn(&Moment<'_>) -> Option<T>,
    ) -> Result<Option<T>> {
        for effort in [Effort::Nothing, Effort::Shown] {
            if let Some(answer) = self.ask_with(effort, timeline, &event, &ask)? {
                return Ok(answer);
            }
        }
        Ok(ask(&self.moment(timeline, seq, event)?))
    }

    /// Evaluates at the moment of an event with only some registers read. The outer option: whether the answer does not
    /// depend on the others.
    ///
    /// # Errors
    /// As [`Self::moment`].
    pub fn ask_with<T>(
        &mut self,
        effort: Effort,
        timeline: &Timeline,
        event: &Event,
        ask: impl FnOnce(&Moment<'_>) -> Option<T>,
    ) -> Result<Option<Option<T>>> {
        let (seq, place) = match (event, effort) {
            (Event::Enter(call), _) => (call.start, timeline.entry_of(call.function, call.start)),
            (Event::Leave(call), Effort::Shown) if call.returned() => {
                (event.seq(), timeline.return_address(call)?)
            }
            _ => return Ok(None),
        };
        let (Some(tid), Some(pc)) = (event.tid(), place) else {
            return Ok(None);
        };
        let space = timeline.modules.space(seq);
        self.keep_up_with(&space);
        let misses = self.misses.get(&(pc, effort));
        if misses.is_some_and(|count| *count >= MISSES) {
            return Ok(None);
        }
        let state = State::of_event(timeline, seq, tid, event.clone())?;
        let wish = Wish::default();
        let frame = {
            let machine = StateMachine::new(&state, &space);
            let to_come = machine.calls_to_come();
            let known = self.frames.entry((pc, to_come));
            let known = known.or_insert_with(|| InnermostFrame::at(&space, pc, to_come));
            known.as_ref().and_then(|known| match effort {
                Effort::Nothing => Some(known.unread(wish.clone())),
                Effort::Shown => {
                    let read = |register| state.shown_register(register);
                    known.of(FrameRegisters::partly(read, wish.clone()))
                }
            })
        };
        let Some(frame) = frame else {
            *self.misses.entry((pc, effort)).or_default() += 1;
            return Ok(None);
        };
        let moment = Moment {
            state,
            space,
            trace: Trace::of_one(frame),
        };
        let answer = Some(ask(&moment)).filter(|answer| match effort {
            // The place of a frame depends on registers too: it may be unknown here and known there.
            Effort::Nothing => answer.is_some() && !wish.was_made(),
            Effort::Shown => !wish.was_made(),
        });
        if answer.is_none() {
            *self.misses.entry((pc, effort)).or_default() += 1;
        }
        Ok(answer)
    }

    fn keep_up_with(&mut self, space: &Arc<AddressSpace>) {
        let is_full = self.frames.len() >= MOST_PLACES;
        if !Arc::ptr_eq(&self.space, space) || is_full {
            self.frames.clear();
            self.misses.clear();
            self.space = Arc::clone(space);
        }
    }

    /// The innermost frame, if the registers alone locate it.
    fn frame(&mut self, state: &State<'_>, space: &Arc<AddressSpace>) -> Option<Frame> {
        self.keep_up_with(space);
        let machine = StateMachine::new(state, space);
        let registers = FrameRegisters::innermost(&machine);
        let (pc, Certainty::Known) = registers.get(Register::RIP).ok()? else {
            return None;
        };
        let to_come = machine.calls_to_come();
        let known = self.frames.entry((pc, to_come));
        let known = known.or_insert_with(|| InnermostFrame::at(space, pc, to_come));
        known.as_ref()?.of(registers)
    }
}

impl Timeline {
    /// Returns the default thread of a moment: the event's, or else the one seen last before it.
    ///
    /// # Errors
    /// [`Error::NoEvent`], [`Error::NoThread`], or the files cannot be read.
    pub fn thread_at(&self, seq: u64) -> Result<u32> {
        self.thread_after(seq, 0)
    }

    /// The same this many instructions later: the thread that executes the next one.
    ///
    /// # Errors
    /// As for [`Self::thread_at`], or instructions cannot be run.
    pub fn thread_after(&self, seq: u64, steps: u64) -> Result<u32> {
        if steps > 0 {
            let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
            return every.running(self.position(seq)? + steps);
        }
        if let Some(tid) = self.event(seq)?.tid() {
            return Ok(tid);
        }
        if let Some(every) = &self.every {
            return every.running(self.position(seq)?);
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
