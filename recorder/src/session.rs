//! One recording from start to end.

mod announce;
mod follow;
mod manifest;
mod program;
mod sealing;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering::Release},
    thread,
    time::{Duration, Instant},
};

use agent::{
    host::{self, Host, wheel::WheelHost},
    shared::{RobustOwner, Shared},
};
use store::{
    log::LogWriter,
    recording::{Created, OnTaken, OpenRecording},
    seal::{Ending, SealOptions, Sealed, Sealer},
};

use self::{
    manifest::{default_name, manifest},
    program::{Running, about_target, check_executable, owner, read_maps, runtime_for},
    sealing::{Wanted, closed_early, seal_in_background},
};
use crate::{
    Error, Observer, OnFull, Outcome, RecordOptions, Result, Target,
    arm::{
        Armer, Filter, Modules,
        patch::{Plan, Prepared},
    },
    clock::Calibration,
    guardian::Guardian,
    process::{spawn, stack_limit},
    signals::ChildSignals,
    stop::{StopError, StoppedProcess, while_stopped},
};

/// How long the threads of a program may take to stop; they usually need less than a millisecond.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// How long a thread that loads a module may take to reserve memory.
const RESERVE_PATIENCE: Duration = Duration::from_secs(2);
/// How often a place for code is looked for before giving up: others map memory too.
const RESERVE_TRIES: u32 = 4;

/// Records a program until it ends, or until the recording of an attached one is ended.
///
/// # Errors
/// When the program cannot be started, attached to or recorded. One that was started is killed then; one that was
/// attached to goes on.
pub fn record(options: RecordOptions, observer: &dyn Observer) -> Result<Outcome> {
    let filter = Filter::new(&options.include, &options.exclude)?;
    let signals = ChildSignals::watch();
    let begun = match begin(&options, &filter, &signals, observer) {
        // The program has not run yet: nothing is lost by starting it once more.
        Err(Error::Agent(agent::Error::HelperStuck { .. }))
            if matches!(options.target, Target::Spawn { .. }) =>
        {
            begin(&options, &filter, &signals, observer)
        }
        begun => begun,
    };
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
    let calibration = Calibration::begin();
    let mut host = WheelHost::start(&|message| observer.setup(message))?;
    let target = match &options.target {
        Target::Spawn { argv } => {
            let started = spawn::start(argv, signals, check_executable)?;
            Running::spawned(started, argv)?
        }
        Target::Attach { pid, .. } => Running::attached(*pid)?,
    };
    Session::begin(
        options,
        filter.clone(),
        target,
        &mut host,
        calibration,
        observer,
    )
}

/// A recording in the making.
struct Session {
    target: Running,
    shared: Arc<Shared>,
    /// From before the program runs until its rings are drained, on the thread that drains.
    owner: RobustOwner,
    armer: Armer,
    modules: Modules,
    runtime: PathBuf,
    open: OpenRecording,
    log: LogWriter,
    options: RecordOptions,
    guardian: Option<Guardian>,
    began: Instant,
    armed: u64,
    skipped: u64,
}

