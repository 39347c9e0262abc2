//! A halted thread. The kernel answers about, changes and resumes only such a thread (ptrace(2)): these requests are
//! methods of the guards here, which exist only while the thread is halted.

use std::io;

use super::{
    Tracee,
    threads::{Halt, Run, State, Thread},
};
use crate::{
    live::{
        error::{LiveError, LiveResult},
        model::Tid,
    },
    stop::{
        Registers,
        ptrace::{self, Came},
        restart,
    },
};

/// SIGTRAP in a mask of signals.
const TRAP_BIT: u64 = 1 << (libc::SIGTRAP - 1);

/// A halted thread, which can be asked and changed.
pub(crate) struct Stopped<'t> {
    tid: Tid,
    /// How it is halted.
    pub halt: &'t Halt,
}

/// A halted thread that is about to resume.
pub(crate) struct Resumable<'t> {
    tid: Tid,
    thread: &'t mut Thread,
}

/// A thread that the tracer lets go a little way, and waits for.
#[must_use]
pub(crate) struct Awaited {
    tid: Tid,
}

impl Tracee {
    /// Returns a thread if it is halted.
    ///
    /// # Errors
    /// [`LiveError::NoThread`], as for one that does not exist.
    pub fn stopped(&self, tid: Tid) -> LiveResult<Stopped<'_>> {
        let halt = self.threads.get(&tid).and_then(Thread::halt);
        let halt = halt.ok_or(LiveError::NoThread(tid))?;
        Ok(Stopped { tid, halt })
    }

    /// Returns a thread to resume it, if it is halted.
    pub fn resumable(&mut self, tid: Tid) -> Option<Resumable<'_>> {
        let thread = self.threads.get_mut(&tid)?;
        thread.is_halted().then_some(Resumable { tid, thread })
    }
}

impl Stopped<'_> {
    pub fn tid(&self) -> Tid {
        self.tid
    }

    pub fn registers(&self) -> io::Result<Registers> {
        ptrace::registers(self.tid)
    }

    pub fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        ptrace::set_registers(self.tid, registers)
    }

    pub fn set_pc(&self, pc: u64) -> io::Result<()> {
        ptrace::set_rip(self.tid, pc)
    }

    /// Sets the registers of a thread to move it.
    pub fn move_to(&self, registers: &Registers) -> LiveResult<()> {
        self.set_registers(registers).map_err(not_moved)
    }

    /// Moves a thread to another instruction.
    pub fn move_to_pc(&self, pc: u64) -> LiveResult<()> {
        self.set_pc(pc).map_err(not_moved)
    }

    /// Returns the state of the x87, SSE and later registers, in XSAVE's layout.
    pub fn extended_state(&self) -> io::Result<Vec<u8>> {
        ptrace::extended_state(self.tid)
    }

    pub fn set_extended_state(&self, state: &[u8]) -> io::Result<()> {
        ptrace::set_extended_state(self.tid, state)
    }

    pub fn debug_register(&self, number: usize) -> io::Result<u64> {
        ptrace::debug_register(self.tid, number)
    }

    pub fn set_debug_register(&self, number: usize, value: u64) -> io::Result<()> {
        ptrace::set_debug_register(self.tid, number, value)
    }

    /// Returns the siginfo of the stop.
    pub fn info(&self) -> io::Result<libc::siginfo_t> {
        ptrace::stop_info(self.tid)
    }

    /// Sets the siginfo of the signal that the thread receives when it resumes.
    pub fn set_info(&self, info: &libc::siginfo_t) -> io::Result<()> {
        ptrace::set_stop_info(self.tid, info)
    }

    /// Makes the thread hear SIGTRAP while it steps for us: if it blocks the signal, the kernel removes the program's handler with the
    /// step's trap. Threads block all signals while the C library makes or ends a thread. Returns what it blocked, if it did.
    pub fn hear_traps(&self) -> Option<u64> {
        let blocked = ptrace::blocked_signals(self.tid).ok()?;
        let heard = blocked & !TRAP_BIT;
        (heard != blocked && ptrace::set_blocked_signals(self.tid, heard).is_ok())
            .then_some(blocked)
    }

    /// Undoes [`hear_traps`](Self::hear_traps), unless the thread has changed since what it blocks.
    pub fn hear_as_before(&self, blocked: Option<u64>) {
        if let Some(blocked) = blocked
            && ptrace::blocked_signals(self.tid).is_ok_and(|now| now == blocked & !TRAP_BIT)
        {
            // On failure the thread was killed; its end will be reported.
            let _ = ptrace::set_blocked_signals(self.tid, blocked);
        }
    }

    /// Returns the number of the system call that the thread is about to make.
    pub fn call_entered(&self) -> Option<u64> {
        ptrace::call_entered(self.tid)
    }

    /// Returns whether the thread has stopped at the end of a system call.
    pub fn has_left_call(&self) -> bool {
        ptrace::has_left_call(self.tid)
    }

    /// Returns whether the thread has hit a trap that it has not reported.
    pub fn has_untold_trap(&self) -> bool {
        ptrace::has_untold_trap(self.tid)
    }

    /// Makes the kernel restart a system call that the halt has interrupted.
    pub fn ask_for_restart(&self) {
        restart::ask_for_restart(self.tid);
    }

    /// Executes one instruction, and delivers a signal before it (0: none).
    pub fn step(&self, signal: i32) -> io::Result<Awaited> {
        ptrace::step(self.tid, signal)?;
        Ok(Awaited { tid: self.tid })
    }

    /// Runs to the next stop, and delivers a signal before it (0: none).
    pub fn run(&self, signal: i32) -> io::Result<Awaited> {
        ptrace::cont(self.tid, signal)?;
        Ok(Awaited { tid: self.tid })
    }

    /// Runs to the beginning or end of a system call.
    pub fn run_to_call(&self) -> io::Result<Awaited> {
        ptrace::cont_to_call(self.tid, 0)?;
        Ok(Awaited { tid: self.tid })
    }
}

