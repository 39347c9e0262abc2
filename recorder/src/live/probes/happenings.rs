//! Finds out what happened to the program: whether a catchpoint waits for the event, and how to report it.
//!
//! A thread that is stopped for the user is at a place where the program's own code can continue, never inside a system
//! call: there, a change of its registers would change the call. A thread that is caught at a call is therefore moved
//! back to before the call, which it makes when it is resumed; a thread that has created a process stops after the call
//! that did so.

use std::{collections::BTreeSet, io};

use debuginfo::Glob;

use super::exceptions::Thrown;
use crate::{
    live::{
        event_loop::Tracer,
        happening::{Happening, system_call},
        model::{Location, ProbeId, Reason, Tid},
        probes::{Probes, exceptions::Exceptions},
        tracee::{Tracee, event::Event, stopped::Stopped},
    },
    process::{Maps, maps::MappedFile, status::Seccomp},
};

/// Length of the instruction `syscall`.
const SYSCALL_BYTES: u64 = 2;
/// The C++ runtime's header of an exception up to the part that the unwinder knows, and the length of that part (Itanium
/// C++ ABI, Exception Handling, 2.2.1; libstdc++'s `unwind-cxx.h`).
const BEFORE_UNWIND_HEADER: u64 = 0x50;
const UNWIND_HEADER_BYTES: u64 = 0x20;

/// What a thread has done in a system call that it is about to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Made a process.
    Forked { child: Tid, borrows: bool },
    /// Executed another program.
    Executed,
}

impl Probes {
    fn catcher(&self, is_it: impl Fn(&Happening) -> bool) -> Option<ProbeId> {
        // This runs whenever a thread is resumed, and there may be thousands of breakpoints: those of events have no
        // places.
        let placeless = self.placeless.iter();
        let mut all = placeless.filter_map(|id| self.by_id.get(id));
        let found = all.find(|probe| {
            let happening = match &probe.view.spec.location {
                Location::Event(happening) => happening,
                _ => return false,
            };
            probe.is_enabled && is_it(happening)
        });
        found.map(|probe| probe.view.id)
    }

    fn catches_call(&self, number: u64) -> Option<ProbeId> {
        self.catcher(|happening| match happening {
            Happening::Syscall(numbers) => numbers.is_empty() || numbers.contains(&number),
            _ => false,
        })
    }

    /// Returns what has happened at the entry of a function of [`Happening::entries`]; `None` if the catchpoint does
    /// not wait for it.
    pub fn happened(&mut self, tracee: &Tracee, tid: Tid, happening: &Happening) -> Option<Thrown> {
        let told = |what| Thrown {
            what,
            message: None,
        };
        match happening {
            Happening::Handler => Some(
                Exceptions::of(tracee)
                    .handled(tid)
                    .unwrap_or_else(|| told("an exception".to_owned())),
            ),
            Happening::Rethrow => {
                let again = Exceptions::of(tracee).unhandled(tid, None)?;
                Some(Thrown {
                    what: format!("thrown again: {}", again.what),
                    ..again
                })
            }
            Happening::Load(pattern) => self.loaded(tracee, pattern.as_deref()).map(told),
            _ => None,
        }
    }

    /// Names the libraries that match, are mapped, and were not when last looked at; `None` if there are none.
    fn loaded(&mut self, tracee: &Tracee, pattern: Option<&str>) -> Option<String> {
        let files = Maps::read(tracee.pid).ok()?.files();
        let starts: BTreeSet<u64> = files.iter().map(|file| file.range.start).collect();
        let known = &mut self.mapped_before;
        known.retain(|start| starts.contains(start));
        let glob = pattern.map(Glob::new);
        let is_meant = |file: &&MappedFile| {
            let name = file.path.file_name().map(|name| name.to_string_lossy());
            let matches = |glob: &Glob| name.is_some_and(|name| glob.matches(&name));
            glob.as_ref().is_none_or(matches)
        };
        // Another catchpoint may wait for the others.
        let new: Vec<String> = (files.iter().filter(is_meant))
            .filter(|file| known.insert(file.range.start))
            .map(|file| file.path.display().to_string())
            .collect();
        (!new.is_empty()).then(|| format!("load: {}", new.join(", ")))
    }

