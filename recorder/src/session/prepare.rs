//! The beginning of a session: starts the program or attaches to it, prepares its code, and creates the recording.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Instant,
};

use agent::{
    host::{self, Host},
    shared::{LAST_EXIT, LAST_SIGNALS, Shared},
};
use store::recording::{Created, OnTaken, OpenRecording};

use super::{
    Arming, Controlled, Copies, Runtime, Session, SoFar, Stopper, Unbegun, Writing,
    bring_in::BringIn,
    check_mapped, default_name, first_probes,
    manifest::manifest,
    program::{Running, may_need_frida, owner, read_maps, runtime_for},
    room::Room,
    runtime_code::RuntimeCode,
    size::Size,
    space_of, way_into,
};
use crate::{
    Error, Observer, OnFull, RecordOptions, Result, SnapshotTimes, Target,
    arm::{
        Armer, Filter, Modules,
        patch::{Plan, Prepared},
    },
    capture::{self, watch::Watches},
    clock::Calibration,
    drain::Log,
    live::{FirstProbes, Stdio},
    process::{Way, limits, spawn, stack_limit, status::Seccomp},
    signals::ChildSignals,
    snapshot::Snapshots,
};

/// Prepares a recording: the program waits at its entry point or, if it was running before, runs unpatched. `live`: it
/// will be controlled, and where its input and output go.
pub(crate) fn prepare(
    options: &RecordOptions,
    filter: &Filter,
    signals: &ChildSignals,
    live: Option<Controlled<'_>>,
    observer: &dyn Observer,
) -> Result<(Session, Plan)> {
    limits::lift_own().map_err(|reason| {
        let is_daemon = live.is_some_and(|live| !live.is_unattended);
        let reason = match is_daemon {
            true => limits::of_daemon(reason),
            false => reason,
        };
        match &options.target {
            Target::Spawn { argv } => Error::Unsupported {
                path: PathBuf::from(&argv[0]),
                reason,
            },
            Target::Attach { pid, .. } => Error::Attach { pid: *pid, reason },
            Target::Parked(member) => Error::Unsupported {
                path: member.parked.exe.clone(),
                reason,
            },
        }
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
    let has_handlers = match live {
        None => true,
        // Of a program that was running before, the tracer holds all threads: none could remove the handlers.
        Some(live) => target.spawned && live.is_unattended,
    };
    let shared = shared_memory(options, &target, has_handlers)?;
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
    has_handlers: bool,
) -> Result<Arc<Shared>> {
    let shared = Shared::create(options.on_full == OnFull::Drop, owner(target.pid))?;
    capture::announce(&options.captures, &shared);
    let at_exit = match options.snapshots {
        SnapshotTimes::Never | SnapshotTimes::AtPauses => 0,
        SnapshotTimes::Every(_) | SnapshotTimes::EveryEvents(_) => LAST_EXIT,
    };
    let signals = if has_handlers { LAST_SIGNALS } else { 0 };
    shared.want_last(signals | at_exit);
    if let SnapshotTimes::EveryEvents(count) = options.snapshots {
        shared.copy_every(count.get());
    }
    Ok(Arc::new(shared))
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
pub(crate) fn run_of(path: &Path, program: &Path) -> Option<String> {
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
            let space = space_of(&modules);
            first_probes::check(first, &space, target.pid)?;
            first_probes::warn(first, &space, observer);
        }
        let manifest = manifest((options, first), &target, host.as_deref(), calibration)?;
        let Created { open, log } = create(options, &target, manifest)?;
        let unbegun = Unbegun(Some(open.recording().dir().to_path_buf()));
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
            writing: Writing {
                open,
                log: Log::new(log),
                unbegun,
            },
            options: options.clone(),
            guardian: None,
            stopper: Stopper::Moment,
            pipes: None,
            live: None,
            copies: Copies {
                snapshots,
                last: Instant::now(),
                counted: Instant::now(),
            },
            death: None,
            so_far: SoFar {
                began: Instant::now(),
                armed: 0,
                skipped: 0,
                forbidden: 0,
                had_seccomp,
                room: Room::default(),
                size: Size::default(),
            },
        };
        session.find_runtime_code()?;
        session.log_start(prepared, &plan)?;
        Ok((session, plan))
    }
}
