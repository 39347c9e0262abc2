//! The one thread that traces the program: it sees every stop first, and does everything that needs a stopped thread.
//!
//! Others send it commands, which are closures. Between two commands it looks for changes of the program's threads; while
//! there is neither, it waits for both. All requests of ptrace(2) come from here, because the kernel takes them from the
//! thread that seized only.

use std::{
    sync::{Arc, RwLock},
    thread,
    time::{Duration, Instant},
};

use crossbeam::channel::{Receiver, TryRecvError};
use debuginfo::AddressSpace;
use store::control::Control;

use super::{
    breakpoints::{
        Breakpoints,
        sites::{Missing, User},
    },
    commands::Command,
    error::{LiveError, LiveResult},
    guard,
    journal::Journal,
    model::Tid,
    probes::{Probes, stopless::StoplessQueries},
    remote_call::RemoteCalls,
    stepping::Plan,
    stops::StopLog,
    tracee::{
        FIRST_THREAD_PERIOD, Tracee,
        event::{Event, decode},
        hold::STOP_PATIENCE,
        threads::{Halt, Run, State, Thread},
    },
};
use crate::{
    Exit, clock,
    snapshot::SharedSnapshots,
    stop::{StopError, ptrace, restart},
    wake::Waiter,
};

/// After something happened, more is looked for without sleeping for this long.
const EAGER: Duration = Duration::from_micros(200);
/// How often it is looked whether jumps can be written that could not be yet.
const ARMING_PERIOD: Duration = Duration::from_millis(1);
/// So many panics outside of any command or event, and the program is let go.
const MOST_MISTAKES: u32 = 8;

/// The tracer's side of a session: each family of its work has a struct, and only this one has all.
pub(crate) struct Tracer {
    pub tracee: Tracee,
    pub breakpoints: Breakpoints,
    pub probes: Probes,
    /// Calls of functions and system calls that the program makes for us.
    pub calls: RemoteCalls,
    pub space: Arc<RwLock<Arc<AddressSpace>>>,
    pub stops: Arc<StopLog>,
    pub journal: Journal,
    /// Copies of memory, if any are wanted.
    pub snapshots: Option<SharedSnapshots>,
    /// The newest stop that stopped all threads.
    pub stopped_all: u64,
    pub done: bool,
    commands: Receiver<Command>,
    waiter: Waiter,
}

