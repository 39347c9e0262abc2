//! The one thread that traces the program. It sees every ptrace-stop first, and does everything that needs a stopped
//! thread.
//!
//! Other threads send it commands, which are closures. Between two commands it checks for state changes of the tracees;
//! if there is neither, it waits for both. All ptrace(2) requests come from this thread, because the kernel accepts
//! them only from the thread that seized the tracee.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crossbeam::channel::{Receiver, TryRecvError};
use debuginfo::AddressSpace;

use super::{
    breakpoints::{
        Breakpoints,
        sites::{Missing, User},
    },
    commands::Command,
    error::{LiveError, LiveResult},
    family::Family,
    guard,
    journal::Journal,
    model::Tid,
    probes::{
        Probes, evaluate::Evaluator, happenings::Done, judge::Judge, stopless::StoplessQueries,
    },
    remote_call::RemoteCalls,
    stepping::Plan,
    stops::StopLog,
    tracee::{
        FIRST_THREAD_PERIOD, Tracee,
        event::{Decoding, Event},
        hold::STOP_PATIENCE,
        threads::{Halt, Run, State, Thread},
    },
};
use crate::{
    Exit,
    stop::{StopError, ptrace},
    wake::Waiter,
};

/// After an event, keep polling for this long without sleeping.
const EAGER: Duration = Duration::from_micros(200);
/// How often to retry jumps that could not be written yet.
const ARMING_PERIOD: Duration = Duration::from_millis(1);
/// State changes that are handled before the tracer checks its commands again: a thread that traps endlessly must not delay
/// them.
const MOST_CHANGES: usize = 64;
/// After this many panics outside of commands and events, the program is released.
const MOST_MISTAKES: u32 = 8;

/// The tracer's side of a session. Each area of its work has a struct; only this one holds them all.
pub(crate) struct Tracer {
    pub tracee: Tracee,
    pub breakpoints: Breakpoints,
    pub probes: Probes,
    /// Calls of functions and system calls that the program makes for us.
    pub calls: RemoteCalls,
    pub stops: Arc<StopLog>,
    pub journal: Journal,
    /// Number of the newest stop that stopped all threads.
    pub stopped_all: u64,
    /// No user waits for stops: a fatal signal ends the program as it would without a recorder.
    pub is_unattended: bool,
    pub done: bool,
    /// The processes that it starts, if they are to be recorded too.
    pub family: Option<Family>,
    commands: Receiver<Command>,
    waiter: Waiter,
}

impl Tracer {
    /// Seizes all threads of `pid` and lets them run.
    pub fn seize(
        tracee: Tracee,
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
            stops,
            journal,
            stopped_all: 0,
            is_unattended: false,
            done: false,
            family: None,
            commands,
            waiter,
        };
        let deadline = Instant::now() + STOP_PATIENCE;
        loop {
            match tracer.tracee.seize_all() {
                Ok(()) => return Ok(tracer),
                // Frida detaches a moment after it reports that it has.
                Err(error)
                    if error.raw_os_error() == Some(libc::EPERM) && Instant::now() < deadline =>
                {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(_) => {
                    // A plain stop fails with the reason.
                    crate::stop::while_stopped(pid, STOP_PATIENCE, |_| ())?;
                }
            }
        }
    }

    /// Runs the loop until the program has ended or was released.
    pub fn run(mut self) {
        let mut quiet_since = Instant::now();
        let mut mistakes = 0;
        while !self.done || !self.is_alone() || self.tracee.following.is_awaiting() {
            if let Err(error) = guard::guarded(|| self.run_once(&mut quiet_since)) {
                self.journal.log_panic(&error);
                mistakes += 1;
                if mistakes == MOST_MISTAKES {
                    // Do not loop on panics: leave the program, with none of our traps in it.
                    let _ = guard::guarded(|| self.detach());
                    self.done = true;
                }
            }
        }
        // Later requests get no answer from the tracer, and check this.
        self.stops.keep(
            self.probes.views(&self.breakpoints, &self.stops),
            self.probes.displays.all(),
        );
    }

    /// Handles pending work, or waits for some.
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

    /// Runs pending commands. Returns whether there was any.
    fn run_commands(&mut self) -> bool {
        let mut any = false;
        loop {
            match self.commands.try_recv() {
                Ok(command) => command(self),
                Err(TryRecvError::Empty) => return any,
                // No sender is left: release the program.
                Err(TryRecvError::Disconnected) => {
                    self.detach();
                    return true;
                }
            }
            any = true;
        }
    }

