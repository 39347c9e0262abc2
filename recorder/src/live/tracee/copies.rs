//! Copies of memory at stops: whether one may be taken, and what has to stand still for it.

use store::control::{Control, SnapshotReason};

use crate::{
    clock,
    live::{event_loop::Tracer, model::Tid},
    snapshot,
};

impl Tracer {
    /// Tells whether nobody runs, nor will before a thread is let go, once `tid` and, if it is so, all others are stopped. A
    /// thread that is only held while something is done goes on without an event.
    fn will_be_still(&self, tid: Tid, all_threads: bool) -> bool {
        self.tracee.threads.iter().all(|(other, thread)| {
            let stays = *other == tid || all_threads || thread.stop().is_some();
            stays && thread.is_halted()
        })
    }

    /// Tells whether memory is to be copied when `tid` stops, and others run that have to stand still for it.
    pub fn must_hold_to_copy(&self, tid: Tid) -> bool {
        let is_due = self.snapshots.as_ref().is_some_and(snapshot::is_due);
        is_due && !self.will_be_still(tid, false)
    }

    /// Copies the memory that has changed, if that is due.
    pub fn copy_memory(&mut self, reason: SnapshotReason) {
        let Some(snapshots) = &self.snapshots else {
            return;
        };
        match snapshot::take_if_due(snapshots, reason) {
            None => {}
            Some(Ok(snapshot)) => self.journal.send(Control::Snapshot(snapshot)),
            Some(Err(error)) => {
                self.snapshots = None;
                self.journal.send(Control::Warning {
                    ticks: clock::ticks(),
                    message: format!("memory could not be copied: {error}"),
                });
            }
        }
    }

    /// Tells why memory can be copied when `tid` stops, if it can; `holds`: the others are held for that stop.
    pub fn may_copy(&self, tid: Tid, all_threads: bool, holds: bool) -> Option<SnapshotReason> {
        match self.will_be_still(tid, all_threads) {
            true => Some(SnapshotReason::Pause),
            false => (holds && self.tracee.is_standing()).then_some(SnapshotReason::Held),
        }
    }
}