impl Tracer {
    /// Seizes all threads of `pid` and lets them run on.
    pub fn seize(
        tracee: Tracee,
        space: Arc<RwLock<Arc<AddressSpace>>>,
        stops: Arc<StopLog>,
        journal: Journal,
        (commands, waiter): (Receiver<Command>, Waiter),
    ) -> Result<Tracer, StopError> {
        waiter.receive_signals();
        let pid = tracee.pid;
        let mut tracer = Tracer {
            tracee,
            breakpoints: Breakpoints::default(),
            probes: Probes::default(),
            calls: RemoteCalls::default(),
            space,
            stops,
            journal,
            snapshots: None,
            stopped_all: 0,
            done: false,
            commands,
            waiter,
        };
        let deadline = Instant::now() + STOP_PATIENCE;
        loop {
            match tracer.tracee.seize_all() {
                Ok(()) => return Ok(tracer),
                // Frida lets go a moment after it says so.
                Err(error)
                    if error.raw_os_error() == Some(libc::EPERM) && Instant::now() < deadline =>
                {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(_) => {
                    // Says why, in the words of the one that stops for a moment.
                    crate::stop::while_stopped(pid, STOP_PATIENCE, |_| ())?;
                }
            }
        }
    }

    /// Serves until the program has ended or was let go.
    pub fn run(mut self) {
        let mut quiet_since = Instant::now();
        let mut mistakes = 0;
        while !self.done {
            if let Err(error) = guard::guarded(|| self.run_once(&mut quiet_since)) {
                self.log_panic(&error);
                mistakes += 1;
                if mistakes == MOST_MISTAKES {
                    // Rather than spin on: the program is left without a trap of ours.
                    let _ = guard::guarded(|| self.detach());
                    self.done = true;
                }
            }
        }
        // Whoever asks from now on gets no answer, and looks there.
        self.stops.keep(self.views(), self.probes.displays.all());
    }

    /// Does what there is to do, or waits for it.
    fn run_once(&mut self, quiet_since: &mut Instant) {
        let mut busy = self.reap_events();
        busy |= self.run_commands();
        busy |= self.dispatch_deferred();
        self.settle_compiled();
        self.end_late_calls();
        if self.tracee.has_lost_first_thread() {
            self.forget_thread(self.tracee.pid);
        }
        if busy {
            *quiet_since = Instant::now();
        } else if quiet_since.elapsed() >= EAGER {
            self.stop_listening();
            if !self.wait() {
                *quiet_since = Instant::now();
            }
        } else if self.probes.stopless.are_expected && self.answer_queries() {
            *quiet_since = Instant::now();
        } else {
            thread::yield_now();
        }
    }

    /// Does what others ask for. Returns whether anybody did.
    fn run_commands(&mut self) -> bool {
        let mut any = false;
        loop {
            match self.commands.try_recv() {
                Ok(command) => command(self),
                Err(TryRecvError::Empty) => return any,
                // Nobody is left to ask for anything: the program is let go.
                Err(TryRecvError::Disconnected) => {
                    self.detach();
                    return true;
                }
            }
            any = true;
        }
    }

    /// Waits for a change of a thread, a command, or the time of something. Returns false if there was something to do.
    fn wait(&mut self) -> bool {
        self.journal.set_standing(self.tracee.is_standing());
        self.waiter.arm();
        // What came before this is found now, what comes later ends the wait.
        if self.run_commands() || ptrace::is_one_changed() || self.tracee.has_deferred {
            self.waiter.disarm();
            return false;
        }
        self.waiter.wait(self.longest_wait());
        true
    }

    /// How long nothing is to be done unless something happens; `None`: for ever.
    fn longest_wait(&self) -> Option<Duration> {
        let late = self.calls.deadlines.values().min();
        let late = late.map(|until| until.saturating_duration_since(Instant::now()));
        let arming = (!self.breakpoints.compiling.is_settled()).then_some(ARMING_PERIOD);
        let first = self
            .tracee
            .is_first_thread_on_its_way()
            .then_some(FIRST_THREAD_PERIOD);
        [late, arming, first].into_iter().flatten().min()
    }

    /// Writes down that we panicked.
    pub fn log_panic(&self, error: &LiveError) {
        self.journal.send(Control::Warning {
            ticks: clock::ticks(),
            message: error.one_line(),
        });
    }

    /// Handles all changes that are there. Returns whether there was one.
    pub fn reap_events(&mut self) -> bool {
        let mut any = false;
        while let Ok(Some((tid, change))) = ptrace::next_change() {
            any = true;
            match change {
                ptrace::Change::Ended { status, by_signal } => {
                    if self.tracee.children.remove(&tid).is_some() {
                        // Its parent, the program, collects it; to us its end is told once more when it did.
                        ptrace::reap(tid);
                        continue;
                    }
                    self.forget_thread(tid);
                    if tid == self.tracee.pid {
                        self.stops.saw_end(match by_signal {
                            true => Exit::Signal(status & 0x7f),
                            false => Exit::Code(status),
                        });
                        self.done = true;
                        return true;
                    }
                    ptrace::reap(tid);
                }
                ptrace::Change::Stopped { signal, event } => self.stopped(tid, signal, event),
            }
        }
        any
    }

    fn forget_thread(&mut self, tid: Tid) {
        self.abandon_plan(tid);
        let thread = self.tracee.threads.remove(&tid);
        if let Some(stop) = thread.as_ref().and_then(Thread::stop) {
            self.stops.mark_shown(stop.number);
        }
        self.calls.deadlines.remove(&tid);
        self.forget_queries(tid);
        if thread.is_some_and(|thread| thread.is_moved) && self.tracee.others_live(tid) {
            self.stops.lose(tid);
        }
    }

    fn stopped(&mut self, tid: Tid, signal: i32, event: i32) {
        let is_new = !self.tracee.threads.contains_key(&tid);
        if is_new && (self.tracee.children.contains_key(&tid) || !self.tracee.is_own(tid)) {
            self.child_stopped(tid, signal, event);
            return;
        }
        let thread = self
            .tracee
            .threads
            .entry(tid)
            .or_insert_with(Thread::running);
        let before = std::mem::replace(&mut thread.state, State::Halted(Halt::default()));
        if is_new {
            self.probes.watchpoints.set_in(tid);
        }
        match event {
            libc::PTRACE_EVENT_CLONE => self.went_on_unless_held(tid),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.has_child(tid, event);
                self.went_on_unless_held(tid);
            }
            libc::PTRACE_EVENT_EXEC => self.became_another_program(tid),
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                // Stopped by job control; stays so until SIGCONT, unless we need it.
                if before.is_interrupted() || self.tracee.is_held {
                    thread.state = State::Halted(Halt {
                        is_job_stopped: true,
                        ..Halt::default()
                    });
                } else {
                    let _ = ptrace::listen(tid);
                    thread.state = State::Listening {
                        is_interrupted: false,
                    };
                }
            }
            libc::PTRACE_EVENT_STOP => match (self.tracee.is_held, ptrace::has_untold_trap(tid)) {
                (true, true) => self.tracee.tell_trap(tid, run_of(before)),
                (true, false) => {}
                (false, _) => self.go_on(tid),
            },
            _ => {
                if let Some(behind) = run_of(before).behind_pushed_flags {
                    self.hide_trap_flag(tid, behind);
                }
                let event = decode(self, tid, signal);
                if let (Event::Signal { .. }, Some(thread)) =
                    (event, self.tracee.threads.get_mut(&tid))
                {
                    thread.signal_info = ptrace::stop_info(tid).ok();
                }
                self.reported(tid, event);
            }
        }
    }

    /// A thread has told of something that concerns others. Held, it stays where it is.
    fn went_on_unless_held(&mut self, tid: Tid) {
        if !self.tracee.is_held {
            self.go_on(tid);
        }
    }

    fn reported(&mut self, tid: Tid, event: Event) {
        if self.tracee.is_held {
            if let Some(halt) = self.tracee.halt_mut(tid) {
                halt.pending = Some(event);
            }
        } else {
            self.dispatch(tid, event);
        }
    }

    /// Acts on what a halted thread has reported.
    pub fn dispatch(&mut self, tid: Tid, event: Event) {
        let was_holding = self.tracee.is_held;
        let Err(error) = guard::guarded(|| self.act_on(tid, event)) else {
            return;
        };
        self.log_panic(&error);
        self.let_go_of_what_is_held(was_holding);
        // Nobody deals with the thread any more: it goes on, unless it was stopped before the panic.
        let thread = self.tracee.threads.get(&tid);
        let is_left = thread.is_some_and(Thread::is_held);
        if is_left && !self.tracee.is_held {
            self.abandon_plan(tid);
            self.go(tid, false);
        }
    }

    fn act_on(&mut self, tid: Tid, event: Event) {
        match event {
            Event::Trap { address } => self.hit(tid, address),
            Event::Stepped => self.stepped(tid),
            Event::Watch { bits } => self.watched(tid, bits),
            Event::Signal {
                signal,
                fault_address,
            } => self.signalled(tid, signal, fault_address),
            Event::CallReturned => self.call_returned(tid),
            Event::Redirected => self.go_on(tid),
        }
    }

    /// Returns where a halted thread stands in the program.
    pub fn pc(&self, tid: Tid) -> Option<u64> {
        let registers = self.registers(tid).ok()?;
        Some(self.original_pc(registers.rip))
    }

    /// Returns the program's address for a `pc`, which may lie in code of ours.
    pub fn original_pc(&self, pc: u64) -> u64 {
        self.exact_pc(pc).unwrap_or_else(|| {
            let slot = self.breakpoints.sites.original_pc(pc).flatten();
            slot.or_else(|| self.tracee.memory.hooks_now().original_pc(pc))
                .unwrap_or(pc)
        })
    }

    /// Returns the program's address for a `pc` that stands exactly between two of its instructions; `None`: the thread
    /// is on its way through code of ours.
    pub fn exact_pc(&self, pc: u64) -> Option<u64> {
        if let Some(site) = self.breakpoints.sites.by_trap(pc) {
            return Some(site.address);
        }
        if let Some(slot) = self.breakpoints.sites.original_pc(pc) {
            return slot;
        }
        let hooks = self.tracee.memory.hooks_now();
        if !hooks.is_ours(pc) {
            return Some(pc);
        }
        let original = hooks.original_pc(pc)?;
        let (_, hook) = hooks.over(original)?;
        (hook.trampoline.moved(original) == Some(pc)).then_some(original)
    }

    /// Adds a user to a site; makes room for its slot if there is none.
    pub fn add_site(&mut self, address: u64, user: User) -> LiveResult<()> {
        self.make_way(address, user);
        let memory = &self.tracee.memory;
        match self.breakpoints.sites.add(memory, address, user) {
            Ok(()) => return Ok(()),
            Err(Missing::Refused(error)) => return Err(error),
            Err(Missing::SlotsNear(near)) => self.make_room(near)?,
        }
        let memory = &self.tracee.memory;
        let added = self.breakpoints.sites.add(memory, address, user);
        added.map_err(|missing| match missing {
            Missing::Refused(error) => error,
            Missing::SlotsNear(_) => LiveError::CannotStop {
                address,
                reason: "there is no room for its instruction within reach".to_owned(),
                nearest: address,
            },
        })
    }

    pub fn remove_site(&mut self, address: u64, user: User) {
        let site = self.breakpoints.sites.at(address);
        if site.is_some_and(|site| site.users.len() == 1 && site.users.contains(&user)) {
            self.disarm(address);
        }
        self.breakpoints
            .sites
            .remove(&self.tracee.memory, address, user);
        self.site_changed(address);
    }

    fn became_another_program(&mut self, tid: Tid) {
        self.tracee.threads.retain(|other, _| *other == tid);
        self.breakpoints.sites.clear(&self.tracee.memory);
        self.breakpoints.compiling.clear();
        self.probes.stopless = StoplessQueries::default();
        if let Ok(mut hooks) = self.tracee.memory.hooks.write() {
            hooks.clear();
        }
        if let Ok(mut space) = self.space.write() {
            *space = Arc::new(AddressSpace::default());
        }
        self.probes.unbind_all();
        self.breakpoints.unwind_targets = Default::default();
        self.calls.forget_places();
        if !self.tracee.is_held {
            self.go_on(tid);
        }
    }

    /// Takes all traps away and lets the program go.
    pub fn detach(&mut self) {
        let _ = self.hold();
        // What cannot be undone does no harm: without traps, nothing calls the handler.
        let _ = self.forget_orphan_traps();
        self.breakpoints.sites.lift_all(&self.tracee.memory);
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in tids {
            self.probes.watchpoints.clear_in(tid);
            let halt = self.tracee.threads.get(&tid).and_then(Thread::halt);
            let signal = match halt.map(|halt| (halt.pending, halt.signal)) {
                Some((Some(Event::Signal { signal, .. }), _) | (_, signal)) => signal,
                None => 0,
            };
            if !halt.is_some_and(|halt| halt.is_job_stopped) {
                restart::ask_for_restart(tid);
            }
            self.tracee.tell_signal(tid, signal);
            let _ = ptrace::detach(tid, signal);
        }
        self.tracee.threads.clear();
        self.done = true;
    }

    /// Ends the loop: the program is gone.
    pub fn finish(&mut self) {
        self.reap_events();
        self.done = true;
    }

    /// Drops a thread's plan and the traps it set.
    pub fn abandon_plan(&mut self, tid: Tid) {
        let plan: Option<Plan> = self
            .tracee
            .threads
            .get_mut(&tid)
            .and_then(|thread| thread.plan.take());
        if let Some(plan) = &plan
            && plan.deferred != 0
            && let Some(halt) = self.tracee.halt_mut(tid)
            && halt.signal == 0
        {
            halt.signal = plan.deferred;
        }
        for address in plan.into_iter().flat_map(|plan| plan.traps) {
            self.remove_site(address, User::Step(tid));
        }
    }
}

/// How a thread ran.
fn run_of(state: State) -> Run {
    match state {
        State::Running(run) => run,
        State::Halted(_) | State::Listening { .. } => Run::default(),
    }
}
