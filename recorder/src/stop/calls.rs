//! Makes a thread of a stopped process run something for us: one system call, or our own code up to a trap.
//!
//! Afterwards the thread is restored. Signals that arrived meanwhile are delivered when it is released.

use std::{io, thread, time::Duration};

use libc::siginfo_t;

use super::stopped::Thread;
use super::{Registers, StopError, StoppedProcess, procfs, ptrace};

/// Number of polls of a running thread before sleeping between them.
const EAGER_LOOKS: u32 = 1000;
const PAUSE: Duration = Duration::from_micros(50);

impl StoppedProcess {
    /// Makes thread `tid` execute a system call through the `syscall` instruction at `at`. Returns the kernel's result.
    ///
    /// # Errors
    /// If the thread is not stopped, or was killed.
    pub(crate) fn system_call(
        &mut self,
        tid: i32,
        at: u64,
        number: i64,
        arguments: [u64; 6],
    ) -> Result<u64, StopError> {
        let saved = self.regs(tid)?;
        let mut registers = outside_of_calls(&saved);
        registers.rip = at;
        registers.rax = number as u64;
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        (registers.rdi, registers.rsi, registers.rdx) = (rdi, rsi, rdx);
        (registers.r10, registers.r8, registers.r9) = (r10, r8, r9);
        self.set_regs(tid, &registers)?;
        let now = self.run_while(tid, ptrace::step, |now| now.rip == at)?;
        self.set_regs(tid, &saved)?;
        Ok(now.rax)
    }

    /// Makes thread `tid` run the code at `start`, which ends in a trap right after a call. The code gets `argument` as
    /// its first argument, and the stack that ends at `stack_end`. Returns rax.
    ///
    /// # Errors
    /// As [`system_call`](StoppedProcess::system_call).
    pub(crate) fn run_to_trap(
        &mut self,
        tid: i32,
        start: u64,
        argument: u64,
        stack_end: u64,
    ) -> Result<u64, StopError> {
        let saved = self.regs(tid)?;
        // A function of the C library may use the vector registers.
        let extended = exact::ptrace::extended_state(tid)
            .map_err(|source| self.failed("read the registers", tid, source))?;
        let mut registers = outside_of_calls(&saved);
        registers.rip = start;
        registers.rdi = argument;
        registers.rsp = stack_end & !15;
        registers.eflags &= !DIRECTION;
        self.set_regs(tid, &registers)?;
        let trap_after = start + CALL_BYTES + 1;
        let now = self.run_while(tid, ptrace::cont, |now| now.rip != trap_after)?;
        exact::ptrace::set_extended_state(tid, &extended)
            .map_err(|source| self.failed("set the registers", tid, source))?;
        self.set_regs(tid, &saved)?;
        Ok(now.rax)
    }

    /// Lets the thread run until it stops with registers for which `goes_on` is false.
    fn run_while(
        &mut self,
        tid: i32,
        resume: fn(i32, i32) -> io::Result<()>,
        goes_on: impl Fn(&Registers) -> bool,
    ) -> Result<Registers, StopError> {
        loop {
            resume(tid, 0).map_err(|_| StopError::NoSuchThread {
                pid: self.pid(),
                tid,
            })?;
            let info = self.next_stop(tid)?;
            let is_event = info.si_code >> 8 == libc::PTRACE_EVENT_STOP;
            if !is_event && info.si_signo != libc::SIGTRAP {
                let signal = info.si_signo;
                self.set_thread(tid, Thread::Receiving { signal });
            }
            let now = self.regs(tid)?;
            if !goes_on(&now) {
                return Ok(now);
            }
        }
    }

    fn next_stop(&self, tid: i32) -> Result<siginfo_t, StopError> {
        let pid = self.pid();
        let mut looks = 0u32;
        loop {
            if let Ok(info) = ptrace::stop_info(tid) {
                return Ok(info);
            }
            looks += 1;
            if looks < EAGER_LOOKS {
                thread::yield_now();
                continue;
            }
            if procfs::is_dead(procfs::state(pid, tid)) {
                return Err(StopError::NoSuchThread { pid, tid });
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Length of `call rel32`.
const CALL_BYTES: u64 = 5;
const DIRECTION: u64 = 1 << 10;

/// Returns the same registers for a thread that is to run elsewhere, regardless of the system call it was in.
fn outside_of_calls(registers: &Registers) -> Registers {
    Registers {
        orig_rax: u64::MAX,
        ..*registers
    }
}
