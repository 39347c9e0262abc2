//! One recording from start to end.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};

use agent::{
    host::{self, Host, wheel::WheelHost},
    runtime,
    shared::{RobustOwner, Shared},
};
use store::{
    control::Control,
    format::FORMAT_VERSION,
    log::LogWriter,
    manifest::{Host as Machine, Manifest, RecordingId, Settings},
    recording::{Created, OnTaken, OpenRecording},
    seal::{Ending, SealOptions, Sealed, Sealer},
};

use crate::{
    Error, Exit, Observer, OnFull, Outcome, RecordOptions, Result, Target,
    arm::{
        Armer, Filter, Modules,
        patch::{Plan, Prepared},
    },
    clock::{self, Calibration},
    drain::Drain,
    process::{ExitWatch, Maps, spawn, stack_limit},
    signals::{self, ChildSignals},
    stop::{StopError, StoppedProcess, while_stopped},
};

/// How long the threads of a program may take to stop; they usually need less than a millisecond.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// How long a thread that loads a module may take to reserve memory.
const RESERVE_PATIENCE: Duration = Duration::from_secs(2);
/// How often a place for code is looked for before giving up: others map memory too.
const RESERVE_TRIES: u32 = 4;
/// The longest pause between two looks into the rings.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
const SEAL_STEP_EVENTS: u64 = 1 << 18;

/// Records a program until it ends, or until the recording of an attached one is ended.
///
/// # Errors
/// When the program cannot be started, attached to or recorded. One that was started is killed then; one that was
/// attached to goes on.
pub fn record(options: RecordOptions, observer: &dyn Observer) -> Result<Outcome> {
    let filter = Filter::new(&options.include, &options.exclude)?;
    let calibration = Calibration::begin();
    let signals = ChildSignals::watch();
    let mut host = WheelHost::start(&|message| observer.setup(message))?;
    let result = match &options.target {
        Target::Spawn { argv } => {
            let started = spawn::start(argv, &signals, check_executable)?;
            let target = Running::spawned(started, argv)?;
            Session::begin(&options, filter, target, &mut host, calibration, observer)
        }
        Target::Attach { pid, .. } => {
            let target = Running::attached(*pid)?;
            Session::begin(&options, filter, target, &mut host, calibration, observer)
        }
    };
    drop(host);
    let outcome = result.and_then(|session| session.run(observer));
    signals.restore();
    outcome
}

/// The process being recorded.
struct Running {
    pid: i32,
    exe: PathBuf,
    argv: Vec<String>,
    cwd: String,
    watch: ExitWatch,
    /// It waits at its entry point (spawned), or ended before it got there.
    parked: Option<spawn::Parked>,
    spawned: bool,
    /// A child that was never let go is killed.
    kill_on_drop: bool,
}

impl Running {
    fn spawned(started: spawn::Started, argv: &[OsString]) -> Result<Self> {
        let (pid, exe, parked) = match started {
            spawn::Started::Parked(parked) => (parked.pid, parked.exe.clone(), Some(parked)),
            spawn::Started::Ended(pid) => (pid, PathBuf::from(&argv[0]), None),
        };
        Ok(Self {
            pid,
            exe,
            argv: argv
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            cwd: std::env::current_dir()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            watch: ExitWatch::new(pid, true).map_err(Error::system("watch the program"))?,
            kill_on_drop: parked.is_some(),
            parked,
            spawned: true,
        })
    }

    fn attached(pid: i32) -> Result<Self> {
        let reason = |source: io::Error| match source.raw_os_error() {
            Some(libc::ESRCH | libc::EINVAL) => "there is no such process".to_owned(),
            _ => source.to_string(),
        };
        let watch = ExitWatch::new(pid, false).map_err(|source| Error::Attach {
            pid,
            reason: reason(source),
        })?;
        let exe = fs::read_link(format!("/proc/{pid}/exe")).map_err(|source| {
            let reason = match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "not permitted; try as root or as the user who runs it".to_owned()
                }
                io::ErrorKind::NotFound => {
                    "it has no program: a kernel thread, or a process that has ended".to_owned()
                }
                _ => source.to_string(),
            };
            Error::Attach { pid, reason }
        })?;
        check_executable(&exe)?;
        let argv = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = argv
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty());
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        Ok(Self {
            pid,
            exe,
            argv: words
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect(),
            cwd: cwd.to_string_lossy().into_owned(),
            watch,
            parked: None,
            spawned: false,
            kill_on_drop: false,
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.kill_on_drop {
            spawn::kill(self.pid);
        }
    }
}

