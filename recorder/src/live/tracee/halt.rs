//! Stops threads until the user resumes them, and reports each stop once, to waiting threads and to the journal.

use store::control::SnapshotReason;

use crate::live::{
    breakpoints::Breakpoints,
    error::LiveResult,
    event_loop::Tracer,
    journal::Paused,
    model::{Reason, Stop, Tid},
    tracee::{
        Tracee,
        hold::{COPY_PATIENCE, STOP_PATIENCE},
        threads::{Thread, Trap},
    },
};

impl Tracer {
    /// Stops all threads at the user's request, and abandons calls that were made for the user. Returns the number of the
    /// newest stop.
    pub fn pause(&mut self) -> LiveResult<u64> {
        self.tracee.following.has_let_go = false;
        let held = self.hold();
        self.interrupt_calls();
        if held.is_ok() {
            self.halt_all();
        }
        self.release();
        held?;
        let stops = self.tracee.threads.values().filter_map(Thread::stop);
        let told = stops.filter(|stop| stop.reason != Reason::AllThreads);
        Ok(told.map(|stop| stop.number).max().unwrap_or_default())
    }

    /// Reports the held threads as stopped by the user; the first thread is the one to look at, if it is among them.
    fn halt_all(&mut self) {
        let threads = self.tracee.threads.iter();
        let held = threads.filter(|(_, thread)| thread.is_held());
        let first = held
            .map(|(tid, _)| *tid)
            .min_by_key(|tid| *tid != self.tracee.pid);
        if let Some(tid) = first {
            self.halt(tid, Reason::User, true);
        }
    }

    /// Stops a thread until it is resumed, and announces and records the stop.
    pub fn halt(&mut self, tid: Tid, reason: Reason, all_threads: bool) {
        // The caller of the function waits for its return.
        if self.tracee.has_call(tid) && reason.is_of_a_probe() {
            self.go(tid, false);
            return;
        }
        self.abandon_plan(tid);
        // A signal that is about to be delivered must stay as it is.
        if !matches!(reason, Reason::Signal { .. }) {
            self.keep_orphan_handler(tid);
        }
        let was_holding = self.tracee.is_held;
        let holds = !was_holding && (all_threads || self.tracee.must_hold_to_copy(tid));
        if holds {
            let patience = if all_threads {
                STOP_PATIENCE
            } else {
                COPY_PATIENCE
            };
            // A thread that does not stop in time keeps running. The stop is reported all the same.
            let _ = self.hold_within(patience);
        }
        let copy = self.tracee.may_copy(tid, all_threads, holds || was_holding);
        let stop = self.post(tid, reason, copy);
        if let (Some(thread), Some(stop)) = (self.tracee.threads.get_mut(&tid), stop) {
            if let Some(calling) = &mut thread.calling {
                calling.was_stopped = true;
            }
            if all_threads {
                self.stopped_all = stop.number;
            }
            thread.is_stepping = false;
            thread.is_moved = false;
            if let Some(halt) = thread.halt_mut() {
                halt.stop = Some(stop);
            }
        }
        if all_threads {
            self.halt_companions();
        }
        if holds {
            self.release();
        }
    }

    /// Reports the held threads as stopped.
    pub fn halt_companions(&mut self) {
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in tids {
            if self.tracee.threads[&tid].is_held() {
                // The goal no longer counts: the next resume sets a new one.
                self.abandon_plan(tid);
                let stop = self.post(tid, Reason::AllThreads, None);
                if let Some(halt) = self.tracee.halt_mut(tid) {
                    halt.stop = stop;
                }
            }
        }
    }

    /// Reports a stop. `copy`: the reason to copy memory, if it can be copied.
    fn post(&mut self, tid: Tid, reason: Reason, copy: Option<SnapshotReason>) -> Option<Stop> {
        // A thread that cannot be moved was killed, or is shown where it is.
        let _ = self.breakpoints.leave_ours(&mut self.tracee, tid);
        self.tracee.note_trap(&self.breakpoints, tid, &reason);
        if let Some(why) = copy {
            self.tracee.copy_memory(&self.journal, why);
        }
        let pc = self.breakpoints.pc(&self.tracee, tid)?;
        let calls_to_come = self.tracee.threads.get(&tid).map_or(0, |t| t.calls_to_come);
        let displayed = self.evaluator().displayed(tid);
        let place = (pc, calls_to_come);
        let watched_at = match &reason {
            Reason::Watch { probe, .. } => self.probes.watchpoints.address(*probe),
            _ => None,
        };
        let paused = Paused {
            reason: &reason,
            machine: self.tracee.machine(&self.breakpoints, tid).ok(),
            watched_at,
            displayed: &displayed,
        };
        self.journal.pause(&self.tracee, tid, paused, place);
        Some(self.stops.post(tid, reason, pc, calls_to_come, displayed))
    }
}

impl Tracee {
    /// Notes whether a thread that is about to be reported stands before a trap. On its way out of our code it may have come
    /// just there. Whatever stopped it, the breakpoint is still to be reported.
    fn note_trap(&mut self, breakpoints: &Breakpoints, tid: Tid, reason: &Reason) {
        let pc = self.registers(tid).map(|registers| registers.rip);
        let site = pc.ok().and_then(|pc| breakpoints.sites.by_trap(pc));
        let is_used = site.is_some_and(|site| !site.users.is_empty());
        if let Some(halt) = self.halt_mut(tid)
            && halt.trap != Trap::Hit
        {
            // A step that ends at a breakpoint is the same stop.
            halt.trap = match is_used && *reason != Reason::Step {
                true => Trap::Ahead,
                false => Trap::None,
            };
        }
    }
}
