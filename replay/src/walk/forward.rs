//! Moves forwards.

use debuginfo::{LineGoal, Look};

use super::leap::Leap;
use super::{Activation, Walk, Walked, Walker};

/// Most bytes of an instruction.
const LONGEST: u64 = 15;

/// This many instructions of a line are single-stepped before the program runs freely.
const SINGLE: u32 = 300;

/// A call that an instruction has made.
pub(super) struct Called {
    /// Where it continues afterwards.
    pub back: u64,
    /// The stack pointer before it.
    pub sp: u64,
    /// The stack pointer where the called function begins.
    pub inner_sp: u64,
    /// What was called.
    pub target: u64,
}

/// How a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It has returned.
    Returned,
    /// An exception or longjmp has left it: the thread goes on in its caller, or further out.
    Unwound,
    /// It has not ended: the recording has.
    Not,
}

impl Walker<'_> {
    pub(super) fn forward(&mut self, walk: Walk) -> exact::Result<Walked> {
        let to_come = std::mem::take(&mut self.calls_to_come);
        let done = match walk {
            Walk::Instructions(count) => self.instructions(count)?,
            Walk::InstructionOver => self.instruction_over()?,
            Walk::Line => self.line(to_come, true)?,
            Walk::LineOver => self.line(to_come, false)?,
            Walk::Call => self.finish()?,
            Walk::CallOf(frame) => self.leave(&frame)? != Left::Not,
        };
        if done {
            return Ok(Walked::Done);
        }
        self.stand_at_its_end()?;
        Ok(Walked::AtTheEdge)
    }

    /// Goes to the last instruction of the thread if it has ended on the way.
    fn stand_at_its_end(&mut self) -> exact::Result<()> {
        if self.thread().is_some() {
            return Ok(());
        }
        let last = self.schedule.iter().rposition(|(_, tid)| *tid == self.tid);
        let Some(last) = last else { return Ok(()) };
        let next = self.schedule.get(last + 1);
        let end = next.map_or(self.end, |(at, _)| (*at).min(self.end));
        self.replay.goto(end.saturating_sub(1))
    }

    /// Executes an instruction, and returns the call if it made one.
    pub(super) fn instruction_or_call(&mut self) -> exact::Result<Option<Option<Called>>> {
        let Some((rip, sp)) = self.thread().map(|thread| (thread.rip(), thread.rsp())) else {
            return Ok(None);
        };
        if !self.instruction()? {
            return Ok(None);
        }
        let Some(now) = self.thread() else {
            return Ok(None);
        };
        let behind = rip + 1..=rip + LONGEST;
        let has_pushed = now.rsp() == sp.wrapping_sub(8);
        let back = now.word(now.rsp()).filter(|back| behind.contains(back));
        let back = back.filter(|_| has_pushed && !behind.contains(&now.rip()));
        Ok(Some(back.map(|back| Called {
            back,
            sp,
            inner_sp: now.rsp(),
            target: now.rip(),
        })))
    }

    /// Runs until a call has ended.
    pub(super) fn out_of(&mut self, called: &Called) -> exact::Result<Left> {
        self.run_out(called.back, called.sp)
    }

    /// Runs until the thread is at `back`, or elsewhere because frames were left without a return, with all frames below
    /// `sp` gone.
    fn run_out(&mut self, back: u64, sp: u64) -> exact::Result<Left> {
        let mut stops = self.leavers();
        stops.push(back);
        // A jump that leaves frames has set the stack pointer already.
        if !self.run_to(&stops, |thread| thread.rsp() >= sp)? {
            return Ok(Left::Not);
        }
        if self.rip() == back {
            return Ok(Left::Returned);
        }
        Ok(match self.instruction()? {
            true => Left::Unwound,
            false => Left::Not,
        })
    }

    /// Where frames are left without a return.
    pub(super) fn leavers(&self) -> Vec<u64> {
        let modules = self.space.modules().iter();
        let of_module = modules.map(|module| {
            let leavers = module.module.frame_leavers().iter();
            leavers.map(|leaver| module.address(leaver.jump))
        });
        of_module.flatten().collect()
    }

    fn instruction_over(&mut self) -> exact::Result<bool> {
        match self.instruction_or_call()? {
            None => Ok(false),
            Some(None) => Ok(true),
            Some(Some(called)) => Ok(self.out_of(&called)? != Left::Not),
        }
    }

    fn finish(&mut self) -> exact::Result<bool> {
        match self.activation() {
            Some(frame) => Ok(self.leave(&frame)? != Left::Not),
            None => Ok(false),
        }
    }

    /// Runs until a function has ended.
    pub(super) fn leave(&mut self, frame: &Activation) -> exact::Result<Left> {
        let Some(back) = frame.back else {
            let end = self.end;
            self.replay.goto(end)?;
            return Ok(Left::Not);
        };
        self.run_out(back, frame.cfa)
    }

    /// Where a user would stop in a called function, if its lines are known.
    pub(super) fn place_in(&self, target: u64) -> Option<u64> {
        let target = self.behind_stub(target)?;
        if self.space.at(target)?.is_system {
            return None;
        }
        let function = self.space.function_at(target)?;
        let has_lines = self.space.line_at(function.after_prologue).is_some();
        (function.entry == target && has_lines).then_some(function.after_prologue)
    }

    /// The function that an entry of the procedure linkage table jumps to.
    fn behind_stub(&self, target: u64) -> Option<u64> {
        let Some(module) = self.space.at(target) else {
            return Some(target);
        };
        let svma = module.svma(target);
        let mut stubs = module.module.plt_entries().iter();
        let stub = stubs.find(|stub| stub.svma <= svma && svma.0 < stub.svma.0 + stub.size);
        let Some(stub) = stub else {
            return Some(target);
        };
        let functions = self.space.functions_matching(&stub.symbol);
        functions.first().map(|function| function.entry)
    }

    /// Goes to another line. `to_come`: as many of the inlined calls that begin here are still to come.
    fn line(&mut self, to_come: usize, into: bool) -> exact::Result<bool> {
        let to_come = to_come.min(self.space.calls_beginning(self.rip()));
        if into && to_come > 0 {
            // No instruction belongs to the call itself.
            self.calls_to_come = to_come - 1;
            return Ok(true);
        }
        let mut frame = self.activation();
        let mut goal = LineGoal::of(&self.space, self.rip(), to_come, into);
        let mut single = 0;
        loop {
            single += 1;
            let leap = match &frame {
                Some(frame) if single > SINGLE => self.leap(&goal, frame, into)?,
                _ => Leap::No,
            };
            match leap {
                Leap::End => return Ok(false),
                Leap::BeforeLeaving | Leap::No => {}
                Leap::Left => {
                    if let Some(is_there) = self.judge_line(&mut frame, &mut goal, into)? {
                        return Ok(is_there);
                    }
                    continue;
                }
            }
            let Some(called) = self.instruction_or_call()? else {
                return Ok(false);
            };
            if let Some(called) = called {
                let sp = called.inner_sp;
                if into && let Some(place) = self.place_in(called.target) {
                    return self.enter(place, sp);
                }
                match self.out_of(&called)? {
                    Left::Not => return Ok(false),
                    Left::Returned => {}
                    Left::Unwound if self.is_further_out(frame.as_ref()) => {
                        frame = self.activation();
                        goal = LineGoal::of_caller(&self.space, self.rip(), into);
                        single = 0;
                        if !self.leave_what_has_no_lines(&mut frame, &mut goal, into)? {
                            return Ok(false);
                        }
                    }
                    // The function that called it goes on where it catches the exception.
                    Left::Unwound => {}
                }
            }
            if let Some(is_there) = self.judge_line(&mut frame, &mut goal, into)? {
                return Ok(is_there);
            }
        }
    }

    /// Returns whether the thread has come to another line, or to the end; `None`: not yet.
    fn judge_line(
        &mut self,
        frame: &mut Option<Activation>,
        goal: &mut LineGoal,
        into: bool,
    ) -> exact::Result<Option<bool>> {
        let has_lines = self.space.step_line(self.rip()).is_some();
        let has_returned = self.has_returned(frame.as_ref());
        if !has_lines && !has_returned {
            // A jump into code without lines, which returns to the caller.
            match frame {
                Some(frame) if self.leave(frame)? != Left::Not => {}
                _ => return Ok(Some(false)),
            }
        }
        if !has_lines || has_returned {
            *frame = self.activation();
            *goal = LineGoal::of_caller(&self.space, self.rip(), into);
            if !self.leave_what_has_no_lines(frame, goal, into)? {
                return Ok(Some(false));
            }
            // The call was the end of its line.
            let here = self.space.step_line(self.rip());
            if here.is_some_and(|here| here.range.start == self.rip() && here.is_statement) {
                self.calls_to_come = self.space.calls_beginning(self.rip());
                return Ok(Some(true));
            }
        }
        let rip = self.rip();
        if goal.range.contains(&rip) {
            return Ok(None);
        }
        Ok(match goal.look(&self.space, rip) {
            Look::Stop { calls_to_come } => {
                self.calls_to_come = calls_to_come;
                Some(true)
            }
            Look::Proceed => None,
        })
    }

    /// Returns whether the thread goes on in a frame further out than this one.
    fn is_further_out(&self, frame: Option<&Activation>) -> bool {
        match (frame, self.activation()) {
            (Some(frame), Some(now)) => now.cfa > frame.cfa,
            _ => true,
        }
    }

    fn has_returned(&self, frame: Option<&Activation>) -> bool {
        match (frame, self.thread()) {
            (Some(frame), Some(thread)) => frame.has_returned(&thread),
            _ => false,
        }
    }

    /// Runs into a function that has just been called, up to where its lines begin.
    fn enter(&mut self, place: u64, sp: u64) -> exact::Result<bool> {
        if self.rip() != place && !self.run_to(&[place], |thread| thread.rsp() <= sp)? {
            return Ok(false);
        }
        self.calls_to_come = self.space.calls_beginning(place);
        Ok(true)
    }

    /// Returns whether a step may end where it has returned to: at a line, and not in a library of the system, as live.
    fn is_at_own_line(&self) -> bool {
        let is_system = self
            .space
            .at(self.rip())
            .is_none_or(|module| module.is_system);
        !is_system && self.space.step_line(self.rip()).is_some()
    }

    /// Continues until callers are code with lines, and not of a library of the system.
    fn leave_what_has_no_lines(
        &mut self,
        frame: &mut Option<Activation>,
        goal: &mut LineGoal,
        into: bool,
    ) -> exact::Result<bool> {
        while !self.is_at_own_line() {
            match frame.take() {
                Some(outer) if self.leave(&outer)? != Left::Not => {}
                _ => return Ok(false),
            }
            *frame = self.activation();
            *goal = LineGoal::of_caller(&self.space, self.rip(), into);
        }
        Ok(true)
    }
}
