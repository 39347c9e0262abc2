//! One recording from start to end.

mod announce;
mod bring_in;
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
mod program;
mod rest;
mod room;
mod runtime_code;
mod sandbox;
mod sanitizers;
mod sealing;
mod size;
mod stopper;
mod unmatched;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use agent::{
    host::{self, Host},
    shared::{LAST_EXIT, LAST_SIGNALS, RobustOwner, Shared},
};
use store::{
    Reader,
    control::{Control, Snapshot, SnapshotReason},
    log::LogWriter,
    manifest::RecordingId,
    recording::{Created, OnTaken, OpenRecording},
    seal::{Ending, SealOptions, Sealed, SealedPart, Sealer},
};

pub use self::children::{SetOutcome, record_children};
pub(crate) use self::manifest::{
    default_name, logged, new_id, own_stdin, probe_words, start_of, this_machine,
};
use self::{
    bring_in::BringIn,
    manifest::manifest,
    program::{Running, may_need_frida, owner, read_maps, runtime_for},
    runtime_code::RuntimeCode,
    sealing::{Wanted, closed_early, seal_in_background},
};
pub(crate) use self::{
    live_side::{Controlled, LiveSide, publish, space_of},
    program::{check_mapped, refuse_full, way_into},
    stopper::Stopper,
};
use crate::{
    Death, Error, Exit, Observer, OnFull, Outcome, RecordOptions, Result, SnapshotTimes, Target,
    arm::{
        Armer, Filter, Modules,
        patch::{Plan, Prepared},
    },
    capture::{self, watch::Watches},
    clock::{self, Calibration},
    guardian::{Announcer, Guardian},
    live::{FirstProbes, Stdio},
    process::{
        Way, limits,
        spawn::{self, Parked, Pipes},
        stack_limit,
        status::Seccomp,
    },
    signals::{self, ChildSignals},
    snapshot::{self, SharedSnapshots, Snapshots},
    stop::{StopError, StoppedProcess},
    wake::Event,
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

/// Prepares a recording: the program waits at its entry point or, if it was running before, runs unpatched. `live`: it
/// will be controlled, and where its input and output go.
pub(crate) fn prepare(
    options: &RecordOptions,
    filter: &Filter,
    signals: &ChildSignals,
    live: Option<Controlled<'_>>,
    observer: &dyn Observer,
) -> Result<(Session, Plan)> {
    limits::lift_own().map_err(|reason| match &options.target {
        Target::Spawn { argv } => Error::Unsupported {
            path: PathBuf::from(&argv[0]),
            reason,
        },
        Target::Attach { pid, .. } => Error::Attach { pid: *pid, reason },
        Target::Parked(member) => Error::Unsupported {
            path: member.parked.exe.clone(),
            reason,
        },
    })?;
    let once = || prepare_once(options, filter, signals, live, observer);
    match once() {
        // The program has not run yet: starting it again loses nothing.
        Err(Error::Agent(error))
            if error.is_timeout() && matches!(options.target, Target::Spawn { .. }) =>
        {
            once()
        }
        prepared => prepared,
    }
}

fn prepare_once(
    options: &RecordOptions,
    filter: &Filter,
    signals: &ChildSignals,
    live: Option<Controlled<'_>>,
    observer: &dyn Observer,
) -> Result<(Session, Plan)> {
    let calibration = Calibration::begin();
    let start_frida = || host::start(&|message| observer.setup(message));
    let mut host = match &options.target {
        Target::Spawn { argv } if may_need_frida(&argv[0]) => Some(start_frida()?),
        _ => None,
    };
    let (target, pipes) = match &options.target {
        Target::Spawn { argv } => {
            let (started, pipes) = {
                let stdio = live.map_or(&Stdio::Inherit, |live| live.stdio);
                let check = |exe: &Path| way_into(exe).map(drop);
                spawn::start(
                    argv,
                    signals,
                    (stdio, &options.surroundings),
                    check,
                    check_mapped,
                )?
            };
            (Running::spawned(started, argv)?, pipes)
        }
        Target::Attach { pid, .. } => (Running::attached(*pid)?, None),
        Target::Parked(member) => (Running::parked(member)?, None),
    };
    host = match (target.way, host) {
        (Way::Frida, None) => Some(start_frida()?),
        (Way::Frida, some) => some,
        (Way::Loader | Way::LoaderForGo, _) => None,
    };
    let leaves_signals = live.is_none_or(|live| live.is_unattended);
    let shared = shared_memory(options, &target, !leaves_signals)?;
    let (mut session, plan) = Session::prepare(
        options,
        filter.clone(),
        target,
        shared,
        (host.as_deref_mut(), calibration),
        live.map(|live| live.first),
        observer,
    )?;
    session.pipes = pipes;
    Ok((session, plan))
}

/// Creates the memory that the program's threads write to. Under live control the tracer sees which signal ends the
/// program.
fn shared_memory(
    options: &RecordOptions,
    target: &Running,
    is_controlled: bool,
) -> Result<Arc<Shared>> {
    let shared = Shared::create(options.on_full == OnFull::Drop, owner(target.pid))?;
    capture::announce(&options.captures, &shared);
    let at_exit = match options.snapshots {
        SnapshotTimes::Never | SnapshotTimes::AtPauses => 0,
        SnapshotTimes::Every(_) | SnapshotTimes::EveryEvents(_) => LAST_EXIT,
    };
    // Nothing could remove the handlers from a program that is left running.
    let has_handlers = target.spawned && !is_controlled;
    let signals = if has_handlers { LAST_SIGNALS } else { 0 };
    shared.want_last(signals | at_exit);
    if let SnapshotTimes::EveryEvents(count) = options.snapshots {
        shared.copy_every(count.get());
    }
    Ok(Arc::new(shared))
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
    log: LogWriter,
}

/// Memory snapshots.
pub(crate) struct Copies {
    /// `None`: snapshots are off, or one has failed.
    pub(crate) snapshots: Option<SharedSnapshots>,
    /// Time of the last snapshot.
    last: Instant,
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

/// Creates the recording's folder, with the requested name or a free one.
fn create(
    options: &RecordOptions,
    target: &Running,
    mut manifest: store::Manifest,
) -> Result<Created> {
    let program = default_name(target.named_after());
    let (path, on_taken) = match (&options.output, &options.target) {
        // A process's id may have been another's before.
        (Some(path), Target::Parked(_)) => (path.clone(), OnTaken::Number),
        (None, Target::Parked(member)) => (member.set.join(&program), OnTaken::Number),
        (Some(path), _) => (path.clone(), OnTaken::Refuse),
        (None, _) => (program.clone(), OnTaken::Number),
    };
    manifest.run_of = run_of(&path, &program);
    Ok(OpenRecording::create(&path, on_taken, manifest)?)
}

/// Returns the program whose later run a recording is, according to its name: `t` for `t-2`. Sessions and `rerun` choose
/// such names.
fn run_of(path: &Path, program: &Path) -> Option<String> {
    let path = store::recording::with_suffix(path);
    let (name, program) = (path.file_stem()?.to_str()?, program.to_str()?);
    let number = name.strip_prefix(program)?.strip_prefix('-')?;
    number.parse::<u32>().ok().map(|_| program.to_owned())
}

impl Session {
    fn prepare(
        options: &RecordOptions,
        filter: Filter,
        target: Running,
        shared: Arc<Shared>,
        (mut host, calibration): (Option<&mut (dyn Host + 'static)>, Calibration),
        first: Option<&FirstProbes>,
        observer: &dyn Observer,
    ) -> Result<(Self, Plan)> {
        let runtime = runtime_for(target.pid, target.way)?;
        let mut modules = Modules::default();
        let mut armer = Armer::new(filter, options.captures.clone());
        let maps = read_maps(target.pid).map_err(|error| target.why_failed(error))?;
        if let Some(high) = maps.stack_high() {
            shared.set_main_thread(target.pid as u32, high, stack_limit(target.pid));
        }
        modules.update(target.pid, maps.files(), &target.exe, &runtime);
        // Go's runtime asks the kernel for handlers and signal stacks, and would find ours.
        if modules.have_go() {
            shared.pass_signals();
        }
        let mut prepared: Vec<Prepared> = Vec::new();
        let mut plan = Plan::default();
        if !target.ended_early {
            let bring_in = BringIn {
                target: &target,
                shared: &shared,
                runtime: &runtime,
                observer,
            };
            prepared = bring_in
                .agent(host.as_deref_mut(), &mut modules, &mut armer, &mut plan)
                .map_err(|error| target.why_failed(error))?;
        }
        let had_seccomp = Seccomp::of(target.pid);
        let mut watches = Watches::new(&options.captures.watches);
        watches.resolve(&space_of(&modules), &plan.functions, &shared)?;
        watches.warn(observer);
        if let Some(first) = first.filter(|_| !target.ended_early) {
            first_probes::check(first, &space_of(&modules), target.pid)?;
        }
        let manifest = manifest((options, first), &target, host.as_deref(), calibration)?;
        let Created { open, log } = create(options, &target, manifest)?;
        observer.created(open.recording().dir());
        let snapshots = (options.snapshots != SnapshotTimes::Never).then(|| {
            let recording = open.recording();
            let id = recording.manifest().recording_id;
            let snapshots = Snapshots::new(target.pid, recording.dir(), id, &runtime);
            Arc::new(Mutex::new(snapshots))
        });
        let mut session = Self {
            target,
            owner: shared.own(),
            shared,
            arming: Arming {
                armer: Arc::new(Mutex::new(armer)),
                modules,
                watches,
            },
            runtime: Runtime {
                path: runtime,
                code: RuntimeCode::default(),
            },
            writing: Writing { open, log },
            options: options.clone(),
            guardian: None,
            stopper: Stopper::Moment,
            pipes: None,
            live: None,
            copies: Copies {
                snapshots,
                last: Instant::now(),
            },
            death: None,
            so_far: SoFar {
                began: Instant::now(),
                armed: 0,
                skipped: 0,
                forbidden: 0,
                had_seccomp,
                room: room::Room::default(),
                size: size::Size::default(),
            },
        };
        session.find_runtime_code()?;
        session.log_start(prepared, &plan)?;
        Ok((session, plan))
    }

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
        self.target.kill_on_drop = false;
        self.note_snapshot(snapshot)?;
        self.note_changed(changed)
    }

    /// Finds the runtime's code in the program after it was loaded.
    fn find_runtime_code(&mut self) -> Result<()> {
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

    /// Records that memory was copied. After a failure there are no more snapshots.
    fn note_snapshot(&mut self, taken: Option<io::Result<Snapshot>>) -> Result<()> {
        let control = match taken {
            None => return Ok(()),
            Some(Ok(snapshot)) => Control::Snapshot(snapshot),
            Some(Err(error)) => {
                self.copies.snapshots = None;
                Control::Warning {
                    ticks: clock::ticks(),
                    message: format!("memory could not be copied: {error}"),
                }
            }
        };
        Ok(self.writing.log.append_control(&control)?)
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

    /// Drains until the end, then seals.
    pub(crate) fn run(mut self, observer: &dyn Observer) -> Result<Outcome> {
        let wanted = Wanted::default();
        let recording = self.writing.open.recording().clone();
        let options = SealOptions {
            keep_log: self.options.keep_log,
            ..SealOptions::default()
        };
        let failed = |source| Error::system("watch the program")(source);
        let over = Event::new().map_err(failed)?;
        let end = self.target.watch.try_clone().map_err(failed)?;
        let shared = Arc::clone(&self.shared);
        let (ended, sealer) = thread::scope(|scope| {
            let sealing = scope.spawn(|| seal_in_background(&recording, options, &wanted));
            scope.spawn(|| end.wait(&over, || shared.wake()));
            let ended = self.follow(&wanted, observer);
            wanted.stop();
            sealing.thread().unpark();
            over.signal();
            (
                ended,
                sealing.join().unwrap_or_else(|_| Err(closed_early())),
            )
        });
        let ended = ended?;
        if ended.unhooked
            && let Some(guardian) = self.guardian.take()
        {
            let has_become = self.live.as_ref().is_some_and(LiveSide::has_become);
            match ended.exit {
                _ if has_become => guardian.farewell(),
                Exit::Detached => guardian.leave_pipes(),
                Exit::Code(_) | Exit::Signal(_) => guardian.farewell(),
            }
        }
        // Checked at the end, since plugins loaded later may have had such functions.
        let filter = self.armer().filter().clone();
        for warning in unmatched::warnings(&filter, &self.arming.modules.loaded) {
            observer.warning(&warning);
        }
        let duration_ns = self.so_far.began.elapsed().as_nanos() as u64;
        let outlives =
            self.so_far.size.is_reached && matches!(self.options.target, Target::Spawn { .. });
        let pid = self.target.pid;
        let (sealed, incomplete) = self.close(ended.incomplete, sealer, observer);
        let is_left = sealed.is_none() && incomplete.is_none();
        let counted = match &sealed {
            Some(sealed) => Some((sealed.events, calls_of(&sealed.parts))),
            None if is_left => None,
            None => counted(&recording),
        };
        let (events, calls) = counted.unwrap_or_default();
        Ok(Outcome {
            bytes_on_disk: folder_bytes(recording.dir()),
            is_left,
            is_counted: counted.is_some(),
            recording: recording.dir().to_path_buf(),
            events,
            calls,
            threads: ended.threads,
            gaps_lost: ended.lost,
            duration_ns,
            armed: ended.armed,
            skipped: ended.skipped,
            exit: match outlives {
                true => size::end_of(pid),
                false => ended.exit,
            },
            death: ended.death,
            incomplete,
        })
    }

    /// Closes the log, seals the rest and removes the mark of an unfinished recording.
    fn close(
        self,
        incomplete: Option<String>,
        sealer: store::Result<Sealer>,
        observer: &dyn Observer,
    ) -> (Option<Sealed>, Option<String>) {
        drop(self.owner);
        if let Some(why) = &incomplete {
            let why = why.strip_prefix(follow::ENDS_HERE).unwrap_or(why);
            self.writing.open.ended_early(why);
        }
        let closed = self.writing.log.close();
        let sealed = sealer.and_then(|sealer| {
            // Earlier signals were for the program.
            let _ = signals::take();
            sealer.finish_while(Ending::Close, |progress| {
                observer.sealing(progress.events, progress.bytes_done, progress.bytes_total);
                signals::received() != Some(libc::SIGINT)
            })
        });
        let result = match (closed, sealed) {
            (Ok(closed), Ok(sealed)) => match incomplete {
                None => self
                    .writing
                    .open
                    .close(closed)
                    .map(|_| (Some(sealed), None)),
                Some(reason) => Ok((Some(sealed), Some(reason))),
            },
            (Err(error), Ok(sealed)) => Ok((Some(sealed), incomplete.or(Some(error.one_line())))),
            // The log is complete: the next reader seals the rest.
            (Ok(closed), Err(store::Error::SealingLeft)) => {
                self.writing.open.close(closed).map(|_| (None, incomplete))
            }
            (_, Err(error)) => Ok((None, incomplete.or(Some(error.one_line())))),
        };
        result.unwrap_or_else(|error: store::Error| (None, Some(error.one_line())))
    }
}

fn calls_of(parts: &[SealedPart]) -> u64 {
    parts.iter().map(|part| part.part.calls).sum()
}

/// The events and calls of a recording that could not be sealed, where it lies. A reader's folder may have more room.
fn counted(recording: &store::Recording) -> Option<(u64, u64)> {
    let reader = Reader::open(recording.dir(), &store::temp_dir()).ok()?;
    Some((reader.events(), calls_of(reader.parts())))
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
    if base != 0 {
        armer.lay_out(prepared, base, plan);
    } else if prepared.region_bytes() != 0 {
        observer.warning("no room for hooks near a module; its functions are not traced");
    }
}

fn lock(armer: &Mutex<Armer>) -> MutexGuard<'_, Armer> {
    armer.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn folder_bytes(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    let lengths = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    lengths.sum()
}