impl Session {
    fn begin(
        options: &RecordOptions,
        filter: Filter,
        target: Running,
        host: &mut WheelHost,
        calibration: Calibration,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::create(
            options.on_full == OnFull::Drop,
            owner(target.pid),
        )?);
        let runtime = runtime_for(target.pid)?;
        let mut modules = Modules::default();
        let mut armer = Armer::new(filter);
        let maps = read_maps(target.pid)?;
        if let Some(high) = maps.stack_high() {
            shared.set_main_thread(target.pid as u32, high, stack_limit(target.pid));
        }
        modules.update(target.pid, maps.files(), &target.exe, &runtime);
        let mut prepared: Vec<Prepared> = Vec::new();
        let mut plan = Plan::default();
        let ended_early = target.spawned && target.parked.is_none();
        if !ended_early {
            // The files are read while Frida finds its way in.
            let started = thread::scope(|scope| {
                scope.spawn(|| shared.populate_first_ring());
                let files = scope.spawn(|| {
                    modules
                        .loaded
                        .iter()
                        .map(|module| armer.prepare(module))
                        .collect::<Vec<_>>()
                });
                let started = host.ready().map(drop).and_then(|()| {
                    host::start_runtime(
                        host,
                        target.pid,
                        &runtime.to_string_lossy(),
                        &shared.path(),
                    )
                });
                prepared = files.join().expect("preparing does not panic");
                started
            });
            let started = started.map_err(|error| about_target(error, &target))?;
            shared.set_target_base(started.shared);
            armer.runtime_started(started);
            for (module, prepared) in modules.loaded.iter().zip(&mut prepared) {
                armer.prepare_replacements(module, prepared);
            }
            for prepared in &mut prepared {
                let base = reserve(prepared, target.pid, |address, bytes| {
                    host::reserve(host, address, bytes).map_err(Error::from)
                })?;
                lay_out(&mut armer, prepared, base, &mut plan, observer);
            }
            host.detach()?;
            host::wait_until_gone(target.pid)?;
            // Frida leaves a few libraries behind that its agent needed.
            modules.ignore(&read_maps(target.pid)?.files());
        }
        let manifest = manifest(options, &target, host, calibration)?;
        let path = options
            .output
            .clone()
            .unwrap_or_else(|| default_name(target.named_after()));
        let on_taken = if options.output.is_some() {
            OnTaken::Refuse
        } else {
            OnTaken::Number
        };
        let Created { open, log } = OpenRecording::create(&path, on_taken, manifest)?;
        let mut session = Self {
            target,
            owner: shared.own(),
            shared,
            armer,
            modules,
            runtime,
            open,
            log,
            options: options.clone(),
            guardian: None,
            began: Instant::now(),
            armed: 0,
            skipped: 0,
        };
        session.log_start(prepared, &plan)?;
        if session.armed == 0 && !options.include.is_empty() {
            observer.warning("no function matches the patterns given with -f; `hindsight sql REC \"SELECT name FROM functions\"` of a recording without -f lists names");
        }
        if !ended_early {
            session.release(&plan)?;
        }
        Ok(session)
    }

    /// Writes the patches and lets a parked program go.
    fn release(&mut self, plan: &Plan) -> Result<()> {
        self.announce_to_guardian(plan)?;
        let parked = self.target.parked.take();
        let armer = &mut self.armer;
        let changed = stop_after_frida(self.target.pid, |process| {
            let changed = armer.apply(plan, process);
            if let Some(parked) = &parked {
                process.write(parked.entry, &parked.original)?;
                process.set_regs(parked.pid, &parked.registers)?;
            }
            changed
        })??;
        self.target.kill_on_drop = false;
        self.note_changed(changed)
    }

    fn announce_to_guardian(&mut self, plan: &Plan) -> Result<()> {
        if self.guardian.is_none()
            && let Some(command) = &self.options.guardian
        {
            self.guardian = Some(Guardian::start(command, self.target.pid)?);
        }
        if let Some(guardian) = &mut self.guardian {
            guardian.tell(plan.patches());
        }
        Ok(())
    }

    /// Drains until the end, then seals.
    fn run(mut self, observer: &dyn Observer) -> Result<Outcome> {
        let wanted = Wanted::default();
        let recording = self.open.recording().clone();
        let options = SealOptions {
            keep_log: self.options.keep_log,
            ..SealOptions::default()
        };
        let (ended, sealer) = thread::scope(|scope| {
            let sealing = scope.spawn(|| seal_in_background(&recording, options, &wanted));
            let ended = self.follow(&wanted.rest, observer);
            wanted.stop.store(true, Release);
            (
                ended,
                sealing.join().unwrap_or_else(|_| Err(closed_early())),
            )
        });
        let ended = ended?;
        if ended.unhooked
            && let Some(guardian) = self.guardian.take()
        {
            guardian.farewell();
        }
        let duration_ns = self.began.elapsed().as_nanos() as u64;
        let (sealed, incomplete) = self.close(ended.incomplete, sealer, observer);
        if sealed.is_some()
            && incomplete.is_none()
            && let Err(error) = store::catalog::rebuild(&recording)
        {
            // Readers go on without it.
            observer.warning(&chain(&error));
        }
        Ok(Outcome {
            bytes_on_disk: folder_bytes(recording.dir()),
            recording: recording.dir().to_path_buf(),
            events: sealed.as_ref().map_or(0, |sealed| sealed.events),
            calls: sealed.as_ref().map_or(0, |sealed| {
                sealed.parts.iter().map(|part| part.part.calls).sum()
            }),
            threads: ended.threads,
            gaps_lost: ended.lost,
            duration_ns,
            armed: ended.armed,
            skipped: ended.skipped,
            exit: ended.exit,
            incomplete,
        })
    }

    /// Ends the log, seals what is left and removes the mark of an unfinished recording.
    fn close(
        self,
        incomplete: Option<String>,
        sealer: store::Result<Sealer>,
        observer: &dyn Observer,
    ) -> (Option<Sealed>, Option<String>) {
        drop(self.owner);
        let closed = self.log.close();
        let sealed = sealer.and_then(|sealer| {
            sealer.finish(Ending::Close, |progress| {
                observer.sealing(progress.events, progress.bytes_done, progress.bytes_total);
            })
        });
        let result = match (closed, sealed) {
            (Ok(closed), Ok(sealed)) => match incomplete {
                None => self.open.close(closed).map(|_| (Some(sealed), None)),
                Some(reason) => Ok((Some(sealed), Some(reason))),
            },
            (Err(error), Ok(sealed)) => Ok((Some(sealed), incomplete.or(Some(chain(&error))))),
            (_, Err(error)) => Ok((None, incomplete.or(Some(chain(&error))))),
        };
        result.unwrap_or_else(|error: store::Error| (None, Some(chain(&error))))
    }
}

/// Stops the program as soon as Frida has let go of it, which it does after it says so.
fn stop_after_frida<R: Send>(
    pid: i32,
    mut work: impl FnMut(&mut StoppedProcess) -> R + Send,
) -> Result<R, StopError> {
    let deadline = Instant::now() + STOP_PATIENCE;
    loop {
        match while_stopped(pid, STOP_PATIENCE, &mut work) {
            Err(StopError::AlreadyTraced { .. }) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1))
            }
            result => return result,
        }
    }
}

/// Finds room for a module's code; `try_at` reserves it. 0 where nothing is needed or no room was found.
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

/// An error and what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

fn folder_bytes(dir: &Path) -> u64 {
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
