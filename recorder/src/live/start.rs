//! Starts a session: one thread that records, one that traces, and a handle for both.

use std::{
    ffi::OsString,
    path::Path,
    sync::{Arc, Condvar, Mutex, PoisonError, RwLock, atomic::AtomicBool},
    thread,
};

use crossbeam::channel::{Sender, bounded, unbounded};
use debuginfo::{AddressSpace, Mapped, Module};
use expr::Kept;
use store::{
    manifest::Lineage,
    set::{Fact, ProcessLog},
};

use crate::{
    Error, Exit, Member, Observer, Outcome, RecordOptions, Result, Target,
    arm::patch::Plan,
    live::{
        Inner, Live, Stdio,
        breakpoints::{compiled::Runtime, orphan_traps::TrapHandler},
        commands::{Command, Commands, ask},
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        family::Family,
        journal::Journal,
        model::{FirstProbes, LiveOptions, ProbeState, Reason},
        probes::capture::LogpointCapture,
        stops::StopLog,
        tracee::{
            Tracee,
            hooks::{Hooks, SharedHooks},
            memory::LiveMemory,
        },
    },
    process::{Maps, Way},
    return_trampoline::LeaveOffsets,
    session::{Controlled, LiveSide, Session, prepare, publish},
    signals::ChildSignals,
    wake::Waiter,
};

impl Live {
    /// Starts the program or attaches to it, and begins to record. If the options ask for it, a started program is at
    /// its entry point, with a stop that reports this. Otherwise it runs, as does a program that was attached to.
    ///
    /// # Errors
    /// If the program cannot be started, attached to or recorded. A started program is then killed; an attached one
    /// continues.
    pub fn start(options: LiveOptions, observer: Arc<dyn Observer + Send + Sync>) -> Result<Live> {
        let (ready, answer) = bounded(1);
        thread::Builder::new()
            .name("session".to_owned())
            .spawn(move || {
                let signals = ChildSignals::unwatched();
                let begun = begin(&options, Attended::ByAPerson, &signals, None, &*observer);
                match begun {
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                    Ok((session, live)) => {
                        let _ = ready.send(Ok(live.clone()));
                        let outcome = session.run(&*observer);
                        live.close(outcome);
                    }
                }
            })
            .map_err(Error::system("start a thread"))?;
        answer.recv().map_err(|_| {
            Error::system("begin the session")(std::io::ErrorKind::Interrupted.into())
        })?
    }

    /// Announces that the program has ended and its recording is closed.
    fn close(&self, mut outcome: Result<Outcome>) {
        // This was announced when it happened, unless the recording failed.
        let _ = ask(&self.inner.commands, Tracer::finish);
        self.inner.stops.end(Exit::Detached);
        if let (Ok(outcome), Some(exit)) = (&mut outcome, self.inner.stops.ended()) {
            outcome.exit = exit;
        }
        let mut closed = self
            .inner
            .closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *closed = Some(outcome.map_err(|error| error.one_line()));
        self.inner.closing.notify_all();
    }
}

/// Who controls a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attended {
    /// A user, to whom stops are shown.
    ByAPerson,
    /// No user: it is a plain recording, whose probes leave events.
    ByNobody,
}

/// Records a program until it ends as [`record`](crate::record) does, with probes that leave events and stop nothing.
///
/// # Errors
/// As there; a probe that cannot be set.
pub fn record_with_probes(options: LiveOptions, observer: &dyn Observer) -> Result<Outcome> {
    let signals = ChildSignals::watch();
    let begun = begin(&options, Attended::ByNobody, &signals, None, observer);
    let outcome = begun.and_then(|(session, live)| {
        let mut outcome = session.run(observer);
        // The tracer has ended, or does so now.
        let _ = ask(&live.inner.commands, Tracer::finish);
        live.warn_of_waiting(observer);
        // A program that outlives its recording ends without the tracer.
        let seen = live.inner.stops.ended();
        if let (Ok(outcome), Some(exit @ (Exit::Code(_) | Exit::Signal(_)))) = (&mut outcome, seen)
        {
            outcome.exit = exit;
        }
        outcome
    });
    signals.restore();
    outcome
}

