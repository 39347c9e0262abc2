//! Copies that the program makes of itself by fork, if they are to be recorded too.
//!
//! Such a copy has the program's patches and an inactive runtime. It is stopped where fork returns in it, in the C
//! library: the patches are removed, it is parked there, and its recorder loads another runtime, as into a program that
//! was recorded before.

use std::{io, os::unix::fs::FileExt};

use super::{Family, Origin, State, hand_over::ParkedWatch, process_memory};
use crate::{
    live::{
        model::Tid,
        tracee::{Tracee, hooks::Hooks},
    },
    process::{Parked, spawn::PARK_FOR_ANOTHER},
    session::executable_of,
    stop::ptrace,
};

impl Family {
    /// Handles a stop of a thread that is not the program's.
    pub fn thread_stopped(&mut self, tracee: &Tracee, tid: Tid, signal: i32, event: i32) {
        let is_first = event == libc::PTRACE_EVENT_STOP && signal == libc::SIGTRAP;
        if is_first && self.is_new_copy(tid) {
            let watch = ParkedWatch::new(tid);
            let hooks = tracee.memory.hooks_now();
            let parked = watch.and_then(|watch| Ok((park(tid, &hooks)?, watch)));
            self.parked_copy(tid, parked);
        } else {
            self.stopped(tid, signal, event);
        }
    }

    /// Returns whether this is the first stop of a copy of the program that is to be recorded.
    fn is_new_copy(&mut self, tid: Tid) -> bool {
        self.see(tid);
        let task = self.tasks.get(&tid).filter(|_| self.records_copies);
        task.is_some_and(|task| matches!(task.state, State::New) && task.origin == Origin::Copy)
    }

    fn parked_copy(&mut self, pid: Tid, parked: io::Result<(Parked, ParkedWatch)>) {
        match parked {
            Ok((parked, watch)) => self.hand_over(parked, watch, true),
            Err(error) => {
                self.refuse(pid, format!("it cannot be parked: {error}"));
                if let Some(task) = self.tasks.get_mut(&pid) {
                    task.state = State::Plain;
                }
                let _ = ptrace::cont(pid, 0);
            }
        }
    }
}

/// Removes the patches from a copy of the program, parks it where it is, and releases it.
pub(crate) fn park(pid: Tid, hooks: &Hooks) -> io::Result<Parked> {
    let memory = process_memory(pid)?;
    for (entry, jump, original) in hooks.patches() {
        let mut found = [0; 5];
        // Memory that the program has unmapped does not exist.
        if memory.read_exact_at(&mut found, entry).is_ok() && found == jump {
            memory.write_all_at(original, entry)?;
        }
    }
    let registers = ptrace::registers(pid)?;
    let entry = registers.rip;
    let mut original = [0; PARK_FOR_ANOTHER.len()];
    memory.read_exact_at(&mut original, entry)?;
    let exe = executable_of(pid)?;
    memory.write_all_at(&PARK_FOR_ANOTHER, entry)?;
    ptrace::detach(pid, 0)?;
    Ok(Parked {
        pid,
        entry,
        original,
        registers,
        exe,
    })
}
