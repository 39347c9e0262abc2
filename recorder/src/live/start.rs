//! Begins a session: one thread to record, one to trace, and a handle on both.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError, RwLock, atomic::AtomicBool},
    thread,
};

use crossbeam::channel::{bounded, unbounded};
use debuginfo::{AddressSpace, Mapped, Module};

use crate::{
    Error, Exit, Observer, Outcome, Result, Target,
    arm::{Filter, patch::Plan},
    live::{
        Inner, Live,
        breakpoints::{compiled::Runtime, orphan_traps::TrapHandler},
        commands::{Command, Commands, ask},
        event_loop::Tracer,
        journal::Journal,
        model::{LiveOptions, Reason},
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
    session::{LiveSide, Session, prepare, publish},
    signals::ChildSignals,
    wake::Waiter,
};

impl Live {
    /// Starts the program or attaches to it, and begins to record. A started program stands at its entry point, with a
    /// stop that says so, if the options ask for it; otherwise it runs, as does one that was attached to.
    ///
    /// # Errors
    /// When the program cannot be started, attached to or recorded. One that was started is killed then; one that was
    /// attached to goes on.
    pub fn start(options: LiveOptions, observer: Arc<dyn Observer + Send + Sync>) -> Result<Live> {
        let (ready, answer) = bounded(1);
        thread::Builder::new()
            .name("session".to_owned())
            .spawn(move || {
                let begun = begin(&options, &*observer);
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

    /// Tells everybody that the program has ended and its recording is closed.
    fn close(&self, mut outcome: Result<Outcome>) {
        // Unless the recording broke off, this was told when it happened.
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

fn begin(options: &LiveOptions, observer: &dyn Observer) -> Result<(Session, Live)> {
    let filter = Filter::new(&options.record.include, &options.record.exclude)?;
    let signals = ChildSignals::unwatched();
    let prepare_once = || {
        let stdio = Some(&options.stdio);
        prepare(&options.record, &filter, &signals, stdio, observer)
    };
    let (mut session, plan) = match prepare_once() {
        // The program has not run yet: nothing is lost by starting it once more.
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
    let runtime = runtime_of(&session)?;
    let handler = runtime.as_ref().and_then(TrapHandler::find);
    let compiled = runtime.as_ref().and_then(Runtime::find);
    let mut hooks = Hooks::default();
    if let Some(runtime) = &runtime {
        let leave = LeaveOffsets::in_library(&runtime.module).at(runtime.bias);
        hooks.set_runtime(runtime.range.clone(), leave);
    }
    let hooks: Arc<SharedHooks> = Arc::new(RwLock::new(hooks));
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
    let end = Arc::new(AtomicBool::new(false));
    let (settling, settle_requests) = unbounded();
    let side = LiveSide {
        commands: commands.clone(),
        journal: journal_end,
        counts: journal.counts(),
        settling: settle_requests,
        end: Arc::clone(&end),
        space: Arc::clone(&space),
        stops: Arc::clone(&stops),
        fatal: None,
    };
    session.control(side, hooks);
    let snapshots = session.copies.snapshots.clone();
    ask(&commands, |tracer| tracer.snapshots = snapshots)?;
    if let Some(handler) = handler
        && options.record.guardian.is_some()
    {
        ask(&commands, move |tracer| tracer.handle_orphan_traps(handler))??;
    }
    if let Some(found) = compiled {
        ask(&commands, move |tracer| tracer.runtime_found(found))?;
    }
    release(&mut session, plan, &commands, options.stop_on_entry)?;
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
            end,
            closed: Mutex::new(None),
            closing: Condvar::new(),
        }),
    };
    Ok((session, live))
}

/// Starts the tracer and waits until it has the program.
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
    // Compiled code uses the stack, which is too small where a goroutine's ends.
    let is_unfit = session.target.way == Way::LoaderForGo;
    let (memory, space) = (memory.clone(), Arc::clone(space));
    let (stops, journal) = (Arc::clone(stops), journal.clone());
    thread::Builder::new()
        .name("tracer".to_owned())
        .spawn(move || {
            // Dead, it is seen to be so before the program runs without it.
            let _lock = shared.own_as_tracer();
            match Tracer::seize(Tracee::new(pid, memory), space, stops, journal, inbox) {
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

/// Writes the patches. A program that we started then stands at its entry point, if it is to.
fn release(
    session: &mut Session,
    plan: Plan,
    commands: &Commands,
    stop_on_entry: bool,
) -> Result<()> {
    let is_ours = session.target.spawned;
    let pid = session.target.pid;
    if is_ours {
        ask(commands, Tracer::hold)??;
    }
    session.release(plan)?;
    if is_ours {
        ask(commands, move |tracer| {
            if stop_on_entry {
                tracer.halt(pid, Reason::Entry, false);
            }
            tracer.release();
        })?;
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
