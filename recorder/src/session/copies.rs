//! Periodic memory snapshots while the program runs: at intervals, or after a number of records. In the latter case
//! threads wait for the snapshot, so that none is skipped. Those that are skipped are recorded as missing.

use std::{io, sync::Arc, time::Instant};

use store::control::{Control, GapReason, Snapshot, SnapshotReason};

use super::{STOP_PATIENCE, Session};
use crate::{
    Result, SnapshotTimes, clock,
    snapshot::{self, SharedSnapshots},
    stop::StopError,
};

/// The result of a snapshot, and the number of records at that time.
type Copied = std::result::Result<(io::Result<Snapshot>, u64), StopError>;

impl Session {
    /// Takes a snapshot if it is time.
    pub(super) fn copy_memory(&mut self) -> Result<()> {
        let is_time = match self.options.snapshots {
            SnapshotTimes::Never | SnapshotTimes::AtPauses => false,
            SnapshotTimes::Every(interval) => self.copies.last.elapsed() >= interval,
            SnapshotTimes::EveryEvents(count) => {
                let since = self.shared.copied_records();
                self.shared.copy_records().wrapping_sub(since) >= count.get()
            }
        };
        if !is_time {
            return Ok(());
        }
        if self.shared.last_is_done() {
            // The final snapshot was taken: no thread waits for another.
            self.copies.last = Instant::now();
            return Ok(self.account_for_copies(0)?);
        }
        let copied = self.copies.snapshots.clone().map(|all| self.copy(all));
        self.copies.last = Instant::now();
        let now = self.shared.copy_records();
        let (noted, made, records) = match copied {
            // Snapshots are no longer possible: threads no longer wait for one.
            None => (Ok(()), u64::MAX, now),
            Some(Ok((taken, records))) => (self.note_snapshot(Some(taken)), 1, records),
            // The final accounting reports the snapshots that are due then.
            Some(Err(StopError::Gone { .. } | StopError::Zombie { .. })) => return Ok(()),
            // For example, another tracer holds the program.
            Some(Err(_)) => (Ok(()), 0, now),
        };
        noted?;
        let missing = self.settle_due(records).saturating_sub(made);
        Ok(self.note_missing(missing)?)
    }

    /// Makes no thread wait for the snapshots that are due now, and records that all of them except `made` were not
    /// taken.
    pub(super) fn account_for_copies(&mut self, made: u64) -> store::Result<()> {
        let records = self.shared.copy_records();
        // After the final snapshot nothing is due by time.
        let is_due = match self.options.snapshots {
            SnapshotTimes::EveryEvents(_) => true,
            SnapshotTimes::Every(_) => !self.shared.last_is_done(),
            SnapshotTimes::Never | SnapshotTimes::AtPauses => false,
        };
        let due = self.settle_due(records);
        let missing = match is_due && self.copies.snapshots.is_some() {
            true => due.saturating_sub(made),
            false => 0,
        };
        self.note_missing(missing)
    }

    fn copy(&self, snapshots: SharedSnapshots) -> Copied {
        let shared = Arc::clone(&self.shared);
        self.stopper
            .while_stopped(self.target.pid, STOP_PATIENCE, move |_| {
                let taken = snapshot::take(&snapshots, SnapshotReason::Interval);
                (taken, shared.copy_records())
            })
    }

    /// Returns how many snapshots are due by now, after this many records. They are not due again.
    fn settle_due(&mut self, records: u64) -> u64 {
        let due = match self.options.snapshots {
            SnapshotTimes::EveryEvents(count) => {
                let since = self.shared.copied_records();
                records.saturating_sub(since) / count.get()
            }
            SnapshotTimes::Every(interval) => {
                let since = self.copies.counted.elapsed();
                let due = since.as_nanos() / interval.as_nanos().max(1);
                let due = u32::try_from(due).unwrap_or(u32::MAX);
                // What is left of the time counts for the next one.
                self.copies.counted += interval.saturating_mul(due);
                due.into()
            }
            SnapshotTimes::Never | SnapshotTimes::AtPauses => 0,
        };
        self.shared.copied(records);
        due
    }

    fn note_missing(&mut self, copies: u64) -> store::Result<()> {
        if copies == 0 {
            return Ok(());
        }
        self.writing.log.append_control(&Control::Gap {
            ticks: clock::ticks(),
            tid: 0,
            lost: copies,
            reason: GapReason::NotCopied,
        })
    }
}
