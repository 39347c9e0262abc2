//! The processes that a program starts, if they are to be recorded too.
//!
//! The tracer of a program traces them from their creation until they execute a program of their own. That program is
//! parked at its entry point and handed to a recorder of its own, so that each recorder records one program. A forked
//! copy that executes no program, and a program that cannot be recorded, stay with the tracer, which passes everything
//! on to them and reports when and how they end.

mod copies;
mod entry;
mod hand_over;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs, io,
    os::unix::fs::FileExt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Release},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use crossbeam::channel::Sender;
use store::{
    manifest::{Lineage, RecordingId},
    set::{Fact, ProcessLog},
};

use self::hand_over::ParkedWatch;
pub use self::hand_over::{RECORDED, REFUSED, why_refused};
pub(crate) use self::{copies::park as park_copy, entry::AtEntry, hand_over::Recorder};
use super::{commands::Commands, event_loop::Tracer, model::Tid, tracee::Tracee};
use crate::{
    process::{Parked, status::Seccomp},
    stop::{procfs, ptrace},
};

/// A thread that is traced for its process.
#[derive(Debug)]
struct Task {
    pid: Tid,
    state: State,
    origin: Origin,
}

/// How a process came to run what it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// It is a copy of the program, with a memory of its own.
    Copy,
    /// It is a copy that cannot be recorded as one, for this reason, unless it executes a program.
    Other(&'static str),
    /// It has executed a program, or the set knows why it is not recorded.
    Told,
}

#[derive(Debug)]
enum State {
    /// It has not stopped yet.
    New,
    /// It runs, and is not recorded.
    Plain,
    /// Its dynamic linker runs: there is a trap at the entry point.
    Loading(AtEntry),
    /// It is parked, and no recorder takes it. It is released once it stops.
    Returned(Box<Parked>),
}

/// The processes of a tracer that are not its program.
pub(crate) struct Family {
    log: Arc<ProcessLog>,
    /// Starts the next recorders.
    recorder: Vec<OsString>,
    /// This recorder's recording.
    run: RecordingId,
    tasks: BTreeMap<Tid, Task>,
    /// Who created each process: the kernel gives it another parent when that one ends.
    parents: BTreeMap<Tid, Tid>,
    program: Tid,
    /// Threads that have stopped before their creator reported them.
    early: BTreeSet<Tid>,
    /// Parked processes that no recorder has taken yet.
    pending: usize,
    /// The program has ended or executed another one.
    has_left: bool,
    /// It has executed another one.
    pub became: Arc<AtomicBool>,
    /// Copies of the program are recorded too.
    records_copies: bool,
    /// The restrictions that every process here begins with.
    usual: Seccomp,
    commands: Commands,
    /// Dropped when the tracer ends.
    _over: Sender<()>,
}

impl Family {
    /// Begins with the program alone, of which `program` tells. `commands` is the tracer's inbox.
    pub fn new(
        log: Arc<ProcessLog>,
        (recorder, records_copies): (Vec<OsString>, bool),
        (program, run): (Lineage, RecordingId),
        commands: Commands,
        over: Sender<()>,
    ) -> Self {
        Self {
            log,
            recorder,
            run,
            tasks: BTreeMap::new(),
            parents: BTreeMap::from([(program.pid, program.parent_pid)]),
            program: program.pid,
            early: BTreeSet::new(),
            pending: 0,
            has_left: false,
            became: Arc::default(),
            records_copies,
            usual: Seccomp::of(std::process::id() as i32),
            commands,
            _over: over,
        }
    }

    /// Returns whether nothing is left to do for it.
    pub fn is_done(&self) -> bool {
        self.tasks.is_empty() && self.pending == 0
    }

    /// Returns whether events of this thread are the family's.
    pub fn has(&self, tid: Tid) -> bool {
        self.has_left || self.tasks.contains_key(&tid)
    }

    fn tell(&self, fact: &Fact) {
        // The processes keep running even if the disk fails.
        let _ = self.log.add(fact);
    }

    fn refuse(&self, pid: Tid, why: impl Into<String>) {
        let why = why.into();
        self.tell(&Fact::Unrecorded { pid, why });
    }

    /// Handles a report of a thread or process that another one has created. It may have been seen already, and be gone.
    pub fn created(&mut self, tid: Tid) {
        if !self.early.remove(&tid) && !self.tasks.contains_key(&tid) {
            self.follow(tid);
        }
    }

