//! Single-stepping: decides whether a thread has reached its goal, and how it continues if not.

use debuginfo::{LineGoal, Look};
use iced_x86::FlowControl;

use super::{
    callee::{is_call, is_system},
    plan::{Goal, Then},
};
use crate::{
    live::{
        breakpoints::{Breakpoints, sites::User},
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        model::{Reason, Tid},
        tracee::Tracee,
    },
    stop::Registers,
};

impl Tracer {
    /// Handles a thread that has executed one instruction.
    pub fn stepped(&mut self, tid: Tid) {
        if self.tracee.is_full(tid) {
            return self.full_stepped(tid);
        }
        let Ok(registers) = self.tracee.registers(tid) else {
            return;
        };
        self.may_have_left_watched(tid, registers.rip);
        let Some(plan) = self
            .tracee
            .threads
            .get(&tid)
            .and_then(|thread| thread.plan.as_ref())
        else {
            self.go(tid, false);
            return;
        };
        let Some(pc) = self.breakpoints.exact_pc(&self.tracee, registers.rip) else {
            self.go(tid, true);
            return;
        };
        // A hooked entry is passed twice: at the jump, and at the copy of the instruction it replaced.
        let is_copy = registers.rip != pc && plan.last_pc == pc;
        if is_copy
            && self.tracee.memory.hooks_now().over(pc).is_some()
            && !self.breakpoints.stands_at_trap(registers.rip)
        {
            self.go(tid, true);
            return;
        }
        if plan.deferred != 0
            && let Some(thread) = self.tracee.threads.get_mut(&tid)
        {
            let plan = thread.plan.as_mut().expect("looked at above");
            let signal = std::mem::take(&mut plan.deferred);
            thread.set_signal(signal);
        }
        if self.breakpoints.stands_at_trap(registers.rip) {
            let address = pc;
            if self.breakpoints.is_probed(address) {
                self.hit(tid, address);
                return;
            }
        }
        self.look_around(tid, &registers, pc);
    }

    /// Decides whether a thread has reached its goal.
    pub(super) fn look_around(&mut self, tid: Tid, registers: &Registers, pc: u64) {
        let space = self.tracee.space_now();
        let Some(plan) = self
            .tracee
            .threads
            .get_mut(&tid)
            .and_then(|thread| thread.plan.as_mut())
        else {
            self.go(tid, false);
            return;
        };
        plan.last_pc = pc;
        let has_returned = plan.cfa != 0 && registers.rsp >= plan.cfa;
        let into = match &mut plan.goal {
            Goal::ProbePlace => return self.go(tid, false),
            Goal::Record => return self.full_resume(tid, 0),
            Goal::Instruction { .. } => return self.halt(tid, Reason::Step, false),
            Goal::Line(goal) if !has_returned && goal.range.contains(&pc) => {
                return self.proceed(tid);
            }
            Goal::Line(goal) => goal.into,
        };
        if has_returned {
            match space.step_line(pc) {
                Some(_) if is_system(&space, pc) => self.leave(tid),
                None => self.leave(tid),
                // The rest of the call's line belongs to the step.
                Some(here) if here.range.start != pc || !here.is_statement => {
                    self.finish_line(tid, into);
                }
                Some(_) => self.halt_step(tid, pc),
            }
            return;
        }
        let Goal::Line(goal) = &mut plan.goal else {
            return;
        };
        if space.function_at(pc).map(|place| place.entry) != goal.function {
            self.jumped_elsewhere(tid, registers, pc, into);
            return;
        }
        match goal.look(&space, pc) {
            Look::Proceed => self.proceed(tid),
            Look::Stop { calls_to_come } => {
                self.tracee.set_calls_to_come(tid, calls_to_come);
                self.halt(tid, Reason::Step, false);
            }
        }
    }

    /// Stops a thread at its goal; inlined calls that begin there are still to come.
    pub(super) fn halt_step(&mut self, tid: Tid, pc: u64) {
        let to_come = self.tracee.space_now().calls_beginning(pc);
        self.tracee.set_calls_to_come(tid, to_come);
        self.halt(tid, Reason::Step, false);
    }

    /// Handles a stepping thread at a probe that did not stop it.
    pub fn look_again(&mut self, tid: Tid, pc: u64) {
        if let Ok(registers) = self.tracee.registers(tid) {
            self.look_around(tid, &registers, pc);
        }
    }

    /// Executes one more instruction, or the whole call if it is one.
    fn proceed(&mut self, tid: Tid) {
        if self.step_over_one(tid).is_err() {
            self.go(tid, true);
        }
    }