    /// Notes which files are mapped now.
    pub fn look_at_files(&mut self, tracee: &Tracee) {
        let maps = Maps::read(tracee.pid);
        let files = maps.map(|maps| maps.files()).unwrap_or_default();
        self.mapped_before = files.iter().map(|file| file.range.start).collect();
    }
}

impl Tracee {
    /// Resumes a thread, up to its next system call if those are watched.
    pub fn run_thread(&mut self, probes: &Probes, tid: Tid, signal: i32) {
        let thread = self.threads.get(&tid);
        let is_leaving = thread.is_some_and(|thread| thread.done.is_some());
        let sees_calls = || {
            let is_sandboxed = thread.is_some_and(|thread| thread.is_sandboxed);
            let is_caught = |happening: &Happening| matches!(happening, Happening::Syscall(_));
            !is_sandboxed && probes.catcher(is_caught).is_some()
        };
        let to_call = is_leaving || sees_calls();
        match self.resumable(tid) {
            Some(thread) if to_call => thread.run_to_call(signal),
            Some(thread) => thread.run(signal),
            None => {}
        }
    }

    pub fn forget_passed(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.passes_call = None;
        }
    }

    /// Moves a thread that has entered a system call back to before the call, which the kernel skips. A filter of a
    /// sandbox would see the skipped call and might end the program; a filter that also applies to us is a container's.
    fn take_back(&mut self, tid: Tid, number: u64) -> bool {
        if Seccomp::of(tid) > Seccomp::of(std::process::id() as i32) {
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.is_sandboxed = true;
            }
            return false;
        }
        let stopped = self.stopped(tid);
        stopped.is_ok_and(|stopped| skips_call(&stopped, number).is_ok())
    }
}

impl Tracer {
    /// Makes running threads report their system calls from now on.
    pub fn see_calls(&mut self) {
        if !self.tracee.is_held {
            // A thread that does not stop in time reports them after its next stop.
            let _ = self.hold();
            self.release();
        }
    }

    /// Notes that a thread has created a process or executed a program, if that is caught.
    pub fn note_done(&mut self, tid: Tid, done: Done) {
        let is_it = |happening: &Happening| match done {
            Done::Forked { borrows: false, .. } => *happening == Happening::Fork,
            Done::Forked { .. } => *happening == Happening::Vfork,
            Done::Executed => *happening == Happening::Exec,
        };
        if !self.is_unattended
            && self.probes.catcher(is_it).is_some()
            && let Some(thread) = self.tracee.threads.get_mut(&tid)
        {
            thread.done = Some(done);
        }
    }

    /// Handles a thread at the beginning or at the end of a system call.
    pub fn at_call(&mut self, tid: Tid) {
        let stopped = self.tracee.stopped(tid).ok();
        let Some(number) = stopped.and_then(|stopped| stopped.call_entered()) else {
            let thread = self.tracee.threads.get_mut(&tid);
            match thread.and_then(|thread| thread.done.take()) {
                Some(done) => self.reported(tid, Event::Done(done)),
                None if self.tracee.is_held => {}
                None => self.tracee.run_thread(&self.probes, tid, 0),
            }
            return;
        };
        let Ok(registers) = self.tracee.registers(tid) else {
            return;
        };
        // Calls by our own code have no place in the program.
        let place = self
            .breakpoints
            .exact_pc(&self.tracee, registers.rip.wrapping_sub(SYSCALL_BYTES));
        let passed = self
            .tracee
            .threads
            .get(&tid)
            .and_then(|thread| thread.passes_call);
        let is_new = place.is_some() && place != passed;
        let id = self.probes.catches_call(number).filter(|_| is_new);
        if id.is_none() && !self.tracee.is_held {
            self.tracee.forget_passed(tid);
            self.tracee.run_thread(&self.probes, tid, 0);
            return;
        }
        match (self.tracee.take_back(tid, number), id) {
            (true, Some(_)) => self.reported(tid, Event::Call { number }),
            // It makes the call when it is released.
            (true, None) => {}
            (false, id) => {
                if let Some(id) = id {
                    let why = "a thread in a sandbox (seccomp) is not stopped before a system call";
                    self.stops.failures.judged(id, true, Some(why));
                }
                self.tracee.run_thread(&self.probes, tid, 0);
            }
        }
    }

