//! Makes a thread of a stopped process run something for us: one system call, or our own code up to a trap.
//!
//! Afterwards the thread is restored, also after a failure. Meanwhile it takes no signals: the kernel keeps them, and what
//! came with them, until the process is released.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use libc::siginfo_t;
use store::signals::signal_name;

use super::stopped::Thread;
use super::{Registers, StopError, StoppedProcess, procfs, ptrace};

/// Number of polls of a running thread before sleeping between them.
const EAGER_LOOKS: u32 = 1000;
const PAUSE: Duration = Duration::from_micros(50);
/// Time limit for what a thread runs.
pub(super) const LONGEST_RUN: Duration = Duration::from_secs(5);
/// Time limit for a thread to stop where it is after that.
const LONGEST_STOP: Duration = Duration::from_secs(1);
/// Signals of faults and traps. If a thread blocks one of these, the kernel removes the program's handler at a fault.
const OF_FAULTS: [i32; 6] = [
    libc::SIGTRAP,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGSYS,
    libc::SIGILL,
    libc::SIGFPE,
];
/// Length of `call rel32`.
const CALL_BYTES: u64 = 5;
const DIRECTION: u64 = 1 << 10;

impl StoppedProcess {
    /// Makes thread `tid` execute a system call through the `syscall` instruction at `at`. Returns the kernel's result.
    ///
    /// # Errors
    /// If the thread is not stopped, was killed, or gets no further.
    pub(crate) fn system_call(
        &mut self,
        tid: i32,
        at: u64,
        number: i64,
        arguments: [u64; 6],
    ) -> Result<u64, StopError> {
        let mut registers = outside_of_calls(&self.regs(tid)?);
        registers.rip = at;
        registers.rax = number as u64;
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        (registers.rdi, registers.rsi, registers.rdx) = (rdi, rsi, rdx);
        (registers.r10, registers.r8, registers.r9) = (r10, r8, r9);
        self.run(tid, &registers, ptrace::step, |now| now.rip == at)
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
        let mut registers = outside_of_calls(&self.regs(tid)?);
        registers.rip = start;
        registers.rdi = argument;
        registers.rsp = stack_end & !15;
        registers.eflags &= !DIRECTION;
        // A function of the C library may use the vector registers.
        let extended = exact::ptrace::extended_state(tid)
            .map_err(|source| self.failed("read the registers", tid, source))?;
        let trap_after = start + CALL_BYTES + 1;
        let ran = self.run(tid, &registers, ptrace::cont, |now| now.rip != trap_after);
        let restored = exact::ptrace::set_extended_state(tid, &extended)
            .map_err(|source| self.failed("set the registers", tid, source));
        let result = ran?;
        restored.map(|()| result)
    }

    /// Lets the thread run with `registers`, and without signals, while `goes_on`; then restores it. Returns rax.
    fn run(
        &mut self,
        tid: i32,
        registers: &Registers,
        resume: fn(i32, i32) -> io::Result<()>,
        goes_on: impl Fn(&Registers) -> bool,
    ) -> Result<u64, StopError> {
        let saved = self.regs(tid)?;
        let blocked = ptrace::blocked_signals(tid)
            .map_err(|source| self.failed("read the blocked signals", tid, source))?;
        self.block(tid, !bits(&OF_FAULTS))?;
        let ran = self
            .set_regs(tid, registers)
            .and_then(|()| self.run_while(tid, resume, goes_on));
        let restored = self.set_regs(tid, &saved);
        let hears_again = self.block(tid, blocked);
        let now = ran?;
        restored.and(hears_again).map(|()| now.rax)
    }

    /// Lets the thread run until it traps with registers for which `goes_on` is false.
    fn run_while(
        &mut self,
        tid: i32,
        resume: fn(i32, i32) -> io::Result<()>,
        goes_on: impl Fn(&Registers) -> bool,
    ) -> Result<Registers, StopError> {
        let deadline = Instant::now() + LONGEST_RUN;
        let mut signal = 0;
        let mut faulted_at = None;
        loop {
            resume(tid, signal).map_err(|_| StopError::NoSuchThread {
                pid: self.pid(),
                tid,
            })?;
            let info = self.next_stop(tid, deadline)?;
            let now = self.regs(tid)?;
            signal = match Cause::of(&info) {
                Cause::Trap if !goes_on(&now) => return Ok(now),
                Cause::Event | Cause::Trap => 0,
                // It stays there for ever; or a filter has refused a system call, whose result is none.
                Cause::Fault if faulted_at == Some(now.rip) || info.si_signo == libc::SIGSYS => {
                    self.take_trap(tid);
                    return Err(self.faulted(tid, info.si_signo, now.rip));
                }
                Cause::Fault => {
                    faulted_at = Some(now.rip);
                    0
                }
                Cause::Sent => self.keep(tid, info.si_signo)?,
            };
        }
    }