/// Records a program of a set that is parked at its entry point, until it ends or executes another one, and records
/// the processes that it starts. Returns when no tracee is left. `recorded` receives the recording's folder once the
/// program runs.
///
/// # Errors
/// If it cannot be recorded; while it is parked it stays so.
pub fn record_parked(
    record: RecordOptions,
    member: &Member,
    observer: &dyn Observer,
    recorded: impl FnOnce(&Path),
) -> Result<Outcome> {
    let options = LiveOptions {
        record,
        stop_on_entry: false,
        stdio: Stdio::Inherit,
        first: FirstProbes::default(),
    };
    let log = Arc::new(ProcessLog::open(&member.set)?);
    let (over, is_over) = bounded(1);
    let family = NewFamily {
        log,
        recorder: (member.recorder.clone(), member.records_copies),
        lineage: member.lineage,
        over,
    };
    let signals = ChildSignals::unwatched();
    let (session, live) = begin(
        &options,
        Attended::ByNobody,
        &signals,
        Some(family),
        observer,
    )?;
    recorded(&session.recording_dir());
    let mut outcome = session.run(observer);
    let _ = match &outcome {
        Ok(_) => ask(&live.inner.commands, Tracer::finish),
        Err(_) => ask(&live.inner.commands, Tracer::detach),
    };
    if let (Ok(outcome), Some(exit)) = (&mut outcome, live.inner.stops.ended()) {
        outcome.exit = exit;
    }
    // Nothing is ever sent: the tracer ends.
    let _: std::result::Result<(), _> = is_over.recv();
    outcome
}

/// What a family needs.
struct NewFamily {
    log: Arc<ProcessLog>,
    /// The command of the next recorders, and whether copies get one.
    recorder: (Vec<OsString>, bool),
    /// The program's process, and who started it.
    lineage: Lineage,
    over: Sender<()>,
}

impl NewFamily {
    /// Makes the tracer follow the processes that the program will start. Returns the flag that is set once the
    /// program executes another one. The set learns of the recording before the program runs.
    fn begin(self, session: &Session, commands: &Commands) -> Result<Arc<AtomicBool>> {
        let dir = session.recording_dir();
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        self.log.add(&Fact::Recorded {
            pid: session.target.pid,
            recording: name.into_owned(),
        })?;
        let program = (self.lineage, session.recording_id());
        let family = Family::new(
            self.log,
            self.recorder,
            program,
            commands.clone(),
            self.over,
        );
        let became = Arc::clone(&family.became);
        ask(commands, move |tracer| tracer.family = Some(family))?;
        Ok(became)
    }
}

impl Live {
    /// Warns of probes that never found a place.
    fn warn_of_waiting(&self, observer: &dyn Observer) {
        for probe in self.probes() {
            if probe.state == ProbeState::Pending && probe.hits == 0 {
                let place = &probe.spec.location;
                let why =
                    format!("nothing was logged at {place}: no module that was loaded has it");
                observer.warning(&why.into());
            }
        }
    }
}

