//! Installs the runtime's handlers of fatal signals in a program that was running before, and takes them back when the program
//! is left running. A thread of the stopped program does this. In a program that we start, its first instructions do.

use crate::{
    process::status::may_sleep,
    stop::{StopError, StoppedProcess},
};

/// Memory for the stack of the runtime's code. It is mapped meanwhile.
const STACK_BYTES: u64 = 16 << 10;
/// Length of the instruction before the `syscall` in `hs_trap_return` (agent/runtime/traps.c): `mov eax, 15`.
const BEFORE_SYSCALL: u64 = 5;

/// Addresses of the runtime's code in one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Catching {
    begin: u64,
    end: u64,
    /// A `syscall` instruction.
    syscall: u64,
}

impl Catching {
    /// Finds the code; `address` finds a symbol of the runtime.
    pub fn find(address: impl Fn(&str) -> Option<u64>) -> Option<Self> {
        Some(Self {
            begin: address("hs_begin_catching")?,
            end: address("hs_end_catching")?,
            syscall: address("hs_trap_return")? + BEFORE_SYSCALL,
        })
    }

    /// Installs the handlers for signals with their default action, if the recorder wants that. Returns whether they are there.
    ///
    /// # Errors
    /// If the process is killed meanwhile.
    pub fn begin(self, process: &mut StoppedProcess) -> Result<bool, StopError> {
        self.run(self.begin, process)
    }

    /// Gives the signals their actions back, except where the program has set another one. Returns false if no thread could do so:
    /// the handlers that stay let a signal end the program.
    ///
    /// # Errors
    /// If the process is killed meanwhile.
    pub fn end(self, process: &mut StoppedProcess) -> Result<bool, StopError> {
        self.run(self.end, process)
    }

    fn run(self, start: u64, process: &mut StoppedProcess) -> Result<bool, StopError> {
        let pid = process.pid();
        // It may make any system call.
        let Some(tid) = process.worker(|tid| may_sleep(pid, tid as u32))? else {
            return Ok(false);
        };
        let Some(stack) = self.map_stack(tid, process)? else {
            return Ok(false);
        };
        let result = process.run_to_trap(tid, start, 0, stack + STACK_BYTES)?;
        let unmap = [stack, STACK_BYTES, 0, 0, 0, 0];
        process.system_call(tid, self.syscall, libc::SYS_munmap, unmap)?;
        Ok(result != 0)
    }

    /// Returns `None` if the program gets no more memory.
    fn map_stack(self, tid: i32, process: &mut StoppedProcess) -> Result<Option<u64>, StopError> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let map = [0, STACK_BYTES, access as u64, flags as u64, u64::MAX, 0];
        let stack = process.system_call(tid, self.syscall, libc::SYS_mmap, map)?;
        Ok((stack as i64 > 0).then_some(stack))
    }
}
