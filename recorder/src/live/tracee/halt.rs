//! Stops threads until someone lets them run, and reports each stop once: to those who wait, and to the journal.

use store::control::SnapshotReason;

use crate::live::{
    event_loop::Tracer,
    model::{Reason, Stop, Tid},
    tracee::hold::{COPY_PATIENCE, STOP_PATIENCE},
};

impl Tracer {
    /// Stops a thread for good, tells everybody, and writes it down.
    pub fn halt(&mut self, tid: Tid, reason: Reason, all_threads: bool) {
        // Whoever has called a function waits for what it returns.
        if self.has_call(tid) && reason.is_of_a_probe() {
            self.go(tid, false);
            return;
        }
        self.abandon_plan(tid);
        let was_holding = self.tracee.is_held;
        let holds = !was_holding && (all_threads || self.must_hold_to_copy(tid));
        if holds {
            let patience = if all_threads {
                STOP_PATIENCE
            } else {
                COPY_PATIENCE
            };
            // What does not stop in time stays running; the stop is told all the same.
            let _ = self.hold_within(patience);
        }
        let copy = self.may_copy(tid, all_threads, holds || was_holding);
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

    /// Tells that the threads that are held are stopped.
    pub fn halt_companions(&mut self) {
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in tids {
            if self.tracee.threads[&tid].is_held() {
                // Where it was to get to counts no more: whoever lets it go says where to.
                self.abandon_plan(tid);
                let stop = self.post(tid, Reason::AllThreads, None);
                if let Some(halt) = self.tracee.halt_mut(tid) {
                    halt.stop = stop;
                }
            }
        }
    }

    /// Tells of a stop. `copy`: why memory can be copied, if it can.
    fn post(&mut self, tid: Tid, reason: Reason, copy: Option<SnapshotReason>) -> Option<Stop> {
        // If it cannot be moved it was killed, or is shown where it is.
        let _ = self.leave_ours(tid);
        if let Some(why) = copy {
            self.copy_memory(why);
        }
        let pc = self.pc(tid)?;
        let calls_to_come = self.tracee.threads.get(&tid).map_or(0, |t| t.calls_to_come);
        let displayed = self.displayed(tid);
        let place = (pc, calls_to_come);
        self.journal.pause(self, tid, &reason, place, &displayed);
        Some(self.stops.post(tid, reason, pc, calls_to_come, displayed))
    }
}