    /// Waits for a state change of a thread, a command, or a deadline. Returns false if there was already work to do.
    fn wait(&mut self) -> bool {
        self.journal.set_standing(self.tracee.is_standing());
        self.waiter.arm();
        // Changes before `arm` are found here; later ones end the wait.
        if self.run_commands() || ptrace::is_one_changed() || self.tracee.has_deferred {
            self.waiter.disarm();
            return false;
        }
        self.waiter.wait(self.longest_wait());
        true
    }

    /// Returns how long to wait if nothing happens; `None`: without limit.
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

    /// Handles pending state changes, up to the limit before other work. Returns whether there was one.
    pub fn reap_events(&mut self) -> bool {
        let mut any = false;
        for _ in 0..MOST_CHANGES {
            let Ok(Some((tid, change))) = ptrace::next_change() else {
                break;
            };
            any = true;
            match change {
                ptrace::Change::Ended { status, by_signal } => {
                    if let Some(family) = &mut self.family
                        && family.has(tid)
                    {
                        family.ended(tid, status, by_signal);
                        continue;
                    }
                    if self.tracee.children.remove(&tid).is_some() {
                        self.tracee.lost_child(tid);
                        // Its parent, the program, reaps it. The kernel then reports its end to us again.
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
                        if let Some(family) = &mut self.family {
                            family.program_ended(tid, status, by_signal);
                        }
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
        self.probes.forget_queries(&self.breakpoints, tid);
        if thread.is_some_and(|thread| thread.is_moved) && self.tracee.others_live(tid) {
            self.stops.lose(tid);
        }
    }

    pub fn stopped(&mut self, tid: Tid, signal: i32, event: i32) {
        let is_new = !self.tracee.threads.contains_key(&tid);
        if let Some(family) = &mut self.family
            && (family.has(tid) || is_new && !self.tracee.is_own(tid))
        {
            family.thread_stopped(&self.tracee, tid, signal, event);
            return;
        }
        if is_new && (self.tracee.children.contains_key(&tid) || !self.tracee.is_own(tid)) {
            self.tracee
                .child_stopped(&self.breakpoints, tid, signal, event);
            return;
        }
        self.tracee.full_halted(tid);
        let thread = self
            .tracee
            .threads
            .entry(tid)
            .or_insert_with(Thread::running);
        let before = std::mem::replace(&mut thread.state, State::Halted(Halt::default()));
        if is_new {
            let stopped = self.tracee.stopped(tid);
            let _ = stopped.map(|stopped| self.probes.watchpoints.set_in(&stopped));
        }
        match event {
            0 if signal == ptrace::AT_CALL => self.at_call(tid),
            libc::PTRACE_EVENT_CLONE => {
                if let Some(family) = &mut self.family {
                    family.may_have_process(&self.tracee, tid);
                }
                self.goes_on_after(tid, event);
            }
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.has_child(tid, event);
                self.goes_on_after(tid, event);
            }
            libc::PTRACE_EVENT_EXEC if self.family.is_some() => self.program_executes(tid),
            libc::PTRACE_EVENT_EXEC => self.became_another_program(tid),
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                // Stopped by job control: stays stopped until SIGCONT, unless we need the thread.
                if before.is_interrupted() || self.tracee.is_held {
                    if let Some(halt) = self.tracee.halt_mut(tid) {
                        halt.is_job_stopped = true;
                    }
                } else if let Some(thread) = self.tracee.resumable(tid) {
                    thread.listen();
                }
            }
            libc::PTRACE_EVENT_STOP if !self.tracee.is_held => self.go_on(tid),
            libc::PTRACE_EVENT_STOP => {
                let stopped = self.tracee.stopped(tid);
                if stopped.is_ok_and(|stopped| stopped.has_untold_trap()) {
                    self.tracee.tell_trap(tid, run_of(before));
                }
            }
            0 if self.hands_over_image(tid, signal) => {}
            _ => {
                if let Some(behind) = run_of(before).behind_pushed_flags {
                    self.tracee.hide_trap_flag(tid, behind);
                }
                let event = self.decoding().decode(tid, signal);
                if let Event::Signal { .. } = event {
                    self.tracee.note_signal(tid);
                }
                self.reported(tid, event);
            }
        }
    }

    /// Returns what evaluates the expressions of probes.
    pub fn evaluator(&self) -> Evaluator<'_> {
        Evaluator {
            tracee: &self.tracee,
            breakpoints: &self.breakpoints,
            probes: &self.probes,
        }
    }

    /// Returns what decides whether probes apply.
    pub fn judging(&mut self) -> Judge<'_> {
        Judge {
            tracee: &mut self.tracee,
            breakpoints: &mut self.breakpoints,
            probes: &mut self.probes,
            journal: &self.journal,
            failures: &self.stops.failures,
        }
    }