    /// A thread of the program has called clone(2), which may have created a process.
    pub fn may_have_process(&mut self, tracee: &Tracee, tid: Tid) {
        if let Ok(new) = ptrace::event_message(tid)
            && !tracee.is_own(new as Tid)
        {
            self.created(new as Tid);
        }
    }

    fn follow(&mut self, tid: Tid) {
        let pid = procfs::thread_group(tid).unwrap_or(tid);
        let mut origin = Origin::Told;
        if pid == tid {
            let parent = procfs::parent(pid).unwrap_or(0);
            origin = self.origin(pid, parent);
            self.parents.insert(pid, parent);
            self.tell(&Fact::Begin {
                pid,
                parent,
                unix_ns: now(),
                argv: argv(pid),
            });
        }
        let state = State::New;
        self.tasks.insert(tid, Task { pid, state, origin });
    }

    /// Returns how a new process came to be. Its creator is still in the system call that made it: later it may have ended, and
    /// the process has another parent.
    fn origin(&self, pid: Tid, parent: Tid) -> Origin {
        if self.has_left || parent != self.program {
            return Origin::Other("it is a copy of a process that is not recorded");
        }
        match ptrace::share_memory(pid, parent) {
            Some(false) => Origin::Copy,
            Some(true) => Origin::Other("it shared its parent's memory, as after vfork"),
            None => Origin::Other("the kernel does not tell whether it shares its parent's memory"),
        }
    }

    /// Begins to follow a thread that has stopped before its creator reported it.
    fn see(&mut self, tid: Tid) {
        if !self.tasks.contains_key(&tid) {
            self.early.insert(tid);
            self.follow(tid);
        }
    }

