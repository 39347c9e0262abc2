//! Processes that the program starts: they are not controlled, and must not run into our traps.
//!
//! A forked child has a copy of the program's memory: its traps are lifted, and it is released. A child of vfork
//! borrows the memory itself, where the traps must stay: it stays traced until it executes another program or ends,
//! and is moved past them.

use std::{
    fs::OpenOptions,
    os::unix::fs::FileExt,
    sync::PoisonError,
    thread,
    time::{Duration, Instant},
};

use crate::{
    displace::PATCH_BYTES,
    live::{
        breakpoints::{Breakpoints, sites::TRAP},
        event_loop::Tracer,
        model::Tid,
        probes::happenings::Done,
        tracee::Tracee,
    },
    stop::ptrace,
};

/// How long to wait for the first stop of a copy, which comes at once unless it is killed.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long to sleep between two looks at copies that have not stopped yet.
const PAUSE: Duration = Duration::from_micros(100);

/// The first byte of a jump to compiled code (`jmp rel32`).
const JUMP: u8 = 0xe9;

/// How a child was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// With its own memory.
    Forked,
    /// With its parent's memory.
    Borrowing,
    /// Unknown: it was seen before its parent's event.
    Unknown,
    /// With its own memory, and the user follows it.
    Followed,
}

impl Tracer {
    /// Handles a thread that has created a process.
    pub fn has_child(&mut self, tid: Tid, event: i32) {
        let Ok(child) = ptrace::event_message(tid) else {
            return;
        };
        let child = child as Tid;
        if let Some(family) = &mut self.family {
            family.created(child);
            return;
        }
        let kind = match event {
            libc::PTRACE_EVENT_FORK if self.tracee.begins_to_follow(child) => Child::Followed,
            libc::PTRACE_EVENT_FORK => Child::Forked,
            _ => Child::Borrowing,
        };
        let borrows = kind == Child::Borrowing;
        self.note_done(tid, Done::Forked { child, borrows });
        let seen = self.tracee.children.insert(child, kind) == Some(Child::Unknown);
        if seen {
            self.tracee.let_child_go(&self.breakpoints, child, kind);
        }
    }

    /// Waits for copies that the program has just made, and lets them go: they have our traps too. The program is held.
    pub fn let_copies_go(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        let is_copy = |kind: &Child| matches!(kind, Child::Forked | Child::Followed);
        while self.tracee.children.values().any(is_copy) && Instant::now() < deadline {
            if !self.reap_events() {
                thread::sleep(PAUSE);
            }
        }
    }
}

impl Tracee {
    /// Handles a stop of a process that is not the program.
    pub fn child_stopped(
        &mut self,
        breakpoints: &Breakpoints,
        child: Tid,
        signal: i32,
        event: i32,
    ) {
        let kind = *self.children.entry(child).or_insert(Child::Unknown);
        match (kind, event) {
            (Child::Unknown, _) => {}
            (Child::Forked | Child::Followed, _) => self.let_child_go(breakpoints, child, kind),
            (Child::Borrowing, libc::PTRACE_EVENT_EXEC) => {
                self.children.remove(&child);
                // On failure it was killed.
                let _ = ptrace::detach(child, 0);
            }
            (Child::Borrowing, 0) if signal == libc::SIGTRAP => {
                breakpoints.pass_trap(child);
                let _ = ptrace::cont(child, 0);
            }
            (Child::Borrowing, 0) => {
                let is_ours = redirects(breakpoints, child, signal);
                let _ = ptrace::cont(child, if is_ours { 0 } else { signal });
            }
            (Child::Borrowing, _) => {
                let _ = ptrace::cont(child, 0);
            }
        }
    }

    fn let_child_go(&mut self, breakpoints: &Breakpoints, child: Tid, kind: Child) {
        match kind {
            Child::Forked => {
                self.lift_traps_in(breakpoints, child);
                self.children.remove(&child);
                // A child at a trap has not passed it yet: it executes the restored instruction.
                let _ = ptrace::detach(child, 0);
            }
            Child::Followed => {
                self.lift_traps_in(breakpoints, child);
                self.children.remove(&child);
                self.hand_to_follower(child);
            }
            Child::Borrowing | Child::Unknown => {
                let _ = ptrace::cont(child, 0);
            }
        }
    }

    /// Puts the program's own bytes in the place of our traps and jumps in a copy of the program.
    fn lift_traps_in(&self, breakpoints: &Breakpoints, child: Tid) {
        let memory = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{child}/mem"));
        let Ok(memory) = memory else {
            return;
        };
        let traps = self
            .memory
            .traps
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        for (address, covered) in traps.iter() {
            // A trap in memory that the child does not have cannot be hit.
            let _ = memory.write_all_at(&[covered.original], *address);
        }
        // The program may have lost some since the copy was made.
        for at in breakpoints.sites.places() {
            let (mut found, mut own) = ([0; PATCH_BYTES], [0; PATCH_BYTES]);
            let is_read = memory.read_exact_at(&mut found, at).is_ok()
                && self.memory.read_raw(at, &mut own).is_ok();
            if !is_read {
                continue;
            }
            for (address, covered) in traps.range(at..at + PATCH_BYTES as u64) {
                own[(address - at) as usize] = covered.original;
            }
            let len = match found[0] {
                TRAP if own[0] != TRAP => 1,
                JUMP if own != found => PATCH_BYTES,
                _ => continue,
            };
            let _ = memory.write_all_at(&own[..len], at);
        }
    }
}

impl Breakpoints {
    fn pass_trap(&self, child: Tid) {
        let Ok(registers) = ptrace::registers(child) else {
            return;
        };
        if let Some(site) = self.sites.by_trap(registers.rip.wrapping_sub(1)) {
            let _ = ptrace::set_rip(child, site.pass_at());
        }
    }
}

/// Moves a child past a fault of our own code, if it is one.
fn redirects(breakpoints: &Breakpoints, child: Tid, signal: i32) -> bool {
    let Ok(registers) = ptrace::registers(child) else {
        return false;
    };
    let target = breakpoints.after_fault(signal, registers.rip);
    target.is_some_and(|target| ptrace::set_rip(child, target).is_ok())
}
