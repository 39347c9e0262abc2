//! Writes the first patches and lets the program run.

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use agent::shared::Shared;
use store::control::SnapshotReason;

use super::{
    STOP_PATIENCE, Session, catching::Catching, lock, program::read_maps, runtime_code::RuntimeCode,
};
use crate::{
    Result,
    arm::{Armer, patch::Plan},
    guardian::{Announcer, Guardian},
    process::spawn::Parked,
    snapshot,
    stop::{StopError, StoppedProcess},
};

/// What users read in `events` if the handlers of fatal signals are wanted and cannot be installed.
const MISSES_THE_END: &str = "if a signal ends the program, its last moment is not recorded: when it was attached to, it was in a \
                              sandbox, or none of its threads could install a handler";

impl Session {
    /// Writes the patches and releases a parked program.
    pub(crate) fn release(&mut self, plan: Plan) -> Result<()> {
        if self.target.ended_early {
            return Ok(());
        }
        self.target.pass_on_signal();
        self.set_off(plan)
            .map_err(|error| self.target.why_failed(error))
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
        let catching = self.to_begin_catching();
        let shared = Arc::clone(&self.shared);
        let (snapshot, changed, misses_the_end) =
            self.stopper
                .after_frida(self.target.pid, STOP_PATIENCE, || {
                    let (plan, armer) = (Arc::clone(&plan), Arc::clone(&armer));
                    let (parked, snapshots) = (parked.clone(), snapshots.clone());
                    let shared = Arc::clone(&shared);
                    move |process: &mut StoppedProcess| {
                        // Takes nothing for a later patch: the first snapshot exists already.
                        let snapshot = snapshots.and_then(|s| snapshot::take_first(&s, start));
                        let parked = parked.as_deref().map(|parked| (parked, first));
                        let changed = set_off(&armer, &plan, parked, process);
                        let misses_the_end =
                            catching.is_some_and(|code| !catches(code, &shared, process));
                        (snapshot, changed, misses_the_end)
                    }
                })?;
        let changed = changed?;
        self.runtime.code.is_in_use = true;
        if misses_the_end {
            self.note_warning(MISSES_THE_END.to_owned())?;
        }
        self.copies.last = Instant::now();
        self.copies.counted = self.copies.last;
        if !self.target.spawned {
            // `--for` counts from the first call that can be recorded.
            self.so_far.began = self.copies.last;
        }
        self.target.kill_on_drop = false;
        self.note_snapshot(snapshot)?;
        self.note_changed(changed)
    }

    /// Returns the code that installs handlers of fatal signals: once, for a program that was running before and that no tracer
    /// holds.
    fn to_begin_catching(&self) -> Option<Catching> {
        let code = &self.runtime.code;
        let is_to_begin = !self.target.spawned && self.live.is_none() && !code.is_in_use;
        code.catching.filter(|_| is_to_begin)
    }

    /// Finds the runtime's code in the program after it was loaded.
    pub(super) fn find_runtime_code(&mut self) -> Result<()> {
        if self.target.ended_early {
            return Ok(());
        }
        let maps = read_maps(self.target.pid).map_err(|error| self.target.why_failed(error))?;
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

/// Installs the handlers of fatal signals. Returns false if they are wanted and cannot be installed: then no thread does so later.
fn catches(code: Catching, shared: &Shared, process: &mut StoppedProcess) -> bool {
    // A process that is being killed needs none.
    code.begin(process).unwrap_or(false) || !shared.pass_signals()
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