    /// Keeps a signal that was sent, and has been taken, for the time when the thread is released. Returns the signal to
    /// resume it with.
    fn keep(&mut self, tid: i32, signal: i32) -> Result<i32, StopError> {
        // One cannot be blocked, and the other must not.
        if matches!(signal, libc::SIGSTOP | libc::SIGTRAP) {
            self.set_thread(tid, Thread::Receiving { signal });
            return Ok(0);
        }
        let blocked = ptrace::blocked_signals(tid)
            .map_err(|source| self.failed("read the blocked signals", tid, source))?;
        // The kernel queues one that is blocked again, with what came with it.
        self.block(tid, blocked | bits(&[signal]))?;
        Ok(signal)
    }

    fn block(&self, tid: i32, signals: u64) -> Result<(), StopError> {
        ptrace::set_blocked_signals(tid, signals)
            .map_err(|source| self.failed("set the blocked signals", tid, source))
    }

    fn faulted(&self, tid: i32, signal: i32, address: u64) -> StopError {
        StopError::Faulted {
            pid: self.pid(),
            tid,
            signal: signal_name(signal),
            address,
        }
    }

    /// Waits for the thread's next stop. If it does not come in time, stops the thread where it is.
    pub(super) fn next_stop(&self, tid: i32, deadline: Instant) -> Result<siginfo_t, StopError> {
        if let Some(info) = self.stop_before(tid, deadline)? {
            return Ok(info);
        }
        let is_interrupted = ptrace::interrupt(tid).is_ok();
        let until = Instant::now() + LONGEST_STOP;
        if is_interrupted && self.stop_before(tid, until)?.is_some() {
            self.take_trap(tid);
        }
        Err(StopError::NotDone {
            pid: self.pid(),
            tid,
            patience: LONGEST_RUN,
        })
    }

    /// Lets a stopped thread report the trap of a step that it has made: if it were released with it, that would be a
    /// signal to the program.
    fn take_trap(&self, tid: i32) {
        while ptrace::has_untold_trap(tid) && ptrace::step(tid, 0).is_ok() {
            let stop = self.stop_before(tid, Instant::now() + LONGEST_STOP);
            if !matches!(stop, Ok(Some(_))) {
                return;
            }
        }
    }