/// Refuses what cannot be recorded, before anything of it runs.
fn check_executable(exe: &PathBuf) -> Result<()> {
    let refuse = |reason: String| Error::Unsupported {
        path: exe.clone(),
        reason,
    };
    let module = debuginfo::Module::open(exe).map_err(|error| refuse(error.to_string()))?;
    if module.interp().is_none() {
        return Err(refuse("it is statically linked, and Hindsight needs the dynamic linker to load its agent; link it dynamically".into()));
    }
    Ok(())
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
            .unwrap_or_else(|| default_name(&target.exe));
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

    /// Writes what is known before the first record: the process, its modules, its functions.
    fn log_start(&mut self, prepared: Vec<Prepared>, plan: &Plan) -> Result<()> {
        let ticks = clock::ticks();
        let start = Control::ProcessStart {
            ticks,
            pid: self.target.pid as u32,
            argv: self.target.argv.clone(),
            exe: self.target.exe.to_string_lossy().into_owned(),
            cwd: self.target.cwd.clone(),
            attached: !self.target.spawned,
        };
        self.log.append_control(&start)?;
        let numbers: Vec<u32> = self
            .modules
            .loaded
            .iter()
            .map(|module| module.number)
            .collect();
        self.log_modules(&numbers)?;
        self.log_probes(
            prepared
                .into_iter()
                .flat_map(|prepared| prepared.skipped)
                .collect(),
            plan,
        )
    }

    fn log_modules(&mut self, numbers: &[u32]) -> Result<()> {
        for number in numbers {
            let Some(module) = self.modules.by_number(*number) else {
                continue;
            };
            let load = Control::ModuleLoad {
                ticks: clock::ticks(),
                module: module.number,
                path: module.file.path.to_string_lossy().into_owned(),
                build_id: module
                    .elf
                    .as_ref()
                    .and_then(|elf| elf.build_id())
                    .map(str::to_owned),
                addr: module.file.range.start,
                size: module.file.range.end - module.file.range.start,
                system: module.is_system,
            };
            self.log.append_control(&load)?;
            if let Some(problem) = &module.problem {
                let message = format!("{} is not traced: {problem}", module.file.path.display());
                self.log.append_control(&Control::Warning {
                    ticks: clock::ticks(),
                    message,
                })?;
            }
        }
        Ok(())
    }

    fn log_probes(&mut self, skipped: Vec<Control>, plan: &Plan) -> Result<()> {
        self.skipped += skipped.len() as u64;
        self.armed += plan.functions.len() as u64;
        for control in &skipped {
            self.log.append_control(control)?;
        }
        for function in &plan.functions {
            self.log
                .append_control(&Control::Function(function.clone()))?;
        }
        Ok(())
    }

    /// Writes the patches and lets a parked program go.
    fn release(&mut self, plan: &Plan) -> Result<()> {
        let parked = self.target.parked.take();
        let armer = &mut self.armer;
        let changed = stop_after_frida(self.target.pid, |process| {
            let changed = armer.apply(plan, process);
            if let Some(parked) = &parked {
                process.write(parked.entry, &parked.original)?;
                process.set_rip(parked.pid, parked.entry)?;
            }
            changed
        })??;
        self.target.kill_on_drop = false;
        self.note_changed(changed)
    }

    fn note_changed(&mut self, changed: Vec<u64>) -> Result<()> {
        if changed.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{} functions are not traced: their code in memory is not the file's",
            changed.len()
        );
        Ok(self.log.append_control(&Control::Warning {
            ticks: clock::ticks(),
            message,
        })?)
    }

    /// Drains until the end, then seals.
    fn run(mut self, observer: &dyn Observer) -> Result<Outcome> {
        let stop_sealing = AtomicBool::new(false);
        let recording = self.open.recording().clone();
        let options = SealOptions {
            keep_log: self.options.keep_log,
            ..SealOptions::default()
        };
        let (ended, sealer) = thread::scope(|scope| {
            let sealing = scope.spawn(|| seal_in_background(&recording, options, &stop_sealing));
            let ended = self.follow(observer);
            stop_sealing.store(true, Release);
            (
                ended,
                sealing.join().unwrap_or_else(|_| Err(closed_early())),
            )
        });
        let ended = ended?;
        let duration_ns = self.began.elapsed().as_nanos() as u64;
        let (sealed, incomplete) = self.close(ended.incomplete, sealer, observer);
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

    /// Moves records to the log until the program has ended or the recording is to end.
    fn follow(&mut self, observer: &dyn Observer) -> Result<Ended> {
        let shared = Arc::clone(&self.shared);
        let mut drain = Drain::new(&shared, self.target.pid);
        let mut incomplete = None;
        let mut pause = Duration::ZERO;
        let exit = loop {
            // Asked before the pass: what a process wrote before it ended is in the rings.
            let exit = self.target.watch.poll();
            let moved = self.pass(&mut drain, &mut incomplete, observer);
            if let Some(exit) = exit {
                break exit;
            }
            if self.is_to_end() {
                break self.detach(&shared, &mut drain, &mut incomplete, observer);
            }
            self.look_at_modules(&shared, &mut incomplete, observer)?;
            pause = if moved == 0 {
                (pause * 2).clamp(Duration::from_micros(20), LONGEST_PAUSE)
            } else {
                Duration::ZERO
            };
            if !pause.is_zero() {
                thread::sleep(pause);
            }
        };
        self.pass(&mut drain, &mut incomplete, observer);
        self.log_end(exit, &mut incomplete);
        let lost = drain.lost();
        let threads = drain.threads() + shared.taken().count() as u64;
        Ok(Ended {
            exit,
            incomplete,
            lost,
            threads,
            armed: self.armed,
            skipped: self.skipped,
        })
    }

    fn pass(
        &mut self,
        drain: &mut Drain<'_>,
        incomplete: &mut Option<String>,
        observer: &dyn Observer,
    ) -> u64 {
        drain.pass(&mut self.log).unwrap_or_else(|error| {
            drain.discard();
            let message = format!(
                "the recording ends here, the program goes on: {}",
                chain(&error)
            );
            observer.warning(&message);
            incomplete.get_or_insert(message);
            0
        })
    }

    fn log_end(&mut self, exit: Exit, incomplete: &mut Option<String>) {
        let ticks = clock::ticks();
        let end = match exit {
            Exit::Code(code) => Control::ProcessExit {
                ticks,
                code: Some(code),
                signal: None,
            },
            Exit::Signal(signal) => Control::ProcessExit {
                ticks,
                code: None,
                signal: Some(signal),
            },
            Exit::Detached if self.target.watch.poll().is_some() => Control::ProcessExit {
                ticks,
                code: None,
                signal: None,
            },
            Exit::Detached => Control::Detached { ticks },
        };
        if incomplete.is_none() {
            let written = self
                .log
                .append_control(&end)
                .and_then(|()| self.log.append_watermark(clock::ticks()));
            *incomplete = written.err().map(|error| chain(&error));
        }
    }

    /// Has the user, or the time asked for, ended the recording? Passes signals on to a program that we started.
    fn is_to_end(&self) -> bool {
        let signal = signals::take();
        match (&self.options.target, signal) {
            (Target::Spawn { .. }, Some(signal @ (libc::SIGTERM | libc::SIGHUP))) => {
                self.target.watch.signal(signal);
                false
            }
            (Target::Spawn { .. }, _) => false,
            (Target::Attach { .. }, Some(_)) => true,
            (Target::Attach { duration, .. }, None) => {
                duration.is_some_and(|duration| self.began.elapsed() >= duration)
            }
        }
    }

    /// Takes all patches back and leaves the program running.
    fn detach(
        &mut self,
        shared: &Shared,
        drain: &mut Drain<'_>,
        incomplete: &mut Option<String>,
        observer: &dyn Observer,
    ) -> Exit {
        let armer = &mut self.armer;
        let taken_back = while_stopped(self.target.pid, STOP_PATIENCE, |process| {
            armer.take_back(process)
        });
        self.pass(drain, incomplete, observer);
        shared.stop();
        match taken_back {
            Ok(Ok(())) => Exit::Detached,
            Ok(Err(error)) | Err(error) => {
                if self.target.watch.poll().is_none() {
                    observer.warning(&format!(
                        "the program could not be unhooked and goes on with inactive hooks: {}",
                        chain(&error)
                    ));
                }
                Exit::Detached
            }
        }
    }

    /// Arms modules that a thread has just loaded; the thread waits until then.
    fn look_at_modules(
        &mut self,
        shared: &Shared,
        incomplete: &mut Option<String>,
        observer: &dyn Observer,
    ) -> Result<()> {
        let asked = shared.modules_asked();
        if asked == shared.modules_answered() {
            return Ok(());
        }
        let result = self.arm_new_modules(shared, observer);
        shared.answer_modules(asked);
        match result {
            Err(Error::Store(error)) => {
                incomplete.get_or_insert(chain(&error));
                Ok(())
            }
            // A module that cannot be armed is no reason to lose the recording.
            Err(error) => {
                let message = format!(
                    "a module that was just loaded is not traced: {}",
                    chain(&error)
                );
                observer.warning(&message);
                Ok(self.log.append_control(&Control::Warning {
                    ticks: clock::ticks(),
                    message,
                })?)
            }
            Ok(()) => Ok(()),
        }
    }

    fn arm_new_modules(&mut self, shared: &Shared, observer: &dyn Observer) -> Result<()> {
        let Ok(maps) = Maps::read(self.target.pid) else {
            return Ok(());
        };
        let change = self.modules.update(
            self.target.pid,
            maps.files(),
            &self.target.exe,
            &self.runtime,
        );
        for module in change.removed {
            self.armer.forget(&module.file.range);
            self.log.append_control(&Control::ModuleUnload {
                ticks: clock::ticks(),
                module: module.number,
            })?;
        }
        if change.added.is_empty() {
            return Ok(());
        }
        self.log_modules(&change.added)?;
        let mut plan = Plan::default();
        let mut skipped = Vec::new();
        for number in change.added {
            let Some(module) = self.modules.by_number(number) else {
                continue;
            };
            let mut prepared = self.armer.prepare(module);
            self.armer.prepare_replacements(module, &mut prepared);
            let base = reserve(&prepared, self.target.pid, |address, bytes| {
                Ok(shared
                    .reserve(address, bytes, RESERVE_PATIENCE)
                    .unwrap_or(false))
            })?;
            lay_out(&mut self.armer, &mut prepared, base, &mut plan, observer);
            skipped.append(&mut prepared.skipped);
        }
        self.log_probes(skipped, &plan)?;
        self.release(&plan)
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

/// How the draining ended.
struct Ended {
    exit: Exit,
    incomplete: Option<String>,
    lost: u64,
    threads: u64,
    armed: u64,
    skipped: u64,
}

/// Seals as the log grows, at the lowest priority: where a core is idle.
fn seal_in_background(
    recording: &store::Recording,
    options: SealOptions,
    stop: &AtomicBool,
) -> store::Result<Sealer> {
    set_priority(libc::SCHED_IDLE);
    let mut sealer = Sealer::own(recording, options)?;
    while !stop.load(Acquire) {
        if sealer.step(SEAL_STEP_EVENTS)?.caught_up {
            thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(sealer)
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

fn set_priority(policy: i32) {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is ours; without the right to change it, the priority stays as it was.
    unsafe { libc::sched_setscheduler(0, policy, &none) };
}

fn closed_early() -> store::Error {
    store::Error::Io {
        action: "seal",
        path: PathBuf::new(),
        source: io::Error::other("the sealing thread ended early"),
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

fn read_maps(pid: i32) -> Result<Maps> {
    Maps::read(pid).map_err(Error::system("read what the program has mapped"))
}

/// The library to load: a copy of its own for a process that an earlier recording left it in.
fn runtime_for(pid: i32) -> Result<PathBuf> {
    let library = runtime::library_path()?;
    let mapped =
        |path: &Path| read_maps(pid).map(|maps| maps.files().iter().any(|file| file.path == path));
    let mut candidate = library.clone();
    let mut number = 2;
    while mapped(&candidate)? {
        candidate = library.with_extension(format!("{number}.so"));
        number += 1;
    }
    if candidate != library {
        fs::copy(&library, &candidate).map_err(Error::system("copy the agent's library"))?;
    }
    Ok(candidate)
}

fn about_target(error: agent::Error, target: &Running) -> Error {
    match &error {
        agent::Error::Frida { message, .. } if !target.spawned => Error::Attach {
            pid: target.pid,
            reason: format!("{message}; is it yours, and is no debugger attached?"),
        },
        _ => error.into(),
    }
}

fn owner(pid: i32) -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{pid}")).map_or(u32::MAX, |metadata| metadata.uid())
}

fn default_name(exe: &Path) -> PathBuf {
    exe.file_name()
        .map_or_else(|| "recording".into(), PathBuf::from)
}

fn manifest(
    options: &RecordOptions,
    target: &Running,
    host: &WheelHost,
    calibration: Calibration,
) -> Result<Manifest> {
    let mut id = [0; 16];
    fs::File::open("/dev/urandom")
        .and_then(|mut random| io::Read::read_exact(&mut random, &mut id))
        .map_err(Error::system("read random bytes"))?;
    let filters = options
        .include
        .iter()
        .map(|pattern| format!("-f {pattern}"));
    let filters = filters.chain(
        options
            .exclude
            .iter()
            .map(|pattern| format!("-x {pattern}")),
    );
    let first_line = |path: &str| {
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default();
    let clock = calibration.finish();
    let start = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(Manifest {
        format_version: FORMAT_VERSION,
        recording_id: RecordingId(id),
        hindsight_version: env!("CARGO_PKG_VERSION").into(),
        frida_version: Some(host.version().to_owned()),
        host: Machine {
            kernel: format!("Linux {}", first_line("/proc/sys/kernel/osrelease")),
            cpu: cpu.trim_start_matches([' ', '\t', ':']).to_owned(),
        },
        argv: target.argv.clone(),
        cwd: target.cwd.clone(),
        start_unix_ns: start.as_nanos() as i64,
        clock,
        settings: Settings {
            on_full: options.on_full,
            filters: filters.collect(),
            keep_log: options.keep_log,
        },
    })
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