    /// Handles a stop. A failed request means that the thread was killed: its end will be reported.
    fn stopped(&mut self, tid: Tid, signal: i32, event: i32) {
        self.see(tid);
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                if let Ok(new) = ptrace::event_message(tid) {
                    self.created(new as Tid);
                }
                let _ = ptrace::cont(tid, 0);
            }
            libc::PTRACE_EVENT_EXEC => self.executes(tid),
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                let _ = ptrace::listen(tid);
            }
            libc::PTRACE_EVENT_STOP => {
                self.run_by_itself(tid);
                let _ = ptrace::cont(tid, 0);
            }
            0 if signal == libc::SIGTRAP && self.is_at_entry(tid) => self.reached_entry(tid),
            0 => {
                let _ = ptrace::cont(tid, signal);
            }
            _ => {
                let _ = ptrace::cont(tid, 0);
            }
        }
    }

    /// Handles an end.
    pub fn ended(&mut self, tid: Tid, status: i32, by_signal: bool) {
        if let Some(task) = self.tasks.remove(&tid)
            && task.pid == tid
        {
            self.tasks.retain(|_, other| other.pid != tid);
            self.parents.remove(&tid);
            match (task.state, task.origin) {
                (State::Loading(_), _) => {
                    self.refuse(tid, "it ended before its first instruction");
                }
                (_, Origin::Other(why)) if self.records_copies => self.refuse(tid, why),
                (State::New, Origin::Copy) if self.records_copies => {
                    self.refuse(tid, "it was killed before its recording began");
                }
                _ => {}
            }
            self.tell_end(tid, status, by_signal);
        }
        // Its parent reaps it: the kernel reports its end after that.
        ptrace::reap(tid);
    }

    /// The program itself has ended.
    pub fn program_ended(&mut self, pid: Tid, status: i32, by_signal: bool) {
        self.has_left = true;
        self.tell_end(pid, status, by_signal);
        ptrace::reap(pid);
    }

    fn tell_end(&self, pid: Tid, status: i32, by_signal: bool) {
        self.tell(&Fact::End {
            pid,
            unix_ns: now(),
            code: (!by_signal).then_some(status),
            signal: by_signal.then_some(status & 0x7f),
        });
    }

    /// The program itself executes another one.
    pub fn program_executes(&mut self, pid: Tid) {
        self.has_left = true;
        self.became.store(true, Release);
        self.executes(pid);
    }

    /// A process has executed a program, of which nothing has run yet.
    fn executes(&mut self, pid: Tid) {
        self.tasks
            .retain(|tid, task| task.pid != pid || *tid == pid);
        self.tell(&Fact::Image {
            pid,
            unix_ns: now(),
            argv: argv(pid),
        });
        let state = match AtEntry::set(pid, self.usual) {
            Ok(at) => State::Loading(at),
            Err(why) => {
                self.refuse(pid, why);
                State::Plain
            }
        };
        let origin = Origin::Told;
        self.tasks.insert(pid, Task { pid, state, origin });
        let _ = ptrace::cont(pid, 0);
    }

    fn is_at_entry(&self, tid: Tid) -> bool {
        let state = self.tasks.get(&tid).map(|task| &task.state);
        matches!(state, Some(State::Loading(at)) if at.is_reached(tid))
    }

    /// Parks a process whose libraries are loaded, and hands it to a recorder of its own.
    fn reached_entry(&mut self, pid: Tid) {
        let park = |at: &AtEntry| {
            // A process that stays unrecorded goes on from here.
            at.restore(pid)?;
            let watch = ParkedWatch::new(pid).map_err(|error| error.to_string())?;
            Ok((at.park(pid)?, watch))
        };
        let parked = match self.tasks.get(&pid).map(|task| &task.state) {
            Some(State::Loading(at)) => park(at),
            _ => Err("it is not at its entry point".to_owned()),
        };
        match parked {
            Ok((parked, watch)) => self.hand_over(parked, watch, false),
            Err(why) => {
                self.refuse(pid, why);
                if let Some(task) = self.tasks.get_mut(&pid) {
                    task.state = State::Plain;
                }
                let _ = ptrace::cont(pid, 0);
            }
        }
    }

    fn hand_over(&mut self, parked: Parked, watch: ParkedWatch, is_copy: bool) {
        let pid = parked.pid;
        self.tasks.remove(&pid);
        let parent = self.parents.remove(&pid);
        self.pending += 1;
        let recorder = Recorder {
            log: Arc::clone(&self.log),
            command: self.recorder.clone(),
            parked,
            lineage: Lineage {
                pid,
                parent_pid: parent.or_else(|| procfs::parent(pid)).unwrap_or(0),
                parent_run: Some(self.run),
            },
            is_copy,
        };
        recorder.hand_over(watch, self.commands.clone());
    }

    /// Takes back a parked process, which `parent` created and no recorder has taken: it is released as soon as it stops.
    ///
    /// # Errors It is gone, or another process traces it.
    fn take_back(&mut self, parked: &Parked, parent: Tid) -> io::Result<()> {
        ptrace::seize_with_its_clones(parked.pid)?;
        self.parents.insert(parked.pid, parent);
        let state = State::Returned(Box::new(parked.clone()));
        let pid = parked.pid;
        let origin = Origin::Told;
        self.tasks.insert(pid, Task { pid, state, origin });
        ptrace::interrupt(pid)
    }

    fn run_by_itself(&mut self, tid: Tid) {
        let Some(task) = self.tasks.get_mut(&tid) else {
            return;
        };
        match &task.state {
            State::Returned(parked) => {
                let _ = process_memory(tid).and_then(|memory| {
                    memory.write_all_at(&parked.original, parked.entry)?;
                    ptrace::set_registers(tid, &parked.registers)
                });
                task.state = State::Plain;
            }
            State::New => task.state = State::Plain,
            State::Plain | State::Loading(_) => {}
        }
    }
}

impl Tracer {
    /// Returns whether there is no family, or it has ended.
    pub fn is_alone(&self) -> bool {
        self.family.as_ref().is_none_or(Family::is_done)
    }

    /// The program executes another one, which gets a recording of its own.
    pub fn program_executes(&mut self, tid: Tid) {
        self.tracee.threads.clear();
        if let Some(family) = &mut self.family {
            family.program_executes(tid);
        }
        self.journal.wake_recorder();
    }
}

/// Opens a process's memory, to read and write it.
pub(crate) fn process_memory(pid: Tid) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options
        .read(true)
        .write(true)
        .open(format!("/proc/{pid}/mem"))
}

/// Returns the command line of a process, with replacement characters for invalid UTF-8.
pub(crate) fn argv(pid: Tid) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let Some(text) = text.strip_suffix(&[0]) else {
        return Vec::new();
    };
    let words = text.split(|byte| *byte == 0);
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Returns the time, in nanoseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as i64)
}