    /// A jump has led into another function: a tail call.
    fn jumped_elsewhere(&mut self, tid: Tid, registers: &Registers, pc: u64, into: bool) {
        let space = self.tracee.space_now();
        let callee = self.tracee.function_to_enter(&space, pc);
        let mut plan = self.tracee.take_plan(tid);
        let entered = into
            && callee.is_some_and(|at| self.trap_at(tid, &mut plan, at, 0, Then::Stop).is_ok());
        let slot = plan.cfa.wrapping_sub(8);
        let back = self.tracee.return_address(slot);
        let caught = plan.cfa != 0
            && back.is_some_and(|back| {
                let cfa = plan.cfa;
                self.trap_at(tid, &mut plan, back, cfa, Then::Look).is_ok()
            });
        self.tracee.put_plan(tid, plan);
        if (entered || caught) && registers.rip != 0 {
            self.go(tid, false);
        } else {
            // Nothing is known about this code: step through it.
            self.go(tid, true);
        }
    }

    /// The frame has returned into the middle of a line: the step ends where the next line begins.
    fn finish_line(&mut self, tid: Tid, into: bool) {
        let Ok(machine) = self.tracee.machine(&self.breakpoints, tid) else {
            return;
        };
        let space = self.tracee.space_now();
        let frames = debuginfo::backtrace(&space, &machine, 1).frames;
        let mut plan = self.tracee.take_plan(tid);
        plan.cfa = frames.first().and_then(|frame| frame.cfa).unwrap_or(0);
        plan.goal = Goal::Line(LineGoal::of_caller(
            &space,
            machine.registers.general.rip,
            into,
        ));
        self.tracee.put_plan(tid, plan);
        self.proceed(tid);
    }

    /// The frame has returned to code without lines: run until that returns too.
    fn leave(&mut self, tid: Tid) {
        let Ok(machine) = self.tracee.machine(&self.breakpoints, tid) else {
            return;
        };
        let frames = debuginfo::backtrace(&self.tracee.space_now(), &machine, 64).frames;
        let mut plan = self.tracee.take_plan(tid);
        let out = self.out_of(tid, &mut plan, &frames, 0, "");
        if out.is_ok() {
            if let Some(arrival) = plan.arrivals.last_mut() {
                arrival.then = Then::Look;
            }
            plan.goal = Goal::Line(LineGoal {
                into: false,
                line: None,
                range: 0..0,
                function: None,
                copies: Vec::new(),
            });
            // Any place it returns to is outside.
            plan.cfa = plan.cfa.saturating_sub(8);
        } else {
            plan.goal = Goal::ProbePlace;
        }
        self.tracee.put_plan(tid, plan);
        self.go(tid, false);
    }

    /// Executes the instruction at the thread's pc, or the whole call if it is a call that must not be entered.
    pub(super) fn step_over_one(&mut self, tid: Tid) -> LiveResult<()> {
        let registers = self.tracee.registers(tid)?;
        let pc = self.breakpoints.original_pc(&self.tracee, registers.rip);
        let instruction = self.tracee.instruction_at(pc)?;
        let (is_call, enters) = match self.tracee.goal(tid) {
            Some(Goal::Line(goal)) => (is_call(&instruction), goal.into),
            Some(Goal::Instruction { over }) => (*over && is_call(&instruction), false),
            _ => return Err(LiveError::Ended),
        };
        if is_call {
            let space = self.tracee.space_now();
            let target = enters
                .then(|| self.tracee.target_of(&instruction, &registers))
                .flatten()
                .and_then(|target| self.tracee.function_to_enter(&space, target));
            let mut plan = self.tracee.take_plan(tid);
            let then = match plan.goal {
                Goal::Instruction { .. } => Then::Stop,
                _ => Then::Look,
            };
            let mut set = self.trap_at(tid, &mut plan, instruction.next_ip(), registers.rsp, then);
            if let Some(target) = target
                && set.is_ok()
            {
                set = self.trap_at(tid, &mut plan, target, 0, Then::Stop);
            }
            self.tracee.put_plan(tid, plan);
            set?;
            self.go(tid, false);
            return Ok(());
        }
        if instruction.flow_control() == FlowControl::Return {
            let slot = registers.rsp;
            let hooked = self
                .tracee
                .memory
                .word(slot)
                .is_ok_and(|word| self.tracee.memory.hooks_now().leave().is(word));
            if hooked && let Some(back) = self.tracee.return_address(slot) {
                let mut plan = self.tracee.take_plan(tid);
                let set = self.trap_at(tid, &mut plan, back, slot + 8, Then::Look);
                self.tracee.put_plan(tid, plan);
                set?;
                self.go(tid, false);
                return Ok(());
            }
        }
        self.go(tid, true);
        Ok(())
    }
}

impl Breakpoints {
    fn stands_at_trap(&self, rip: u64) -> bool {
        self.sites
            .by_trap(rip)
            .is_some_and(|site| !site.users.is_empty())
    }

    fn is_probed(&self, address: u64) -> bool {
        self.sites
            .at(address)
            .is_some_and(|site| site.users.iter().any(|user| matches!(user, User::Probe(_))))
    }
}

impl Tracee {
    fn goal(&self, tid: Tid) -> Option<&Goal> {
        Some(&self.threads.get(&tid)?.plan.as_ref()?.goal)
    }
}
