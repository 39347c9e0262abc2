//! What is special to a program that had run unrecorded before, and of which parts are recorded.

use libc::user_regs_struct;
use rustc_hash::FxHashMap;

use super::goal::Goal;
use crate::log::Span;
use crate::ptrace::Restartable;

#[derive(Debug, Default)]
pub(super) struct Part {
    /// The program has begun unrecorded.
    pub(super) is_taken: bool,
    /// When it is enough, if not at the end of the program.
    pub(super) goal: Option<Goal>,
    /// Where the vDSO lies, if the program uses it.
    pub(super) vdso: Option<Span>,
    /// Calls that threads were in when recording ended before: the address behind each, and its number.
    pub(super) waited: FxHashMap<i32, (u64, u64)>,
    /// What threads had told the kernel of restartable sequences.
    pub(super) restartable: FxHashMap<i32, Restartable>,
}

impl Part {
    /// The number of the call in which a thread waits, which is to be recorded.
    pub(super) fn call_of(&self, tid: i32, registers: &user_regs_struct) -> u64 {
        let is_again = registers.orig_rax == libc::SYS_restart_syscall as u64;
        match self.waited.get(&tid) {
            // It has been told to go on before: which call that is, is known.
            Some((next, number)) if is_again && *next == registers.rip => *number,
            _ => registers.orig_rax,
        }
    }

    /// A thread has asked for restartable sequences, or for none any more. The kernel is told when recording is over.
    pub(super) fn note_restartable(&mut self, tid: i32, args: &[u64; 6]) {
        let [at, length, flags, signature, ..] = *args;
        if flags != 0 {
            self.restartable.remove(&tid);
        } else {
            let wanted = Restartable::new(at, length as u32, signature as u32);
            self.restartable.insert(tid, wanted);
        }
    }
}
