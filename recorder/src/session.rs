//! One recording from start to end.

mod announce;
mod bring_in;
mod catching;
mod children;
mod copies;
mod entering;
mod first_probes;
mod follow;
mod idle_core;
mod last;
mod live_side;
mod manifest;
mod more;
mod prepare;
mod program;
mod release;
mod rest;
mod room;
mod run;
mod runtime_code;
mod sandbox;
mod sanitizers;
mod sealing;
mod size;
mod stopper;
mod unmatched;

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use agent::shared::{RobustOwner, Shared};
use store::{
    control::{Control, Snapshot},
    manifest::RecordingId,
    recording::OpenRecording,
};

pub use self::children::{SetOutcome, record_children};
pub(crate) use self::manifest::{
    alone, default_name, logged, new_id, own_stdin, probe_words, start_of, this_machine,
};
pub use self::program::why_not_recorded;
pub(crate) use self::{
    live_side::{Controlled, LiveSide, publish, space_of},
    prepare::{prepare, run_of},
    program::{check_mapped, executable_of, refuse_full, way_into, way_into_running},
    run::folder_bytes,
    stopper::Stopper,
};
use self::{
    program::{Running, read_maps},
    runtime_code::RuntimeCode,
};
use crate::{
    Death, Observer, Outcome, RecordOptions, Result,
    arm::{
        Armer, Filter, Modules,
        patch::{Plan, Prepared},
    },
    capture::watch::Watches,
    drain::Log,
    guardian::Guardian,
    process::{spawn::Pipes, status::Seccomp},
    signals::ChildSignals,
    snapshot::SharedSnapshots,
};

/// Time limit for the threads of a program to stop. They usually need less than a millisecond.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for a thread that loads a module to reserve memory.
const RESERVE_PATIENCE: Duration = Duration::from_secs(2);
/// Number of attempts to find a place for code: other threads map memory too.
const RESERVE_TRIES: u32 = 4;

/// Records a program until it ends, or until the recording of an attached one is ended.
///
/// # Errors
/// If the program cannot be started, attached to or recorded. A started program is then killed; an attached one
/// continues.
pub fn record(options: RecordOptions, observer: &dyn Observer) -> Result<Outcome> {
    let filter = options.filter()?;
    let signals = ChildSignals::watch();
    let begun = begin(&options, &filter, &signals, observer);
    let outcome = begun.and_then(|session| session.run(observer));
    signals.restore();
    outcome
}

fn begin(
    options: &RecordOptions,
    filter: &Filter,
    signals: &ChildSignals,
    observer: &dyn Observer,
) -> Result<Session> {
    let (mut session, plan) = prepare(options, filter, signals, None, observer)?;
    session.release(plan)?;
    Ok(session)
}

/// A recording in progress.
pub(crate) struct Session {
    pub(crate) target: Running,
    pub(crate) shared: Arc<Shared>,
    /// Held by the draining thread from before the program runs until its rings are drained.
    owner: RobustOwner,
    pub(crate) arming: Arming,
    pub(crate) runtime: Runtime,
    writing: Writing,
    options: RecordOptions,
    guardian: Option<Guardian>,
    stopper: Stopper,
    pub(crate) pipes: Option<Pipes>,
    live: Option<LiveSide>,
    pub(crate) copies: Copies,
    death: Option<Death>,
    so_far: SoFar,
}

pub(crate) use more::More;

pub(crate) struct Arming {
    armer: Arc<Mutex<Armer>>,
    pub(crate) modules: Modules,
    watches: Watches,
}

/// The runtime library in the program.
pub(crate) struct Runtime {
    pub(crate) path: PathBuf,
    code: RuntimeCode,
}

struct Writing {
    open: OpenRecording,
    log: Log,
    unbegun: Unbegun,
}

/// The folder of a recording whose program does not run yet: a start that fails leaves nothing behind.
struct Unbegun(Option<PathBuf>);

impl Drop for Unbegun {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            // If it cannot be removed, `check` identifies it.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Memory snapshots.
pub(crate) struct Copies {
    /// `None`: snapshots are off, or one has failed.
    pub(crate) snapshots: Option<SharedSnapshots>,
    /// Time of the last snapshot.
    last: Instant,
    /// Up to then, each snapshot that was due by time is taken or recorded as missing.
    counted: Instant,
}

struct SoFar {
    began: Instant,
    armed: u64,
    skipped: u64,
    /// How many times a thread was found that must not read the time stamp counter.
    forbidden: u32,
    /// The program's system call restrictions before it was recorded.
    had_seccomp: Seccomp,
    room: room::Room,
    size: size::Size,
}

impl Session {
    /// Records that memory was copied. After a failure there are no more snapshots.
    fn note_snapshot(&mut self, taken: Option<io::Result<Snapshot>>) -> Result<()> {
        match taken {
            None => Ok(()),
            Some(Ok(snapshot)) => {
                let snapshot = Control::Snapshot(snapshot);
                Ok(self.writing.log.append_control(&snapshot)?)
            }
            Some(Err(error)) => {
                self.copies.snapshots = None;
                self.note_warning(format!("memory could not be copied: {error}"))
            }
        }
    }

    pub(crate) fn recording_id(&self) -> RecordingId {
        self.writing.open.recording().manifest().recording_id
    }

    pub(crate) fn recording_dir(&self) -> PathBuf {
        self.writing.open.recording().dir().to_path_buf()
    }

    fn armer(&self) -> MutexGuard<'_, Armer> {
        lock(&self.arming.armer)
    }
}

/// Finds room for a module's code; `try_at` reserves it. Returns 0 if no memory is needed or no room was found.
fn reserve(
    prepared: &Prepared,
    pid: i32,
    mut try_at: impl FnMut(u64, u64) -> Result<bool>,
) -> Result<u64> {
    let bytes = prepared.region_bytes();
    for _ in 0..RESERVE_TRIES {
        if bytes == 0 {
            break;
        }
        let Some(place) = prepared.place(&read_maps(pid)?.ranges()) else {
            break;
        };
        if try_at(place, bytes)? {
            return Ok(place);
        }
    }
    Ok(0)
}

fn lay_out(
    armer: &mut Armer,
    prepared: &mut Prepared,
    base: u64,
    plan: &mut Plan,
    observer: &dyn Observer,
) {
    prepared.tell(plan);
    if base != 0 {
        armer.lay_out(prepared, base, plan);
    } else if prepared.region_bytes() != 0 {
        observer.warning(&"no room for hooks near a module; its functions are not traced".into());
    }
}

fn lock(armer: &Mutex<Armer>) -> MutexGuard<'_, Armer> {
    armer.lock().unwrap_or_else(PoisonError::into_inner)
}
