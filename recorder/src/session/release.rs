//! Writes the first patches and lets the program run.

use std::{
    fs,
    sync::{Arc, Mutex},
    time::Instant,
};

use store::control::SnapshotReason;

use super::{STOP_PATIENCE, Session, lock, program::read_maps, runtime_code::RuntimeCode};
use crate::{
    Error, Result,
    arm::{Armer, patch::Plan},
    guardian::{Announcer, Guardian},
    process::spawn::Parked,
    snapshot,
    stop::{StopError, StoppedProcess},
};

impl Session {
    /// Writes the patches and releases a parked program.
    pub(crate) fn release(&mut self, plan: Plan) -> Result<()> {
        if self.target.ended_early {
            return Ok(());
        }
        self.target.pass_on_signal();
        self.set_off(plan)
            .map_err(|error| self.nothing_recorded(error))
    }

    /// Explains why the program could not be started. An empty recording is removed.
    fn nothing_recorded(&self, error: Error) -> Error {
        let error = self.target.why_failed(error);
        if matches!(error, Error::EndedEarly { .. }) {
            // If it cannot be removed, `check` identifies it.
            let _ = fs::remove_dir_all(self.recording_dir());
        }
        error
    }

    fn set_off(&mut self, plan: Plan) -> Result<()> {
        self.announce_to_guardian(&plan)?;
        let parked = self.target.parked.take().map(Arc::new);
        let plan = Arc::new(plan);
        // A copy of a recorded program waits in the middle of its code.
        let first = self.runtime.code.first_instruction;
        let first = first.filter(|_| self.target.spawned);
        let start = match self.target.spawned {
            true => SnapshotReason::Start,
            false => SnapshotReason::Attached,
        };
        let armer = Arc::clone(&self.arming.armer);
        let snapshots = self.copies.snapshots.clone();
        let (snapshot, changed) =
            self.stopper
                .after_frida(self.target.pid, STOP_PATIENCE, || {
                    let (plan, armer) = (Arc::clone(&plan), Arc::clone(&armer));
                    let (parked, snapshots) = (parked.clone(), snapshots.clone());
                    move |process: &mut StoppedProcess| {
                        // Takes nothing for a later patch: the first snapshot exists already.
                        let snapshot = snapshots.and_then(|s| snapshot::take_first(&s, start));
                        let parked = parked.as_deref().map(|parked| (parked, first));
                        (snapshot, set_off(&armer, &plan, parked, process))
                    }
                })?;
        let changed = changed?;
        self.copies.last = Instant::now();
        self.copies.counted = self.copies.last;
        self.target.kill_on_drop = false;
        self.note_snapshot(snapshot)?;
        self.note_changed(changed)
    }

    /// Finds the runtime's code in the program after it was loaded.
    pub(super) fn find_runtime_code(&mut self) -> Result<()> {
        if self.target.ended_early {
            return Ok(());
        }
        let maps = read_maps(self.target.pid).map_err(|error| self.nothing_recorded(error))?;
        let files = maps.files();
        if let Some(file) = files.iter().find(|file| file.path == self.runtime.path) {
            self.runtime.code = RuntimeCode::of(&self.runtime.path, file.range.start);
        }
        Ok(())
    }

    /// Starts the guardian, if it is enabled. Returns a handle to announce further changes.
    pub(crate) fn start_guardian(&mut self) -> Result<Option<Announcer>> {
        if self.guardian.is_none()
            && let Some(command) = &self.options.guardian
        {
            let pipes = self.pipes.as_ref();
            self.guardian = Some(Guardian::start(command, self.target.pid, pipes)?);
        }
        Ok(self.guardian.as_ref().map(Guardian::announcer))
    }

    fn announce_to_guardian(&mut self, plan: &Plan) -> Result<()> {
        self.start_guardian()?;
        if let Some(guardian) = &mut self.guardian {
            guardian.tell(plan.patches());
        }
        Ok(())
    }
}

/// Writes the patches. A parked program is then at its entry point, or before that at the runtime's first instruction.
fn set_off(
    armer: &Mutex<Armer>,
    plan: &Plan,
    parked: Option<(&Parked, Option<u64>)>,
    process: &mut StoppedProcess,
) -> std::result::Result<Vec<u64>, StopError> {
    if let Some((parked, _)) = parked {
        // Before the patches: the loop is longer than some programs' first function.
        process.write(parked.entry, &parked.original)?;
    }
    let changed = lock(armer).apply(plan, process);
    if let Some((parked, first)) = parked {
        let mut registers = parked.registers;
        // In a copy of a recorded program it pointed to the data of that program's runtime.
        registers.gs_base = process.regs(parked.pid)?.gs_base;
        if let Some(first) = first {
            registers.rsp -= 8;
            process.write(registers.rsp, &parked.entry.to_le_bytes())?;
            registers.rip = first;
        }
        process.set_regs(parked.pid, &registers)?;
    }
    changed
}
