//! The one thread that traces the program: it sees every stop first, and does everything that needs a stopped thread.
//!
//! Others send it commands, which are closures. Between two commands it looks for changes of the program's threads. All
//! requests of ptrace(2) come from here, because the kernel takes them from the thread that seized only.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, RwLock},
    thread,
    time::{Duration, Instant},
};

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender};
use debuginfo::AddressSpace;
use store::control::{Control, SnapshotReason};

use super::{
    asks::Asks,
    board::Board,
    children::Child,
    compiled::Compiling,
    display::Displays,
    error::{LiveError, LiveResult},
    event::{Event, decode},
    guard,
    hold::{COPY_PATIENCE, STOP_PATIENCE},
    inject::wait_for,
    journal::Journal,
    landing::Landings,
    leftover::Handler,
    memory::LiveMemory,
    model::{Reason, Tid},
    motion::Plan,
    passed::Keeps,
    probes::Probes,
    script::Scripts,
    sites::{Missing, Sites, User},
    thread::{State, Thread},
    watch::Watches,
};
use crate::{
    Exit, clock,
    snapshot::SharedSnapshots,
    stop::{StopError, procfs, ptrace, restart},
};

/// After something happened, more is looked for without sleeping for this long.
const EAGER: Duration = Duration::from_micros(200);
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// Where no thread runs, only the end of the program can come, and commands wake us.
const STOPPED_PAUSE: Duration = Duration::from_millis(20);
/// How often it is looked whether the first thread has ended.
const FIRST_THREAD_PERIOD: Duration = Duration::from_millis(50);
/// So many panics outside of any command or event, and the program is let go.
const MOST_MISTAKES: u32 = 8;

/// Something to do for the tracer.
pub(crate) type Command = Box<dyn FnOnce(&mut Tracer) + Send>;

/// The tracer's side of a session.
pub(crate) struct Tracer {
    pub pid: i32,
    pub threads: BTreeMap<Tid, Thread>,
    pub memory: LiveMemory,
    pub sites: Sites,
    pub probes: Probes,
    pub watches: Watches,
    pub landings: Landings,
    pub space: Arc<RwLock<Arc<AddressSpace>>>,
    pub board: Arc<Board>,
    pub journal: Journal,
    /// Copies of memory, if any are wanted.
    pub snapshots: Option<SharedSnapshots>,
    commands: Receiver<Command>,
    /// What is kept of threads that pass logpoints.
    pub keeps: Keeps,
    /// What the program judges itself.
    pub compiling: Compiling,
    /// What it asks instead.
    pub asks: Asks,
    /// Everything is to stand still: what threads report is kept for later.
    pub holding: bool,
    /// Threads that were being dealt with when everything was held: they are let go by who deals with them.
    pub busy: BTreeSet<Tid>,
    /// Threads have reported something that is still to be acted on.
    pub has_deferred: bool,
    pub done: bool,
    pub syscall_at: Option<u64>,
    /// What handles SIGTRAP in the program unless it has a handler of its own.
    pub leftovers: Option<Handler>,
    /// Processes that the program has started and that are not let go yet.
    pub children: BTreeMap<Tid, Child>,
    /// Expressions whose values are told at every stop.
    pub displays: Displays,
    /// Where functions that we call return to.
    pub call_return_at: Option<u64>,
    /// Conditions in JavaScript.
    pub scripts: Scripts,
    /// Calls of functions with a time limit.
    pub deadlines: BTreeMap<Tid, Instant>,
    /// The newest stop that stopped all threads.
    pub stopped_all: u64,
    /// When it was last looked whether the first thread has ended.
    looked_after: Instant,
}

