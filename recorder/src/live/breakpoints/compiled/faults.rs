//! Faults of our own code in the program: the code goes on where it does without the memory.

use crate::live::{breakpoints::Breakpoints, tracee::stopped::Stopped};

impl Breakpoints {
    /// Moves a thread past a fault of our own code. Returns whether it was one.
    pub fn passes_fault(&mut self, stopped: &Stopped<'_>, signal: i32) -> bool {
        let Ok(registers) = stopped.registers() else {
            return false;
        };
        let touch = self.after_touch(signal, registers.rip);
        if touch.is_some_and(|target| stopped.set_pc(target).is_ok()) {
            return true;
        }
        let target = self.after_fault(signal, registers.rip);
        let is_moved = target.is_some_and(|target| stopped.set_pc(target).is_ok());
        if is_moved {
            self.compiling.has_faulted(stopped.tid());
        }
        is_moved
    }

    /// Returns where the runtime continues after a fault of its load at `pc` that finds out whether memory of the
    /// program can be read.
    fn after_touch(&self, signal: i32, pc: u64) -> Option<u64> {
        let (load, fault) = self.compiling.runtime?.touch?;
        (is_of_memory(signal) && pc == load).then_some(fault)
    }

    /// Returns where compiled code continues after a fault of its load at `pc`.
    pub fn after_fault(&self, signal: i32, pc: u64) -> Option<u64> {
        if !is_of_memory(signal) {
            return None;
        }
        let target = self.sites.no_answer_at(pc);
        target.or_else(|| self.compiling.after_fault(pc))
    }
}

fn is_of_memory(signal: i32) -> bool {
    matches!(signal, libc::SIGSEGV | libc::SIGBUS)
}
