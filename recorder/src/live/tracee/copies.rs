//! Memory snapshots at stops: whether one may be taken, and which threads must be halted for it.

use store::control::{Control, SnapshotReason};

use crate::{
    clock,
    live::{journal::Journal, model::Tid, tracee::Tracee},
    snapshot,
};

impl Tracee {
    /// Returns whether no thread runs, or will run before one is resumed, once `tid` (and, with `all_threads`, every
    /// other thread) is stopped. A thread that is only held for an operation resumes without an event.
    fn will_be_still(&self, tid: Tid, all_threads: bool) -> bool {
        self.threads.iter().all(|(other, thread)| {
            let stays = *other == tid || all_threads || thread.stop().is_some();
            stays && thread.is_halted()
        })
    }

    /// Returns the reason to copy memory when `tid` stops, if it can be copied. `holds`: the others are held for that
    /// stop.
    pub fn may_copy(&self, tid: Tid, all_threads: bool, holds: bool) -> Option<SnapshotReason> {
        match self.will_be_still(tid, all_threads) {
            true => Some(SnapshotReason::Pause),
            false => (holds && self.is_standing()).then_some(SnapshotReason::Held),
        }
    }

    /// Returns whether memory is to be copied when `tid` stops, and running threads must be halted for this.
    pub fn must_hold_to_copy(&self, tid: Tid) -> bool {
        let is_due = self.snapshots.as_ref().is_some_and(snapshot::is_due);
        is_due && !self.will_be_still(tid, false)
    }

    /// Copies the changed memory, if a snapshot is due.
    pub fn copy_memory(&mut self, journal: &Journal, reason: SnapshotReason) {
        let Some(snapshots) = &self.snapshots else {
            return;
        };
        match snapshot::take_if_due(snapshots, reason) {
            None => {}
            Some(Ok(snapshot)) => journal.send(Control::Snapshot(snapshot)),
            Some(Err(error)) => {
                self.snapshots = None;
                journal.send(Control::Warning {
                    ticks: clock::ticks(),
                    message: format!("memory could not be copied: {error}"),
                });
            }
        }
    }
}