impl Tracer {
    /// Seizes all threads of `pid` and lets them run on.
    pub fn seize(
        pid: i32,
        memory: LiveMemory,
        space: Arc<RwLock<Arc<AddressSpace>>>,
        board: Arc<Board>,
        journal: Journal,
        commands: Receiver<Command>,
    ) -> Result<Tracer, StopError> {
        let mut tracer = Tracer {
            pid,
            threads: BTreeMap::new(),
            memory,
            sites: Sites::default(),
            probes: Probes::default(),
            watches: Watches::default(),
            landings: Landings::default(),
            space,
            board,
            journal,
            snapshots: None,
            commands,
            keeps: Keeps::default(),
            compiling: Compiling::default(),
            asks: Asks::default(),
            holding: false,
            busy: BTreeSet::new(),
            has_deferred: false,
            done: false,
            syscall_at: None,
            leftovers: None,
            children: BTreeMap::new(),
            displays: Displays::default(),
            call_return_at: None,
            scripts: Scripts::default(),
            deadlines: BTreeMap::new(),
            stopped_all: 0,
            looked_after: Instant::now(),
        };
        let deadline = Instant::now() + STOP_PATIENCE;
        loop {
            match tracer.seize_all() {
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

    fn seize_all(&mut self) -> io::Result<()> {
        let mut complete_listings = 0;
        while complete_listings < 2 {
            complete_listings += 1;
            for tid in procfs::tasks(self.pid)? {
                if self.threads.contains_key(&tid) {
                    continue;
                }
                match ptrace::seize_with_its_clones(tid) {
                    Ok(()) => {
                        self.threads.insert(tid, Thread::running());
                        complete_listings = 0;
                    }
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    // A clone of a thread that is traced already is traced by us already.
                    Err(_) if procfs::tracer(self.pid, tid) == Some(own_tid()) => {
                        self.threads.insert(tid, Thread::running());
                        complete_listings = 0;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Serves until the program has ended or was let go.
    pub fn run(mut self) {
        let mut quiet_since = Instant::now();
        let mut pause = SHORTEST_PAUSE;
        let mut mistakes = 0;
        while !self.done {
            if let Err(error) = guard::guarded(|| self.turn(&mut quiet_since, &mut pause)) {
                self.confess(&error);
                mistakes += 1;
                if mistakes == MOST_MISTAKES {
                    // Rather than spin on: the program is left without a trap of ours.
                    let _ = guard::guarded(|| self.let_go());
                    self.done = true;
                }
            }
        }
        // Whoever asks from now on gets no answer, and looks there.
        self.board.keep(self.views(), self.displays.all());
    }

    /// Does what there is to do, or waits a moment for it.
    fn turn(&mut self, quiet_since: &mut Instant, pause: &mut Duration) {
        let mut busy = self.look();
        while let Ok(command) = self.commands.try_recv() {
            command(self);
            busy = true;
        }
        busy |= self.dispatch_deferred();
        self.settle_compiled();
        self.end_late_calls();
        if busy {
            *quiet_since = Instant::now();
            *pause = SHORTEST_PAUSE;
            return;
        }
        if quiet_since.elapsed() < EAGER {
            if self.asks.are_expected && self.answer_asks() {
                *quiet_since = Instant::now();
            } else {
                thread::yield_now();
            }
            return;
        }
        self.stop_listening();
        match self.commands.recv_timeout(*pause) {
            Ok(command) => {
                command(self);
                *quiet_since = Instant::now();
                *pause = SHORTEST_PAUSE;
            }
            Err(RecvTimeoutError::Timeout) => *pause = self.longest_pause().min(*pause * 2),
            // Nobody is left to ask for anything: the program is let go.
            Err(RecvTimeoutError::Disconnected) => self.let_go(),
        }
        self.look_after_the_first_thread();
    }

    fn longest_pause(&self) -> Duration {
        match self.threads.values().all(|thread| thread.stop.is_some()) {
            true => STOPPED_PAUSE,
            false => LONGEST_PAUSE,
        }
    }

    /// Writes down that we panicked.
    pub fn confess(&self, error: &LiveError) {
        self.journal.send(Control::Warning {
            ticks: clock::ticks(),
            message: error.one_line(),
        });
    }

    /// Handles all changes that are there. Returns whether there was one.
    pub fn look(&mut self) -> bool {
        let mut any = false;
        while let Ok(Some((tid, change))) = ptrace::next_change() {
            any = true;
            match change {
                ptrace::Change::Ended { status, by_signal } => {
                    if self.children.remove(&tid).is_some() {
                        // Its parent, the program, collects it; to us its end is told once more when it did.
                        ptrace::reap(tid);
                        continue;
                    }
                    self.forget_thread(tid);
                    if tid == self.pid {
                        self.board.saw_end(match by_signal {
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
        let thread = self.threads.remove(&tid);
        if let Some(stop) = thread.as_ref().and_then(|thread| thread.stop.as_ref()) {
            self.board.mark_shown(stop.number);
        }
        self.deadlines.remove(&tid);
        self.forget_asks(tid);
        if thread.is_some_and(|thread| thread.is_moved) && self.others_live(tid) {
            self.board.lose(tid);
        }
    }

    /// Tells whether the program goes on without `tid`: some other thread is there and not about to be killed.
    fn others_live(&self, tid: Tid) -> bool {
        self.threads
            .keys()
            .filter(|other| **other != tid)
            .any(|other| {
                let is_dead = procfs::is_dead(procfs::state(self.pid, *other));
                !is_dead && !procfs::is_being_killed(self.pid, *other)
            })
    }

    /// The end of a program's first thread is reported only when all others have ended too: one that was to get somewhere
    /// is looked for.
    fn look_after_the_first_thread(&mut self) {
        let pid = self.pid;
        let is_on_its_way = self.threads.len() > 1
            && self
                .threads
                .get(&pid)
                .is_some_and(|thread| thread.is_moved && thread.state == State::Running);
        if !is_on_its_way || self.looked_after.elapsed() < FIRST_THREAD_PERIOD {
            return;
        }
        self.looked_after = Instant::now();
        if procfs::is_dead(procfs::state(pid, pid)) {
            self.forget_thread(pid);
        }
    }

    fn stopped(&mut self, tid: Tid, signal: i32, event: i32) {
        let is_new = !self.threads.contains_key(&tid);
        if is_new && (self.children.contains_key(&tid) || !self.is_own(tid)) {
            self.child_stopped(tid, signal, event);
            return;
        }
        let thread = self.threads.entry(tid).or_insert_with(Thread::running);
        thread.state = State::Halted { signal: 0 };
        if is_new {
            self.watches.set_in(tid);
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
                let thread = self.threads.entry(tid).or_insert_with(Thread::running);
                if thread.is_interrupted || self.holding {
                    thread.is_interrupted = false;
                    thread.is_job_stopped = true;
                } else {
                    let _ = ptrace::listen(tid);
                    thread.state = State::Listening;
                }
            }
            libc::PTRACE_EVENT_STOP => {
                let thread = self.threads.entry(tid).or_insert_with(Thread::running);
                thread.is_interrupted = false;
                thread.is_job_stopped = false;
                match (self.holding, ptrace::has_untold_trap(tid)) {
                    (true, true) => self.tell_trap(tid),
                    (true, false) => {}
                    (false, _) => self.go_on(tid),
                }
            }
            _ => {
                self.hide_trap_flag(tid);
                let event = decode(self, tid, signal);
                if let (Event::Signal { .. }, Some(thread)) = (event, self.threads.get_mut(&tid)) {
                    thread.signal_info = ptrace::stop_info(tid).ok();
                }
                self.reported(tid, event);
            }
        }
    }

    /// Lets a halted thread tell of the trap that it has run into. It executes nothing for that. Left for later, the trap would
    /// kill the program once nobody traces it, and its place may be changed by then.
    fn tell_trap(&mut self, tid: Tid) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        // Asked to stop once more, it would do that first.
        thread.is_interrupted = true;
        thread.state = State::Running;
        // If it fails, the thread was killed; its end will be reported.
        let _ = ptrace::cont(tid, 0);
    }

    /// A thread has told of something that concerns others. Held, it stays where it is.
    fn went_on_unless_held(&mut self, tid: Tid) {
        if !self.holding {
            self.go_on(tid);
        }
    }

    /// Tells whether `tid` is a thread of the program, and not of a process that it has started.
    fn is_own(&self, tid: Tid) -> bool {
        procfs::thread_group(tid).is_none_or(|pid| pid == self.pid)
    }

    fn reported(&mut self, tid: Tid, event: Event) {
        if self.holding {
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.pending = Some(event);
            }
        } else {
            self.dispatch(tid, event);
        }
    }

    /// Acts on what a halted thread has reported.
    pub fn dispatch(&mut self, tid: Tid, event: Event) {
        let was_holding = self.holding;
        let Err(error) = guard::guarded(|| self.act_on(tid, event)) else {
            return;
        };
        self.confess(&error);
        self.let_go_of_what_is_held(was_holding);
        // Nobody deals with the thread any more: it goes on, unless it was stopped before the panic.
        let thread = self.threads.get(&tid);
        let is_left = thread.is_some_and(|thread| {
            matches!(thread.state, State::Halted { .. }) && thread.stop.is_none()
        });
        if is_left && !self.holding {
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
            .threads
            .get(&tid)
            .is_some_and(|thread| thread.is_stepping);
        self.go(tid, is_stepping);
    }

    /// Lets a halted thread run, or run one instruction. Standing at a trap, it passes it.
    pub fn go(&mut self, tid: Tid, one_step: bool) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let State::Halted { signal } = thread.state else {
            return;
        };
        let passes = thread.stop.take().is_some() || thread.is_at_trap;
        thread.calls_to_come = 0;
        thread.is_at_trap = false;
        thread.is_stepping = one_step;
        thread.is_interrupted = false;
        let mut behind_pushed_flags = None;
        if let Ok(mut registers) = ptrace::registers(tid) {
            let site = self.sites.by_trap(registers.rip);
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
        self.tell_signal(tid, signal);
        let went = if one_step {
            ptrace::step(tid, signal)
        } else {
            ptrace::cont(tid, signal)
        };
        if let Some(thread) = self.threads.get_mut(&tid) {
            // If it fails, the thread was killed; its end will be reported.
            thread.state = State::Running;
            thread.behind_pushed_flags = behind_pushed_flags;
            let _ = went;
        }
    }

    /// Lets a halted thread run from exactly where it stands.
    pub fn run_in_place(&mut self, tid: Tid) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let State::Halted { signal } = thread.state else {
            return;
        };
        thread.stop = None;
        thread.calls_to_come = 0;
        thread.is_at_trap = false;
        thread.is_stepping = false;
        thread.is_interrupted = false;
        thread.state = State::Running;
        self.tell_signal(tid, signal);
        // If it fails, the thread was killed; its end will be reported.
        let _ = ptrace::cont(tid, signal);
    }

    /// Has a signal come with what the kernel told of it, though the thread may have run and stopped for us since.
    fn tell_signal(&self, tid: Tid, signal: i32) {
        let thread = self.threads.get(&tid);
        let info = thread.and_then(|thread| thread.signal_info.as_ref());
        if let Some(info) = info.filter(|info| info.si_signo == signal) {
            // If it fails, the thread was killed; its end will be reported.
            let _ = ptrace::set_stop_info(tid, info);
        }
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

    /// Has a signal delivered once a halted thread goes on.
    pub fn keep_signal(&mut self, tid: Tid, signal: i32) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = State::Halted { signal };
        }
    }

    /// Stops a thread for good, tells everybody, and writes it down.
    pub fn halt(&mut self, tid: Tid, reason: Reason, all_threads: bool) {
        // Whoever has called a function waits for what it returns.
        if self.has_call(tid) && reason.is_of_a_probe() {
            self.go(tid, false);
            return;
        }
        self.abandon_plan(tid);
        let was_holding = self.holding;
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
        if let (Some(thread), Some(stop)) = (self.threads.get_mut(&tid), stop) {
            if let Some(calling) = &mut thread.calling {
                calling.was_stopped = true;
            }
            if all_threads {
                self.stopped_all = stop.number;
            }
            thread.stop = Some(stop);
            thread.is_stepping = false;
            thread.is_moved = false;
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
        let tids: Vec<Tid> = self.threads.keys().copied().collect();
        for tid in tids {
            let thread = &self.threads[&tid];
            if matches!(thread.state, State::Halted { .. }) && thread.stop.is_none() {
                // Where it was to get to counts no more: whoever lets it go says where to.
                self.abandon_plan(tid);
                let stop = self.post(tid, Reason::AllThreads, None);
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.stop = stop;
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
    ) -> Option<super::model::Stop> {
        // If it cannot be moved it was killed, or is shown where it is.
        let _ = self.leave_ours(tid);
        if let Some(why) = copy {
            self.copy_memory(why);
        }
        let pc = self.pc(tid)?;
        let calls_to_come = self.threads.get(&tid).map_or(0, |t| t.calls_to_come);
        let displayed = self.displayed(tid);
        let place = (pc, calls_to_come);
        self.journal.pause(self, tid, &reason, place, &displayed);
        Some(self.board.post(tid, reason, pc, calls_to_come, displayed))
    }

    /// Returns where a halted thread stands in the program.
    pub fn pc(&self, tid: Tid) -> Option<u64> {
        let registers = self.registers(tid).ok()?;
        Some(self.original_pc(registers.rip))
    }

    /// Returns the program's address for a `pc`, which may lie in code of ours.
    pub fn original_pc(&self, pc: u64) -> u64 {
        self.exact_pc(pc).unwrap_or_else(|| {
            let slot = self.sites.original_pc(pc).flatten();
            slot.or_else(|| self.memory.hooks_now().original_pc(pc))
                .unwrap_or(pc)
        })
    }

    /// Returns the program's address for a `pc` that stands exactly between two of its instructions; `None`: the thread
    /// is on its way through code of ours.
    pub fn exact_pc(&self, pc: u64) -> Option<u64> {
        if let Some(site) = self.sites.by_trap(pc) {
            return Some(site.address);
        }
        if let Some(slot) = self.sites.original_pc(pc) {
            return slot;
        }
        let hooks = self.memory.hooks_now();
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
        match self.sites.add(&self.memory, address, user) {
            Ok(()) => Ok(()),
            Err(Missing::Refused(error)) => Err(error),
            Err(Missing::SlotsNear(near)) => {
                self.make_room(near)?;
                match self.sites.add(&self.memory, address, user) {
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
        let site = self.sites.at(address);
        if site.is_some_and(|site| site.users.len() == 1 && site.users.contains(&user)) {
            self.disarm(address);
        }
        self.sites.remove(&self.memory, address, user);
        self.site_changed(address);
    }

    fn became_another_program(&mut self, tid: Tid) {
        self.threads.retain(|other, _| *other == tid);
        self.sites.clear(&self.memory);
        self.compiling.clear();
        self.asks = Asks::default();
        if let Ok(mut hooks) = self.memory.hooks.write() {
            hooks.clear();
        }
        if let Ok(mut space) = self.space.write() {
            *space = Arc::new(AddressSpace::default());
        }
        self.probes.unbind_all();
        self.landings = Landings::default();
        self.syscall_at = None;
        self.call_return_at = None;
        if !self.holding {
            self.go_on(tid);
        }
    }

    /// Takes all traps away and lets the program go.
    pub fn let_go(&mut self) {
        let _ = self.hold();
        // What cannot be undone does no harm: without traps, nothing calls the handler.
        let _ = self.forget_leftovers();
        self.sites.lift_all(&self.memory);
        let tids: Vec<Tid> = self.threads.keys().copied().collect();
        for tid in tids {
            self.watches.clear_in(tid);
            let Some(thread) = self.threads.get(&tid) else {
                continue;
            };
            let signal = match (thread.state, thread.pending) {
                (_, Some(Event::Signal { signal, .. })) => signal,
                (State::Halted { signal }, _) => signal,
                _ => 0,
            };
            if !thread.is_job_stopped {
                restart::ask_for_restart(tid);
            }
            self.tell_signal(tid, signal);
            let _ = ptrace::detach(tid, signal);
        }
        self.threads.clear();
        self.done = true;
    }

    /// Ends the loop: the program is gone.
    pub fn finish(&mut self) {
        self.look();
        self.done = true;
    }

    /// Drops a thread's plan and the traps it set.
    pub fn abandon_plan(&mut self, tid: Tid) {
        let plan: Option<Plan> = self
            .threads
            .get_mut(&tid)
            .and_then(|thread| thread.plan.take());
        if let Some(plan) = &plan
            && plan.deferred != 0
            && let Some(thread) = self.threads.get_mut(&tid)
            && matches!(thread.state, State::Halted { signal: 0 })
        {
            thread.state = State::Halted {
                signal: plan.deferred,
            };
        }
        for address in plan.into_iter().flat_map(|plan| plan.traps) {
            self.remove_site(address, User::Step(tid));
        }
    }
}

fn own_tid() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() }
}

/// Asks the tracer for something and waits for the answer.
pub(crate) fn ask<R: Send + 'static>(
    tracer: &Sender<Command>,
    question: impl FnOnce(&mut Tracer) -> R + Send + 'static,
) -> LiveResult<R> {
    let (reply, answer) = crossbeam::channel::bounded(1);
    tracer
        .send(Box::new(move |tracer| {
            let was_holding = tracer.holding;
            let answer = guard::guarded(|| question(tracer));
            if let Err(error) = &answer {
                tracer.confess(error);
                tracer.let_go_of_what_is_held(was_holding);
            }
            let _ = reply.send(answer);
        }))
        .map_err(|_| LiveError::Ended)?;
    answer.recv().map_err(|_| LiveError::Ended)?
}