    /// Handles a thread before a system call that is caught.
    pub fn call_caught(&mut self, tid: Tid, number: u64) {
        let pc = self.breakpoints.pc(&self.tracee, tid);
        if let Some(thread) = self.tracee.threads.get_mut(&tid) {
            thread.passes_call = pc;
        }
        let what = format!("system call {}", system_call(number));
        let id = self.probes.catches_call(number);
        if !self.stop_for(tid, id, what) {
            self.go_on(tid);
        }
    }

    /// Handles a thread that has created a process or executed a program.
    pub fn has_done(&mut self, tid: Tid, done: Done) {
        let (id, what) = match done {
            Done::Forked { child, borrows } => {
                let (wanted, word) = match borrows {
                    false => (Happening::Fork, "fork"),
                    true => (Happening::Vfork, "vfork"),
                };
                let id = self.probes.catcher(|happening| *happening == wanted);
                (id, format!("{word}: new process {child}"))
            }
            Done::Executed => {
                let exe = std::fs::read_link(format!("/proc/{}/exe", self.tracee.pid));
                let exe =
                    exe.map_or_else(|_| "a program".to_owned(), |exe| exe.display().to_string());
                let id = self
                    .probes
                    .catcher(|happening| *happening == Happening::Exec);
                (id, format!("exec: {exe}"))
            }
        };
        if !self.stop_for(tid, id, what) {
            self.go_on(tid);
        }
    }

    /// Stops a thread if the catchpoint applies. Returns whether it did.
    fn stop_for(&mut self, tid: Tid, id: Option<ProbeId>, what: String) -> bool {
        let judged = id.and_then(|id| self.judge(tid, id));
        let (Some(probe), Some((Reason::Breakpoint { hits, .. }, all_threads))) = (id, judged)
        else {
            return false;
        };
        self.halt(tid, Reason::Happened { probe, hits, what }, all_threads);
        true
    }
}

impl Exceptions<'_> {
    /// Returns the exception of a thread at the entry of `__cxa_begin_catch`, unless it refers to another one.
    fn handled(&self, tid: Tid) -> Option<Thrown> {
        let unwind_header = self.tracee.registers(tid).ok()?.rdi;
        let word = |at: u64| self.tracee.memory.word(at).ok();
        if word(unwind_header)? & 1 != 0 {
            return None;
        }
        let type_info = word(unwind_header.checked_sub(BEFORE_UNWIND_HEADER)?)?;
        self.exception_at(
            tid,
            unwind_header.checked_add(UNWIND_HEADER_BYTES)?,
            type_info,
        )
    }
}

/// Lets the kernel skip the system call that a thread has entered, and moves the thread back to before it.
fn skips_call(stopped: &Stopped<'_>, number: u64) -> io::Result<()> {
    let entered = stopped.registers()?;
    let mut skipped = entered;
    skipped.orig_rax = u64::MAX;
    stopped.set_registers(&skipped)?;
    let call = stopped.run_to_call()?;
    call.signal().map_err(io::Error::other)?;
    let mut before = entered;
    before.rip = entered.rip.wrapping_sub(SYSCALL_BYTES);
    before.rax = number;
    before.orig_rax = u64::MAX;
    stopped.set_registers(&before)
}