impl Awaited {
    /// Waits for its next stop. An end is left to be reported.
    pub fn came(&self) -> io::Result<Came> {
        ptrace::next_stop_of(self.tid, false)
    }

    /// As [`came`](Self::came), without waiting.
    pub fn look(&self) -> io::Result<Came> {
        ptrace::next_stop_of(self.tid, true)
    }

    /// Waits for its next stop, and returns the signal.
    ///
    /// # Errors
    /// [`LiveError::Ended`].
    pub fn signal(self) -> LiveResult<i32> {
        ptrace::wait_for(self.tid).ok_or(LiveError::Ended)
    }
}

/// Resumes a thread. On failure it was killed, and its end will be reported.
impl Resumable<'_> {
    /// Takes how it is halted, which ends with this halt. `is_stepping`: it resumes for one instruction.
    pub fn take_halt(&mut self, is_stepping: bool) -> Halt {
        self.thread.calls_to_come = 0;
        self.thread.is_stepping = is_stepping;
        self.thread
            .halt_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    pub fn run(self, signal: i32) {
        self.run_as(signal, Run::default());
    }

    /// As [`run`](Self::run). `run` says how it runs then.
    pub fn run_as(self, signal: i32, run: Run) {
        let _ = ptrace::cont(self.tid, signal);
        self.thread.state = State::Running(run);
    }

    /// Runs to the beginning or end of a system call.
    pub fn run_to_call(self, signal: i32) {
        let _ = ptrace::cont_to_call(self.tid, signal);
        self.thread.state = State::Running(Run::default());
    }

    /// Executes one instruction. `run` says how it runs then.
    pub fn step(self, signal: i32, run: Run) -> io::Result<()> {
        let stepped = ptrace::step(self.tid, signal);
        self.thread.is_stepping = true;
        self.thread.state = State::Running(run);
        stepped
    }

    /// Leaves it to job control, which has stopped it.
    pub fn listen(self) {
        let _ = ptrace::listen(self.tid);
        self.thread.state = State::Listening {
            is_interrupted: false,
        };
    }
}

fn not_moved(source: io::Error) -> LiveError {
    LiveError::System {
        action: "move the thread",
        source,
    }
}