    /// Returns what decodes the kernel's reports.
    pub fn decoding(&mut self) -> Decoding<'_> {
        Decoding {
            breakpoints: &mut self.breakpoints,
            tracee: &self.tracee,
            watchpoints: &self.probes.watchpoints,
            calls: &self.calls,
        }
    }

    /// Resumes a thread after an event that concerns other processes or threads, which is in the middle of a system call. If all
    /// threads are to be halted, it halts at the end of that call.
    fn goes_on_after(&mut self, tid: Tid, event: i32) {
        match event {
            _ if !self.tracee.is_held => self.go_on(tid),
            // That call ends no sooner than the child executes a program or ends.
            libc::PTRACE_EVENT_VFORK => {}
            _ => self.tracee.end_system_call(&self.probes, tid),
        }
    }

    pub fn reported(&mut self, tid: Tid, event: Event) {
        if self.tracee.is_held {
            if let Some(halt) = self.tracee.halt_mut(tid) {
                halt.pending = Some(event);
            }
        } else {
            self.dispatch(tid, event);
        }
    }

    /// Acts on the event of a halted thread.
    pub fn dispatch(&mut self, tid: Tid, event: Event) {
        let was_holding = self.tracee.is_held;
        let Err(error) = guard::guarded(|| self.act_on(tid, event)) else {
            return;
        };
        self.journal.log_panic(&error);
        self.let_go_of_what_is_held(was_holding);
        // The handler is gone: resume the thread, unless it was stopped before the panic.
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
            Event::Watch { bits } => {
                self.tracee.full_watched(tid);
                self.watched(tid, bits);
            }
            Event::Signal {
                signal,
                fault_address,
            } => self.signalled(tid, signal, fault_address),
            Event::CallReturned => self.call_returned(tid),
            Event::Redirected => self.go_on(tid),
            Event::Call { number } => self.call_caught(tid, number),
            Event::Done(done) => self.has_done(tid, done),
        }
    }

    /// Adds a user to a site. Makes room for its slot if there is none.
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
        self.breakpoints.site_changed(address);
    }

    fn became_another_program(&mut self, tid: Tid) {
        let is_followed = self.tracee.begins_to_follow_image(tid);
        if !is_followed {
            self.note_done(tid, Done::Executed);
        }
        self.tracee.threads.retain(|other, _| *other == tid);
        self.breakpoints.sites.clear(&self.tracee.memory);
        self.breakpoints.compiling.clear();
        self.probes.stopless = StoplessQueries::default();
        if let Ok(mut hooks) = self.tracee.memory.hooks.write() {
            hooks.clear();
        }
        if let Ok(mut space) = self.tracee.space.write() {
            *space = Arc::new(AddressSpace::default());
        }
        self.forget_logged();
        self.probes.unbind_all();
        self.breakpoints.unwind_targets = Default::default();
        self.calls.forget_places();
        // It was in the memory of the program before.
        self.breakpoints.orphan_handler = None;
        if !self.tracee.is_held {
            self.go_on(tid);
        }
    }

    /// Removes all traps and releases the program.
    pub fn detach(&mut self) {
        // After a failure, those that have stopped are held. A panic may have left some held before.
        let _ = match self.tracee.is_held {
            true => self.hold(),
            false => self.hold_for_calls().map(|_| ()),
        };
        self.let_copies_go();
        // A failure does no harm: without traps, nothing calls the handler.
        let _ = self
            .breakpoints
            .forget_orphan_traps(&mut self.calls, &mut self.tracee);
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in &tids {
            self.tracee.end_full(&self.journal, *tid);
        }
        self.breakpoints.sites.lift_all(&self.tracee.memory);
        for tid in tids {
            let stopped = self.tracee.stopped(tid);
            let halt = stopped.as_ref().ok().map(|stopped| stopped.halt);
            let signal = match halt.map(|halt| (halt.pending, halt.signal)) {
                Some((Some(Event::Signal { signal, .. }), _) | (_, signal)) => signal,
                None => 0,
            };
            if let Ok(stopped) = &stopped {
                self.probes.watchpoints.clear_in(stopped);
                if !stopped.halt.is_job_stopped {
                    stopped.ask_for_restart();
                }
            }
            self.tracee.tell_signal(tid, signal);
            let _ = ptrace::detach(tid, signal);
        }
        self.tracee.threads.clear();
        self.done = true;
    }

    /// Ends the loop: the program is gone.
    pub fn finish(&mut self) {
        while !self.done && self.reap_events() {}
        self.done = true;
    }

    /// Drops a thread's plan and the traps set for it.
    pub fn abandon_plan(&mut self, tid: Tid) {
        self.tracee.end_full(&self.journal, tid);
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

fn run_of(state: State) -> Run {
    match state {
        State::Running(run) => run,
        State::Halted(_) | State::Listening { .. } => Run::default(),
    }
}