fn begin(
    options: &LiveOptions,
    attended: Attended,
    signals: &ChildSignals,
    family: Option<NewFamily>,
    observer: &dyn Observer,
) -> Result<(Session, Live)> {
    let is_unattended = attended == Attended::ByNobody;
    let (mut session, plan) = prepared(options, is_unattended, signals, observer)?;
    let runtime = runtime_of(&session)?;
    let found = Found {
        handler: runtime.as_ref().and_then(TrapHandler::find),
        compiled: runtime.as_ref().and_then(Runtime::find),
    };
    let hooks = hooks_of(runtime.as_ref());
    let space = Arc::new(AddressSpace::default().with_hidden(runtime));
    let space: Arc<RwLock<Arc<AddressSpace>>> = Arc::new(RwLock::new(space));
    publish(&space, &session.arming.modules);
    let stops = Arc::new(StopLog::default());
    let (log, journal_end) = unbounded();
    let journal = Journal::new(log, Arc::clone(&session.shared));
    let pid = session.target.pid;
    let announcer = session.start_guardian()?;
    let memory = LiveMemory::open(pid, Arc::clone(&hooks), announcer)
        .map_err(Error::system("open the program's memory"))?;
    let (commands, inbox) =
        Commands::new().map_err(Error::system("prepare to trace the program"))?;
    let capture = LogpointCapture::of(&options.record.captures);
    trace(&session, capture, &memory, &space, &stops, &journal, inbox)?;
    let became = match family {
        Some(found) => found.begin(&session, &commands)?,
        None => ask(&commands, |tracer: &mut Tracer| {
            Arc::clone(&tracer.tracee.following.became)
        })?,
    };
    let end = Arc::new(AtomicBool::new(false));
    let (settling, settle_requests) = unbounded();
    let (more, wishes) = unbounded();
    let side = LiveSide {
        commands: commands.clone(),
        counts: journal.counts(),
        settling: settle_requests,
        more: wishes,
        end: Arc::clone(&end),
        became,
        space: Arc::clone(&space),
        stops: Arc::clone(&stops),
        is_unattended,
    };
    session.control(side, journal_end, hooks);
    let kept = Arc::<Kept>::default();
    let of_tracer = Arc::clone(&kept);
    let snapshots = session.copies.snapshots.clone();
    ask(&commands, move |tracer| {
        tracer.probes.kept = of_tracer;
        tracer.tracee.snapshots = snapshots;
        tracer.is_unattended = is_unattended;
    })?;
    found.tell(&commands, options.record.guardian.is_some())?;
    release(&mut session, plan, &commands, options)?;
    let live = Live {
        inner: Arc::new(Inner {
            pid,
            recording: session.recording_dir(),
            pipes: Mutex::new(session.pipes.take()),
            space,
            stops,
            commands,
            memory,
            journal,
            settling,
            more,
            end,
            closed: Mutex::new(None),
            closing: Condvar::new(),
            kept,
        }),
    };
    Ok((session, live))
}

/// Starts the program or finds the one to attach to, and prepares its recording.
fn prepared(
    options: &LiveOptions,
    is_unattended: bool,
    signals: &ChildSignals,
    observer: &dyn Observer,
) -> Result<(Session, Plan)> {
    let filter = options.record.filter()?;
    let control = Controlled {
        stdio: &options.stdio,
        first: &options.first,
        is_unattended,
    };
    let prepare_once = || prepare(&options.record, &filter, signals, Some(control), observer);
    let (session, plan) = match prepare_once() {
        // The program has not run yet: starting it again loses nothing.
        Err(Error::Agent(agent::Error::HelperStuck { .. }))
            if matches!(options.record.target, Target::Spawn { .. }) =>
        {
            prepare_once()?
        }
        prepared => prepared?,
    };
    if session.target.ended_early {
        let program = session.target.exe.display().to_string();
        return Err(Error::EndedAtOnce { program });
    }
    Ok((session, plan))
}

/// What the tracer needs of the runtime's library in the program.
struct Found {
    handler: Option<TrapHandler>,
    compiled: Option<Runtime>,
}

impl Found {
    fn tell(self, commands: &Commands, has_guardian: bool) -> Result<()> {
        if let Some(handler) = self.handler.filter(|_| has_guardian) {
            ask(commands, move |tracer| tracer.handle_orphan_traps(handler))??;
        }
        if let Some(runtime) = self.compiled {
            ask(commands, move |tracer| {
                tracer.breakpoints.runtime_found(&tracer.tracee, runtime)
            })?;
        }
        Ok(())
    }
}