    /// Waits for the thread's next stop until `deadline`.
    fn stop_before(&self, tid: i32, deadline: Instant) -> Result<Option<siginfo_t>, StopError> {
        let pid = self.pid();
        let mut looks = 0u32;
        loop {
            if let Ok(info) = ptrace::stop_info(tid) {
                return Ok(Some(info));
            }
            looks += 1;
            if looks < EAGER_LOOKS {
                thread::yield_now();
                continue;
            }
            if procfs::is_dead(procfs::state(pid, tid)) {
                return Err(StopError::NoSuchThread { pid, tid });
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Why a thread that runs for us has stopped.
enum Cause {
    /// An interrupt, or a stop of the whole process.
    Event,
    /// A step, or an instruction for that.
    Trap,
    Fault,
    /// A signal that someone has sent.
    Sent,
}

impl Cause {
    fn of(info: &siginfo_t) -> Self {
        // Signals from the kernel have a positive code (sigaction(2)).
        let is_by_kernel = info.si_code > 0;
        match info.si_signo {
            _ if info.si_code >> 8 == libc::PTRACE_EVENT_STOP => Self::Event,
            libc::SIGTRAP if is_by_kernel => Self::Trap,
            signal if is_by_kernel && OF_FAULTS.contains(&signal) => Self::Fault,
            _ => Self::Sent,
        }
    }
}

/// Returns a set of signals as the kernel has it.
fn bits(signals: &[i32]) -> u64 {
    signals.iter().map(|signal| 1u64 << (signal - 1)).sum()
}

/// Returns the same registers for a thread that is to run elsewhere, regardless of the system call it was in.
fn outside_of_calls(registers: &Registers) -> Registers {
    Registers {
        orig_rax: u64::MAX,
        ..*registers
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, ExitStatus};

    use super::super::while_stopped;
    use super::*;
    use crate::process::status::send_signal;

    /// A process that sleeps.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Self {
            let child = Command::new("sleep").arg("1000").spawn();
            let sleeper = Self(child.expect("it starts"));
            while !sleeper.is_asleep() {
                thread::sleep(PAUSE);
            }
            sleeper
        }

        fn pid(&self) -> i32 {
            self.0.id() as i32
        }

        /// Is it in `clock_nanosleep` or `nanosleep`?
        fn is_asleep(&self) -> bool {
            let call = procfs::text(format!("/proc/{}/syscall", self.pid())).unwrap_or_default();
            call.starts_with("230 ") || call.starts_with("35 ")
        }

        /// Runs `work` while it is stopped, with the address of a `syscall` instruction. Its thread is then as before.
        fn stopped<R: Send>(&self, work: impl FnOnce(&mut StoppedProcess, u64) -> R + Send) -> R {
            let pid = self.pid();
            while_stopped(pid, Duration::from_secs(10), |process| {
                let state = |process: &StoppedProcess| {
                    let now = process.regs(pid).expect("it is stopped");
                    let blocked = ptrace::blocked_signals(pid).expect("it is stopped");
                    ([now.rip, now.rsp, now.rax, now.rdi], blocked)
                };
                let before = state(process);
                let result = work(process, before.0[0] - 2);
                assert_eq!(state(process), before);
                assert!(!ptrace::has_untold_trap(pid));
                result
            })
            .expect("our child can be stopped")
        }

        fn end(mut self) -> ExitStatus {
            // It may have ended by another signal.
            let _ = self.0.kill();
            self.0.wait().expect("it is our child")
        }
    }

    #[test]
    fn a_signal_waits_until_the_process_is_released() {
        let sleeper = Sleeper::start();
        let pid = sleeper.pid();
        let is_pending = || {
            let status = procfs::text(format!("/proc/{pid}/status")).expect("it is there");
            let line = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
            let pending = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            pending.expect("a mask") & bits(&[libc::SIGUSR1]) != 0
        };
        sleeper.stopped(|process, at| {
            send_signal(pid, pid, libc::SIGUSR1);
            for _ in 0..3 {
                let result = process.system_call(pid, at, libc::SYS_getpid, [0; 6]);
                assert_eq!(result.expect("it is stopped"), pid as u64);
                assert!(is_pending());
            }
        });
        let deadline = Instant::now() + LONGEST_RUN;
        while !procfs::is_dead(procfs::state(pid, pid)) {
            assert!(Instant::now() < deadline, "the signal has not come");
            thread::sleep(PAUSE);
        }
        assert_eq!(sleeper.end().signal(), Some(libc::SIGUSR1));
    }

    #[test]
    fn a_fault_that_comes_again_is_an_error() {
        let sleeper = Sleeper::start();
        let pid = sleeper.pid();
        let failed = sleeper.stopped(|process, _| {
            let stack = process.regs(pid).expect("it is stopped").rsp;
            process.run_to_trap(pid, 0x10, 0, stack)
        });
        let Err(StopError::Faulted {
            signal, address, ..
        }) = &failed
        else {
            panic!("{failed:?}");
        };
        assert_eq!((signal.as_str(), *address), ("SIGSEGV", 0x10));
        assert_eq!(sleeper.end().signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn a_call_that_does_not_return_is_an_error() {
        let sleeper = Sleeper::start();
        let pid = sleeper.pid();
        sleeper.stopped(|process, at| {
            let waited = process.system_call(pid, at, libc::SYS_pause, [0; 6]);
            assert!(
                matches!(waited, Err(StopError::NotDone { .. })),
                "{waited:?}"
            );
            let result = process.system_call(pid, at, libc::SYS_getpid, [0; 6]);
            assert_eq!(result.expect("it is stopped"), pid as u64);
        });
        assert_eq!(sleeper.end().signal(), Some(libc::SIGKILL));
    }
}
