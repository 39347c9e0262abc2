//! Backtraces at recorded moments: by unwinding as far as registers and memory are known, and from there by the
//! recorded calls.
//!
//! A recorded call gives the place of its frame and its return address, so unwinding can restart at its caller. Frames
//! between two such calls that have no record of their own may be missing; the answer says where.

use debuginfo::{
    AddressSpace, Backtrace, Cause, Frame, FrameRegisters, Register, Unknown, backtrace,
};

use crate::calls::CallHead;
use crate::error::Result;
use crate::machine::StateMachine;
use crate::state::State;

/// Frames of a recorded moment.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The frames, the innermost first, and why they end.
    pub backtrace: Backtrace,
    /// Frames before which others may be missing.
    pub gaps: Vec<usize>,
}

impl Trace {
    /// Makes a backtrace of the innermost frame alone.
    pub(crate) fn of_one(frame: Frame) -> Trace {
        Trace {
            backtrace: Backtrace {
                frames: vec![frame],
                end: Some(Unknown::limit(1)),
            },
            gaps: Vec::new(),
        }
    }
}

impl State<'_> {
    /// Finds the thread's frames, at most `limit`.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn backtrace(&self, space: &AddressSpace, limit: usize) -> Result<Trace> {
        if self.timeline.has_every_instruction() {
            let found = backtrace(space, &StateMachine::new(self, space), limit);
            return Ok(Trace {
                backtrace: Backtrace {
                    end: found.end.map(|why| self.told_of_module(&found.frames, why)),
                    frames: found.frames,
                },
                gaps: Vec::new(),
            });
        }
        let mut trace = Trace::default();
        let mut next = self.timeline.innermost(self.tid, self.seq)?;
        let strict = StateMachine::strict(self, space);
        let mut end = match self.register(Register::RIP).is_known() {
            true => {
                let mut found = backtrace(space, &strict, limit);
                // The innermost frame may show stale values as such; finding its caller must not depend on them.
                if let Some(first) = found.frames.first() {
                    let inlined = found.frames.iter().take_while(|frame| frame.inlined);
                    let same = inlined.count() + 1;
                    let pc = first.pc;
                    let full = StateMachine::new(self, space);
                    let registers = FrameRegisters::innermost(&full);
                    for frame in found.frames.iter_mut().take(same) {
                        debug_assert_eq!(frame.pc, pc);
                        frame.registers = registers.clone();
                    }
                }
                trace.backtrace.frames = found.frames;
                found.end
            }
            false => match self.gone()? {
                Some(reason) => Some(Unknown::because(reason.to_string())),
                None => match self.not_left(next)? {
                    Some(call) => {
                        let end = self.resume_behind(space, &call, limit, &mut trace)?;
                        next = self.timeline.parent(&call)?;
                        end
                    }
                    None => Some(Unknown::because(
                        "no recorded call is open, and registers are not known",
                    )),
                },
            },
        };
        // If unwinding ends early, continue at the next recorded call further out: it is known to be open.
        while let Some(why) = &end
            && trace.backtrace.frames.len() < limit
            && why.cause != Cause::Limit
        {
            let beyond = self.beyond(next, &trace.backtrace.frames)?;
            let Some(call) = self.not_left(beyond)? else {
                break;
            };
            trace.gaps.push(trace.backtrace.frames.len());
            end = self.resume_behind(space, &call, limit, &mut trace)?;
            next = self.timeline.parent(&call)?;
        }
        trace.backtrace.frames.truncate(limit);
        trace.backtrace.end = end.map(|why| self.told_of_module(&trace.backtrace.frames, why));
        Ok(trace)
    }

    /// The reason why the frames end: the last one may lie in a module whose file cannot be used.
    fn told_of_module(&self, frames: &[Frame], why: Unknown) -> Unknown {
        if why.cause == Cause::Limit {
            return why;
        }
        let last = frames.last().filter(|frame| frame.pc_is_known);
        let absent = last.and_then(|frame| self.timeline.modules.why_absent(frame.pc, self.seq));
        absent.map_or(why, Unknown::because)
    }

    /// The innermost open call from `next` on that lies further out than all frames so far.
    fn beyond(&self, next: Option<CallHead>, frames: &[Frame]) -> Result<Option<CallHead>> {
        let reached = frames.iter().rev().find_map(|frame| {
            let sp = frame.registers.get(Register::RSP).map(|(sp, _)| sp);
            frame.cfa.or(sp.ok())
        });
        let mut call = next;
        while let Some(head) = call {
            // A frame's address is the one above its slot.
            if reached.is_none_or(|reached| head.slot >= reached) {
                return Ok(Some(head));
            }
            call = self.timeline.parent(&head)?;
        }
        Ok(None)
    }

    /// Adds the frame of an open call of which only the function is known, and the frames around it.
    fn resume_behind(
        &self,
        space: &AddressSpace,
        call: &CallHead,
        limit: usize,
        trace: &mut Trace,
    ) -> Result<Option<Unknown>> {
        trace.backtrace.frames.push(self.frame_of(call));
        let room = limit.saturating_sub(trace.backtrace.frames.len());
        let address = self.timeline.return_address(call)?;
        let Some(address) = address else {
            return Ok(Some(Unknown::because("where it returns to is not known")));
        };
        if room == 0 {
            return Ok(Some(Unknown::limit(limit)));
        }
        let sp = call.slot.wrapping_add(8);
        let machine = StateMachine::returned(self, space, address, sp);
        let found = debuginfo::backtrace_of_caller(space, &machine, room);
        trace.backtrace.frames.extend(found.frames);
        Ok(found.end)
    }

    /// The frame of a call of which only the function is known.
    pub(crate) fn frame_of(&self, call: &CallHead) -> Frame {
        let function = self.timeline.function(call.function);
        let entry = self.timeline.entry_of(call.function, self.seq);
        let address = entry.unwrap_or(0);
        Frame {
            pc: address,
            lookup_pc: address,
            pc_is_known: false,
            cfa: Some(call.slot.wrapping_add(8)),
            registers: FrameRegisters::none(&Unknown::because(
                "where in the function the thread was is not known at this event".to_owned(),
            )),
            function: function.map(|function| function.name.clone()),
            function_entry: entry,
            module: function.map(|function| function.module),
            source: None,
            inlined: false,
            inline_depth: 0,
            is_signal: false,
            is_tail_call: false,
        }
    }
}
