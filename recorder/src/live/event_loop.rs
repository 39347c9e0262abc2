//! The one thread that traces the program: it sees every stop first, and does everything that needs a stopped thread.
//!
//! Others send it commands, which are closures. Between two commands it looks for changes of the program's threads; while
//! there is neither, it waits for both. All requests of ptrace(2) come from here, because the kernel takes them from the
//! thread that seized only.

use std::{
    io,
    sync::{Arc, RwLock},
    thread,
    time::{Duration, Instant},
};

use crossbeam::channel::{Receiver, Sender, TryRecvError};
use debuginfo::AddressSpace;
use store::control::{Control, SnapshotReason};

use super::{
    breakpoints::{
        Breakpoints,
        sites::{Missing, User},
    },
    error::{LiveError, LiveResult},
    guard,
    journal::Journal,
    model::{Reason, Tid},
    probes::{Probes, stopless::StoplessQueries},
    remote_call::{RemoteCalls, syscall::wait_for},
    stepping::Plan,
    stops::StopLog,
    tracee::{
        FIRST_THREAD_PERIOD, Tracee,
        event::{Event, decode},
        hold::{COPY_PATIENCE, STOP_PATIENCE},
        threads::{Halt, Run, State, Thread},
    },
};
use crate::{
    Exit, clock,
    snapshot::SharedSnapshots,
    stop::{StopError, ptrace, restart},
    wake::{Waiter, Waker},
};

/// After something happened, more is looked for without sleeping for this long.
const EAGER: Duration = Duration::from_micros(200);
/// How often it is looked whether jumps can be written that could not be yet.
const ARMING_PERIOD: Duration = Duration::from_millis(1);
/// So many panics outside of any command or event, and the program is let go.
const MOST_MISTAKES: u32 = 8;

