//! The tracee: its threads and what the kernel reports about them, its memory, and the processes that it starts.

pub(crate) mod children;
pub(crate) mod copies;
pub(crate) mod event;
pub(crate) mod halt;
pub(crate) mod hold;
pub(crate) mod hooks;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod resume;
pub(crate) mod stopped;
pub(crate) mod threads;
mod write;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use agent::shared::Asked;
use debuginfo::AddressSpace;

use self::{
    children::Child,
    memory::LiveMemory,
    threads::{Halt, Run, Thread},
};
use crate::{
    live::{follow::Following, model::Tid},
    snapshot::SharedSnapshots,
    stop::{Registers, procfs, ptrace},
};

/// How often to check whether the first thread has ended.
pub(crate) const FIRST_THREAD_PERIOD: Duration = Duration::from_millis(50);

/// The traced program.
pub(crate) struct Tracee {
    pub pid: i32,
    pub threads: BTreeMap<Tid, Thread>,
    pub memory: LiveMemory,
    /// Snapshots of the memory, if enabled.
    pub snapshots: Option<SharedSnapshots>,
    /// The modules that it has loaded.
    pub space: Arc<RwLock<Arc<AddressSpace>>>,
    /// The thread that asks at this moment whether it is to stop. It runs, and its registers are those that it has published.
    pub asking: Option<(Registers, Arc<Asked>)>,
    /// All threads are to be halted; events are kept for later.
    pub is_held: bool,
    /// Threads whose events were being handled when all threads were held. Their handlers resume them.
    pub busy: BTreeSet<Tid>,
    /// Threads have deferred events.
    pub has_deferred: bool,
    /// Processes started by the program that were not released yet.
    pub children: BTreeMap<Tid, Child>,
    /// The copy of it that the user is to follow.
    pub following: Following,
    /// Time of the last check whether the first thread has ended.
    looked_after: Instant,
}

impl Tracee {
    /// Traces no thread yet.
    pub fn new(pid: i32, memory: LiveMemory, space: Arc<RwLock<Arc<AddressSpace>>>) -> Self {
        Self {
            pid,
            threads: BTreeMap::new(),
            memory,
            snapshots: None,
            space,
            asking: None,
            is_held: false,
            busy: BTreeSet::new(),
            has_deferred: false,
            children: BTreeMap::new(),
            following: Following::default(),
            looked_after: Instant::now(),
        }
    }

    pub fn seize_all(&mut self) -> io::Result<()> {
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
                    // A clone of a tracee is automatically our tracee too.
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

    /// Returns the modules loaded now.
    pub fn space_now(&self) -> Arc<AddressSpace> {
        Arc::clone(&self.space.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns what a thread has published that asks at this moment whether it is to stop.
    pub fn published(&self, tid: Tid) -> Option<&(Registers, Arc<Asked>)> {
        let asking = self.asking.as_ref();
        asking.filter(|(_, asked)| asked.tid == tid as u32)
    }

    /// Returns the state of a halted thread.
    pub fn halt_mut(&mut self, tid: Tid) -> Option<&mut Halt> {
        self.threads.get_mut(&tid)?.halt_mut()
    }

    /// Returns whether no thread runs.
    pub fn is_standing(&self) -> bool {
        let mut threads = self.threads.values();
        threads.all(Thread::is_halted)
    }

    /// Returns whether the program survives the end of `tid`: another thread exists and is not about to be killed.
    pub fn others_live(&self, tid: Tid) -> bool {
        self.threads
            .keys()
            .filter(|other| **other != tid)
            .any(|other| {
                let is_dead = procfs::is_dead(procfs::state(self.pid, *other));
                !is_dead && !procfs::is_being_killed(self.pid, *other)
            })
    }

    /// Returns whether a thread other than `tid` runs.
    pub fn others_run(&self, tid: Tid) -> bool {
        let mut others = self.threads.iter().filter(|(other, _)| **other != tid);
        others.any(|(_, thread)| thread.is_running())
    }

    /// Returns whether the first thread is on its way to a goal. Its end is reported only after all other threads have
    /// ended.
    pub fn is_first_thread_on_its_way(&self) -> bool {
        let first = self.threads.get(&self.pid);
        let is_moved = |thread: &Thread| thread.is_moved && thread.is_running();
        self.threads.len() > 1 && first.is_some_and(is_moved)
    }

    /// Returns whether the first thread has ended on its way to a goal. Checks from time to time.
    pub fn has_lost_first_thread(&mut self) -> bool {
        let is_time = || self.looked_after.elapsed() >= FIRST_THREAD_PERIOD;
        if !self.is_first_thread_on_its_way() || !is_time() {
            return false;
        }
        self.looked_after = Instant::now();
        procfs::is_dead(procfs::state(self.pid, self.pid))
    }

    /// Returns whether `tid` is a thread of the program, and not of a process started by it.
    pub fn is_own(&self, tid: Tid) -> bool {
        procfs::thread_group(tid).is_none_or(|pid| pid == self.pid)
    }

    /// Returns whether the program has new threads that have not stopped for us yet.
    pub fn has_unseen_threads(&self) -> bool {
        let tids = procfs::tasks(self.pid).unwrap_or_default();
        tids.into_iter().any(|tid| {
            let is_seen = self.threads.contains_key(&tid);
            !is_seen && !procfs::is_dead(procfs::state(self.pid, tid))
        })
    }

    /// Forgets threads that have ended.
    pub fn drop_the_dead(&mut self) {
        let pid = self.pid;
        self.threads
            .retain(|tid, _| !procfs::is_dead(procfs::state(pid, *tid)));
    }

    /// Restores the siginfo of a signal, since the thread may have run and stopped for us in between.
    pub fn tell_signal(&self, tid: Tid, signal: i32) {
        let thread = self.threads.get(&tid);
        let info = thread.and_then(|thread| thread.signal_info.as_ref());
        if let Some(info) = info.filter(|info| info.si_signo == signal) {
            // On failure the thread was killed; its end will be reported.
            let _ = self.stopped(tid).map(|stopped| stopped.set_info(info));
        }
    }

    /// Notes the siginfo of the signal that a halted thread is about to receive.
    pub fn note_signal(&mut self, tid: Tid) {
        let stopped = self.stopped(tid).ok();
        let info = stopped.and_then(|stopped| stopped.info().ok());
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.signal_info = info;
        }
    }

    /// Delivers a signal when a halted thread resumes.
    pub fn keep_signal(&mut self, tid: Tid, signal: i32) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.set_signal(signal);
        }
    }

    /// Lets a halted thread report the trap that it has hit. It executes nothing for this. A pending trap would kill
    /// the program once it is no longer traced, and the code may have changed by then. `run`: how the thread ran.
    pub fn tell_trap(&mut self, tid: Tid, run: Run) {
        // An interrupt request would be reported first.
        let run = Run {
            is_interrupted: true,
            ..run
        };
        if let Some(thread) = self.resumable(tid) {
            thread.run_as(0, run);
        }
    }

    pub fn handles(&self, signal: i32) -> bool {
        self.mask("SigCgt:") & 1u64 << (signal - 1) != 0
    }

    pub fn ignores(&self, signal: i32) -> bool {
        self.mask("SigIgn:") & 1u64 << (signal - 1) != 0
    }

    /// Reads one of the signal masks in /proc.
    fn mask(&self, name: &str) -> u64 {
        let status = procfs::text(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
            .unwrap_or(0)
    }
}

fn own_tid() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() }
}
