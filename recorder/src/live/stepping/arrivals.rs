//! Handles a thread with a plan that returns from running at full speed: at a trap of its plan, where an exception or
//! longjmp lands, or at a signal.

use super::plan::{Goal, Then};
use crate::live::{
    breakpoints::sites::User,
    event_loop::Tracer,
    model::{Reason, Tid},
};

impl Tracer {
    /// Handles a thread with a plan at a trap. Returns whether the trap is one at which the plan arrives; otherwise the
    /// thread is still on its way.
    pub fn arrived(&mut self, tid: Tid, address: u64) -> bool {
        let Ok(registers) = self.tracee.registers(tid) else {
            return true;
        };
        let Some(plan) = self
            .tracee
            .threads
            .get(&tid)
            .and_then(|thread| thread.plan.as_ref())
        else {
            return false;
        };
        let arrival = plan
            .arrivals
            .iter()
            .find(|arrival| arrival.address == address && registers.rsp >= arrival.lowest_sp)
            .copied();
        let Some(arrival) = arrival else {
            return false;
        };
        let mut plan = self.tracee.take_plan(tid);
        for trap in std::mem::take(&mut plan.traps) {
            self.remove_site(trap, User::Step(tid));
        }
        plan.arrivals.clear();
        let goal = Some(plan.goal.clone());
        self.tracee.put_plan(tid, plan);
        match arrival.then {
            Then::Stop if matches!(goal, Some(Goal::Instruction { .. })) => {
                self.halt(tid, Reason::Step, false);
            }
            Then::Stop => self.halt_step(tid, address),
            Then::Look => self.look_around(tid, &registers, address),
        }
        true
    }

    /// The unwinder, or longjmp, is about to resume a thread with a plan at `target`.
    pub fn will_unwind_to(&mut self, tid: Tid, target: u64) {
        let mut plan = self.tracee.take_plan(tid);
        let lowest_sp = plan
            .arrivals
            .iter()
            .map(|arrival| arrival.lowest_sp)
            .filter(|sp| *sp != 0)
            .min()
            .unwrap_or(0);
        let then = match plan.goal {
            Goal::ProbePlace => Then::Stop,
            _ => Then::Look,
        };
        // If no trap can be set, the thread continues and the user sees it running.
        let _ = self.trap_at(tid, &mut plan, target, lowest_sp, then);
        self.tracee.put_plan(tid, plan);
    }

    /// A signal arrives while a thread steps: its handler runs at full speed. At a breakpoint, and in the copy of its
    /// instruction, the thread executes that instruction first: the handler would return to one of these.
    pub fn signal_while_stepping(&mut self, tid: Tid, signal: i32) {
        if self.tracee.is_full(tid) {
            return self.full_resume(tid, signal);
        }
        let Ok(registers) = self.tracee.registers(tid) else {
            return;
        };
        let mut plan = self.tracee.take_plan(tid);
        let is_at_site = self.breakpoints.sites.by_trap(registers.rip).is_some();
        let pc = self.breakpoints.exact_pc(&self.tracee, registers.rip);
        let run = match pc.filter(|pc| *pc == registers.rip && !is_at_site) {
            Some(pc) => {
                let then = match plan.goal {
                    Goal::ProbePlace => None,
                    _ => Some(Then::Look),
                };
                then.is_none_or(|then| {
                    self.trap_at(tid, &mut plan, pc, registers.rsp, then)
                        .is_ok()
                })
            }
            None => false,
        };
        let deliver = if run {
            signal
        } else {
            plan.deferred = signal;
            0
        };
        self.tracee.put_plan(tid, plan);
        if let Some(thread) = self.tracee.threads.get_mut(&tid) {
            thread.set_signal(deliver);
        }
        if run {
            self.tracee.run_in_place(&self.probes, &self.journal, tid);
        } else {
            self.go(tid, true);
        }
    }
}