/// Something to do for the tracer.
pub(crate) type Command = Box<dyn FnOnce(&mut Tracer) + Send>;

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

    /// Lets a halted thread do what it was doing: run, or step.
    pub fn go_on(&mut self, tid: Tid) {
        let is_stepping = self
            .tracee
            .threads
            .get(&tid)
            .is_some_and(|thread| thread.is_stepping);
        self.go(tid, is_stepping);
    }

    /// Lets a halted thread run, or run one instruction. Standing at a trap, it passes it.
    pub fn go(&mut self, tid: Tid, one_step: bool) {
        let halted = self.tracee.threads.get_mut(&tid);
        let Some(thread) = halted.filter(|thread| thread.is_halted()) else {
            return;
        };
        self.journal.set_standing(false);
        let stood = thread.run(one_step);
        let passes = stood.stop.is_some() || stood.is_at_trap;
        let signal = stood.signal;
        let mut behind_pushed_flags = None;
        if let Ok(mut registers) = ptrace::registers(tid) {
            let site = self.breakpoints.sites.by_trap(registers.rip);
            let stands_at = site.filter(|site| passes && !site.users.is_empty());
            match stands_at {
                // In an interrupted system call the thread is before the instruction, though rip is behind it.
                Some(site) if !restart::may_restart(&registers) => {
                    registers.rip = site.pass_at();
                    let _ = ptrace::set_rip(tid, registers.rip);
                }
                _ => restart::ask_for_restart(tid),
            }
            if one_step {
                behind_pushed_flags = self.behind_pushed_flags(&registers);
            }
        }
        self.tracee.tell_signal(tid, signal);
        // If it fails, the thread was killed; its end will be reported.
        let _ = match one_step {
            true => ptrace::step(tid, signal),
            false => ptrace::cont(tid, signal),
        };
        if let Some(thread) = self.tracee.threads.get_mut(&tid) {
            thread.state = State::Running(Run {
                is_interrupted: false,
                behind_pushed_flags,
            });
        }
    }

    /// Lets a halted thread run from exactly where it stands.
    pub fn run_in_place(&mut self, tid: Tid) {
        let halted = self.tracee.threads.get_mut(&tid);
        let Some(thread) = halted.filter(|thread| thread.is_halted()) else {
            return;
        };
        self.journal.set_standing(false);
        let signal = thread.run(false).signal;
        self.tracee.tell_signal(tid, signal);
        // If it fails, the thread was killed; its end will be reported.
        let _ = ptrace::cont(tid, signal);
    }

    /// Acts on what a thread reported while it was stopped, now that it may go on.
    pub fn dispatch_later(&mut self, tid: Tid, event: Event) {
        self.dispatch(tid, event);
    }

    /// Runs one instruction of a halted thread. Returns the signal that it stopped with.
    pub fn step_once(&mut self, tid: Tid) -> LiveResult<i32> {
        let failed = |source| LiveError::System {
            action: "step the thread",
            source,
        };
        ptrace::step(tid, 0).map_err(failed)?;
        wait_for(tid).ok_or(LiveError::Ended)
    }

    /// Stops a thread for good, tells everybody, and writes it down.
    pub fn halt(&mut self, tid: Tid, reason: Reason, all_threads: bool) {
        // Whoever has called a function waits for what it returns.
        if self.has_call(tid) && reason.is_of_a_probe() {
            self.go(tid, false);
            return;
        }
        self.abandon_plan(tid);
        let was_holding = self.tracee.is_held;
        let holds = !was_holding && (all_threads || self.must_hold_to_copy(tid));
        if holds {
            let patience = if all_threads {
                STOP_PATIENCE
            } else {
                COPY_PATIENCE
            };
            // What does not stop in time stays running; the stop is told all the same.
            let _ = self.hold_within(patience);
        }
        let copy = self.may_copy(tid, all_threads, holds || was_holding);
        let stop = self.post(tid, reason, copy);
        if let (Some(thread), Some(stop)) = (self.tracee.threads.get_mut(&tid), stop) {
            if let Some(calling) = &mut thread.calling {
                calling.was_stopped = true;
            }
            if all_threads {
                self.stopped_all = stop.number;
            }
            thread.is_stepping = false;
            thread.is_moved = false;
            if let Some(halt) = thread.halt_mut() {
                halt.stop = Some(stop);
            }
        }
        if all_threads {
            self.halt_companions();
        }
        if holds {
            self.release();
        }
    }

    /// Tells that the threads that are held are stopped.
    pub fn halt_companions(&mut self) {
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in tids {
            if self.tracee.threads[&tid].is_held() {
                // Where it was to get to counts no more: whoever lets it go says where to.
                self.abandon_plan(tid);
                let stop = self.post(tid, Reason::AllThreads, None);
                if let Some(halt) = self.tracee.halt_mut(tid) {
                    halt.stop = stop;
                }
            }
        }
    }

    /// Tells of a stop. `copy`: why memory can be copied, if it can.
    fn post(
        &mut self,
        tid: Tid,
        reason: Reason,
        copy: Option<SnapshotReason>,
    ) -> Option<crate::live::model::Stop> {
        // If it cannot be moved it was killed, or is shown where it is.
        let _ = self.leave_ours(tid);
        if let Some(why) = copy {
            self.copy_memory(why);
        }
        let pc = self.pc(tid)?;
        let calls_to_come = self.tracee.threads.get(&tid).map_or(0, |t| t.calls_to_come);
        let displayed = self.displayed(tid);
        let place = (pc, calls_to_come);
        self.journal.pause(self, tid, &reason, place, &displayed);
        Some(self.stops.post(tid, reason, pc, calls_to_come, displayed))
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
        match self
            .breakpoints
            .sites
            .add(&self.tracee.memory, address, user)
        {
            Ok(()) => Ok(()),
            Err(Missing::Refused(error)) => Err(error),
            Err(Missing::SlotsNear(near)) => {
                self.make_room(near)?;
                match self
                    .breakpoints
                    .sites
                    .add(&self.tracee.memory, address, user)
                {
                    Ok(()) => Ok(()),
                    Err(Missing::Refused(error)) => Err(error),
                    Err(Missing::SlotsNear(_)) => Err(LiveError::CannotStop {
                        address,
                        reason: "there is no room for its instruction within reach".to_owned(),
                        nearest: address,
                    }),
                }
            }
        }
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

/// The way to the tracer. Clones lead to the same one; once the last one is gone, it lets the program go.
#[derive(Clone)]
pub(crate) struct Commands {
    // Dropped before the other: whoever is woken finds that it is gone.
    sender: Sender<Command>,
    wakes: WakesOnDrop,
}

#[derive(Clone)]
struct WakesOnDrop(Waker);

impl Drop for WakesOnDrop {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl Commands {
    /// Returns the way to a tracer that is to be, and its end.
    pub fn new() -> io::Result<(Self, (Receiver<Command>, Waiter))> {
        let waiter = Waiter::new()?;
        let (sender, inbox) = crossbeam::channel::unbounded();
        let wakes = WakesOnDrop(waiter.waker());
        Ok((Self { sender, wakes }, (inbox, waiter)))
    }

    /// Sends a command.
    ///
    /// # Errors
    /// The tracer has ended.
    pub fn send(&self, command: Command) -> LiveResult<()> {
        self.sender.send(command).map_err(|_| LiveError::Ended)?;
        self.wakes.0.wake();
        Ok(())
    }
}

/// Asks the tracer for something and waits for the answer.
pub(crate) fn ask<R: Send + 'static>(
    tracer: &Commands,
    question: impl FnOnce(&mut Tracer) -> R + Send + 'static,
) -> LiveResult<R> {
    let (reply, answer) = crossbeam::channel::bounded(1);
    tracer.send(Box::new(move |tracer| {
        let was_holding = tracer.tracee.is_held;
        let answer = guard::guarded(|| question(tracer));
        if let Err(error) = &answer {
            tracer.log_panic(error);
            tracer.let_go_of_what_is_held(was_holding);
        }
        let _ = reply.send(answer);
    }))?;
    answer.recv().map_err(|_| LiveError::Ended)?
}