fn hooks_of(runtime: Option<&Mapped>) -> Arc<SharedHooks> {
    let mut hooks = Hooks::default();
    if let Some(runtime) = runtime {
        let leave = LeaveOffsets::in_library(&runtime.module).at(runtime.bias);
        let symbols = runtime.module.symbols();
        let thread_exits = symbols
            .iter()
            .find(|symbol| symbol.linkage == "thread_exits");
        let thread_exits = thread_exits.map(|symbol| runtime.address(symbol.svma));
        hooks.set_runtime(runtime.range.clone(), leave, thread_exits);
    }
    Arc::new(RwLock::new(hooks))
}

/// Starts the tracer and waits until it has seized the program.
fn trace(
    session: &Session,
    capture: LogpointCapture,
    memory: &LiveMemory,
    space: &Arc<RwLock<Arc<AddressSpace>>>,
    stops: &Arc<StopLog>,
    journal: &Journal,
    inbox: (crossbeam::channel::Receiver<Command>, Waiter),
) -> Result<()> {
    let (seized, answer) = bounded(1);
    let pid = session.target.pid;
    let shared = Arc::clone(&session.shared);
    // Compiled code uses the stack, which is too small at the end of a goroutine's stack.
    let is_unfit = session.target.way == Way::LoaderForGo;
    let (memory, space) = (memory.clone(), Arc::clone(space));
    let (stops, journal) = (Arc::clone(stops), journal.clone());
    thread::Builder::new()
        .name("tracer".to_owned())
        .spawn(move || {
            // If we die, the lock shows it before the program runs without us.
            let _lock = shared.own_as_tracer();
            match Tracer::seize(Tracee::new(pid, memory, space), stops, journal, inbox) {
                Ok(mut tracer) => {
                    tracer.probes.capture = capture;
                    tracer.breakpoints.compiling.shared = Some(shared);
                    tracer.breakpoints.compiling.is_unfit = is_unfit;
                    let _ = seized.send(Ok(()));
                    tracer.run();
                }
                Err(error) => {
                    let _ = seized.send(Err(error));
                }
            }
        })
        .map_err(Error::system("start a thread"))?;
    let seized = answer.recv();
    seized.map_err(|_| {
        Error::system("trace the program")(std::io::ErrorKind::Interrupted.into())
    })??;
    Ok(())
}

/// Writes the patches. A program that we started is then at its entry point, if requested.
fn release(
    session: &mut Session,
    plan: Plan,
    commands: &Commands,
    options: &LiveOptions,
) -> Result<()> {
    let stop_on_entry = options.stop_on_entry;
    let first = options.first.clone();
    // An attached program runs meanwhile. A copy of another program waits.
    let is_ours = session.target.spawned || stop_on_entry;
    let pid = session.target.pid;
    if is_ours {
        ask(commands, Tracer::hold)??;
    }
    session.release(plan)?;
    let set = match ask(commands, move |tracer| set_first(tracer, first)) {
        // It was not held, and has ended meanwhile. Its events are recorded.
        Err(LiveError::Ended) if !is_ours => return Ok(()),
        set => set?,
    };
    if is_ours {
        ask(commands, move |tracer| {
            if stop_on_entry {
                tracer.halt(pid, Reason::Entry, false);
            }
            tracer.release();
        })?;
    }
    Ok(set?)
}

/// Sets the probes that are set before the program runs.
fn set_first(tracer: &mut Tracer, first: FirstProbes) -> LiveResult<()> {
    for spec in first.specs {
        tracer.add_probe(spec)?;
    }
    Ok(())
}

/// Finds the runtime's library in the program.
fn runtime_of(session: &Session) -> Result<Option<Mapped>> {
    let maps = Maps::read(session.target.pid)
        .map_err(Error::system("read what the program has mapped"))?;
    let mut files = maps.files().into_iter();
    let Some(file) = files.find(|file| file.path == session.runtime.path) else {
        return Ok(None);
    };
    let module = Module::open(&file.path).ok();
    Ok(module.map(|module| Mapped {
        module: Arc::new(module),
        number: u32::MAX,
        bias: file.range.start,
        range: file.range,
        is_system: true,
    }))
}
