//! Processes that the program starts: they are not controlled, and must not run into our traps.
//!
//! A forked child has a copy of the program's memory: its traps are lifted, and it is released. A child of vfork
//! borrows the memory itself, where the traps must stay: it stays traced until it executes another program or ends,
//! and is moved past them.

use std::{fs::OpenOptions, os::unix::fs::FileExt, sync::PoisonError};

use crate::{
    live::{
        breakpoints::Breakpoints, event_loop::Tracer, model::Tid, probes::happenings::Done,
        tracee::Tracee,
    },
    stop::ptrace,
};

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
            self.tracee.let_child_go(child, kind);
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
            (Child::Forked | Child::Followed, _) => self.let_child_go(child, kind),
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

    fn let_child_go(&mut self, child: Tid, kind: Child) {
        match kind {
            Child::Forked => {
                self.lift_traps_in(child);
                self.children.remove(&child);
                // A child at a trap has not passed it yet: it executes the restored instruction.
                let _ = ptrace::detach(child, 0);
            }
            Child::Followed => {
                self.lift_traps_in(child);
                self.children.remove(&child);
                self.hand_to_follower(child);
            }
            Child::Borrowing | Child::Unknown => {
                let _ = ptrace::cont(child, 0);
            }
        }
    }

    fn lift_traps_in(&self, child: Tid) {
        let memory = OpenOptions::new()
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
