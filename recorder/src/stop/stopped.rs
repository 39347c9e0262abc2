//! A stopped process. It is made by seizing and interrupting thread after thread until no new one appears; `Drop`
//! undoes this.

use std::collections::BTreeMap;
use std::io;
use std::marker::PhantomData;
use std::panic;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use libc::c_int;

use super::calls::LONGEST_RUN;
use super::frames::interrupted;
use super::memory::Memory;
use super::restart::{ask_for_restart, may_restart};
use super::{Registers, StopError, procfs, ptrace};

/// Number of polls of a thread's state before sleeping between them. Most threads stop within some ten microseconds.
const EAGER_POLLS: u32 = 100;
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// How often threads that ended are reaped while others are being stopped.
const BURIAL_INTERVAL: Duration = Duration::from_millis(5);

const SEARCHED_STACK_BYTES: usize = 64 << 10;

const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Stops all threads of `pid`, runs `work`, and releases them.
///
/// `patience` bounds the wait for threads to stop; they usually need less than a millisecond. `work` runs in a thread
/// of its own. If it panics, the process is released and the panic is resumed in the caller.
///
/// # Errors
/// If the process cannot be stopped. It then runs as before.
pub fn while_stopped<R: Send>(
    pid: i32,
    patience: Duration,
    work: impl FnOnce(&mut StoppedProcess) -> R + Send,
) -> Result<R, StopError> {
    thread::scope(|scope| {
        let (report, stopping) = mpsc::channel::<()>();
        let tracer = thread::Builder::new()
            .name("stop".to_owned())
            .spawn_scoped(scope, move || {
                let stopped = StoppedProcess::stop(pid, patience);
                drop(report);
                stopped.map(|mut stopped| work(&mut stopped))
            })
            .map_err(|source| StopError::System {
                what: "start a thread".to_owned(),
                source,
            })?;
        while stopping.recv_timeout(BURIAL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            bury_the_dead(pid);
        }
        tracer
            .join()
            .unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    })
}

/// Reaps the threads of `pid` that ended while one of our threads had seized them, except the leader, whose exit status
/// belongs to its parent.
///
/// An exec ends all other threads, and waits until they are reaped. Seizing a thread waits for the end of an exec. So
/// the seizing thread would wait for itself; this was seen with a program that execs from a second thread while it is
/// stopped repeatedly. The kernel allows any thread of the tracer's process to reap them; this one does.
fn bury_the_dead(pid: i32) {
    let tids = procfs::tasks(pid).unwrap_or_default();
    for tid in tids.into_iter().filter(|&tid| tid != pid) {
        if procfs::state(pid, tid) == Some('Z') {
            ptrace::reap(tid);
        }
    }
}

/// What a seized thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thread {
    /// Seized and interrupted, but not seen stopped yet.
    Stopping,
    /// Stopped because of our interrupt, or because the whole process was job-control stopped.
    Interrupted { job_control: bool },
    /// In signal-delivery-stop; it gets the signal when released.
    Receiving { signal: c_int },
    /// Ended.
    Dead,
}

impl Thread {
    fn is_stopped(self) -> bool {
        matches!(self, Thread::Interrupted { .. } | Thread::Receiving { .. })
    }
}

/// A process whose threads are all stopped. Passed to the closure of [`while_stopped`].
///
/// Not `Send`: ptrace requests must come from the thread that seized.
pub struct StoppedProcess {
    pid: i32,
    threads: BTreeMap<i32, Thread>,
    memory: Option<Memory>,
    /// Another owner stopped the threads, and releases them.
    is_borrowed: bool,
    not_send: PhantomData<*const ()>,
}

impl StoppedProcess {
    /// Must run in a thread that ends soon after: only its end releases threads that are not stopped.
    fn stop(pid: i32, patience: Duration) -> Result<StoppedProcess, StopError> {
        if pid == std::process::id() as i32 {
            return Err(StopError::OwnProcess { pid });
        }
        let mut stopped = StoppedProcess {
            pid,
            threads: BTreeMap::new(),
            memory: None,
            is_borrowed: false,
            not_send: PhantomData,
        };
        let deadline = Instant::now() + patience;
        // A listing may miss a thread if another one ends while the listing is made. Once all known threads are
        // stopped, only an unknown one can end. So after two consecutive listings without an unknown thread there is
        // none.
        let mut complete_listings = 0;
        while complete_listings < 2 {
            if stopped.seize_new()? {
                complete_listings = 0;
            } else {
                complete_listings += 1;
            }
            stopped.await_stops(deadline, patience)?;
        }
        let tid = stopped.any_stopped().ok_or_else(|| stopped.gone())?;
        stopped.memory = Some(Memory::open(pid, tid)?);
        Ok(stopped)
    }

    /// Wraps threads that the calling thread traces and has stopped. Dropping the result releases none of them.
    pub(crate) fn borrowed(pid: i32, tids: &[i32]) -> Result<StoppedProcess, StopError> {
        let interrupted = Thread::Interrupted { job_control: false };
        let any = tids.first().copied().unwrap_or(pid);
        Ok(StoppedProcess {
            pid,
            threads: tids.iter().map(|&tid| (tid, interrupted)).collect(),
            memory: Some(Memory::open(pid, any)?),
            is_borrowed: true,
            not_send: PhantomData,
        })
    }

    /// Returns the process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the ids of the stopped threads, lowest first.
    pub fn tids(&self) -> Vec<i32> {
        let stopped = self.threads.iter().filter(|(_, t)| t.is_stopped());
        stopped.map(|(&tid, _)| tid).collect()
    }

    /// Returns the registers of a thread. In an interrupted system call, `rip` is after the instruction, `orig_rax` is
    /// the call's number, and `rax` may be an internal code of the kernel (-512 to -516) that makes it restart the
    /// call.
    ///
    /// # Errors
    /// If `tid` is not in [`tids`](StoppedProcess::tids), or was killed meanwhile.
    pub fn regs(&self, tid: i32) -> Result<Registers, StopError> {
        self.check_stopped(tid)?;
        ptrace::registers(tid).map_err(|source| self.failed("read the registers", tid, source))
    }

    /// Chooses a thread to run something for us, among those that `may`: one that was merely interrupted. If each was stopped on its way to
    /// a signal, the first one takes its signal now, since only then does the kernel pass on what came with it.
    ///
    /// # Errors
    /// If the signal ends the process.
    pub(crate) fn worker(&mut self, may: impl Fn(i32) -> bool) -> Result<Option<i32>, StopError> {
        let tids = self.tids();
        let mut interrupted = tids.iter().filter(|tid| is_interrupted(**tid));
        if let Some(tid) = interrupted.find(|tid| may(**tid)) {
            return Ok(Some(*tid));
        }
        // The owner of borrowed threads passes their signals on.
        let other = tids.iter().find(|tid| !self.is_borrowed && may(**tid));
        let Some(tid) = other.copied() else {
            return Ok(None);
        };
        self.take_signal(tid)?;
        Ok(Some(tid))
    }

    /// Lets a thread take the signal that it was stopped with. It is stopped again before the first instruction of the signal's handler.
    fn take_signal(&mut self, tid: i32) -> Result<(), StopError> {
        let deadline = Instant::now() + LONGEST_RUN;
        while let Some(&Thread::Receiving { signal }) = self.threads.get(&tid) {
            self.set_thread(tid, Thread::Stopping);
            // The interrupt comes before the next signal.
            ptrace::interrupt(tid)
                .and_then(|()| ptrace::cont(tid, signal))
                .map_err(|source| self.failed("resume", tid, source))?;
            self.next_stop(tid, deadline)?;
            self.set_thread(tid, observe(tid));
        }
        self.check_stopped(tid)
    }

    /// Makes a thread continue at `address`. If it is in a system call that the kernel may restart, `address` must be
    /// right after a `syscall` instruction, as its present `rip` is: the kernel goes back by that instruction's length.
    ///
    /// # Errors
    /// As [`regs`](StoppedProcess::regs), and if the instruction before `address` is not the required `syscall`.
    pub fn set_rip(&mut self, tid: i32, address: u64) -> Result<(), StopError> {
        let registers = self.regs(tid)?;
        if may_restart(&registers) && !self.follows_syscall(address) {
            return Err(StopError::RestartPending { tid, address });
        }
        ptrace::set_rip(tid, address)
            .map_err(|source| self.failed("set the instruction pointer", tid, source))
    }

    /// Sets a thread's registers to `registers`, which [`regs`](StoppedProcess::regs) returned at another time. An
    /// interrupted system call is not restarted, unless `registers` say so.
    ///
    /// # Errors
    /// As [`regs`](StoppedProcess::regs).
    pub fn set_regs(&mut self, tid: i32, registers: &Registers) -> Result<(), StopError> {
        self.check_stopped(tid)?;
        ptrace::set_registers(tid, registers)
            .map_err(|source| self.failed("set the registers", tid, source))
    }

    /// Moves every thread that is at an address for which `moved` returns another one, or will return to one from a
    /// signal handler. Returns how many places were changed.
    ///
    /// The return addresses of handlers are searched for in the 64 KiB above each thread's stack pointer.
    ///
    /// # Errors
    /// As [`set_rip`](StoppedProcess::set_rip) and [`write`](StoppedProcess::write).
    pub fn move_threads(&mut self, moved: impl Fn(u64) -> Option<u64>) -> Result<usize, StopError> {
        let mut changed = 0;
        for tid in self.tids() {
            let registers = self.regs(tid)?;
            if let Some(address) = moved(registers.rip) {
                self.set_rip(tid, address)?;
                changed += 1;
            }
            let stack_at = registers.rsp & !7;
            let stack = self.memory().read_up_to(stack_at, SEARCHED_STACK_BYTES);
            for interrupted in interrupted(&stack, stack_at) {
                if let Some(address) = moved(interrupted.rip) {
                    self.write(interrupted.slot, &address.to_le_bytes())?;
                    changed += 1;
                }
            }
        }
        Ok(changed)
    }

    /// Fills `bytes` from memory at `address`.
    ///
    /// # Errors
    /// If any of it is not mapped. `bytes` may then be partly filled.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), StopError> {
        self.memory().read(address, bytes)
    }

    /// Reads up to `len` bytes at `address`, fewer if the mapped memory ends before.
    pub(crate) fn read_up_to(&self, address: u64, len: usize) -> Vec<u8> {
        self.memory().read_up_to(address, len)
    }

    /// Writes `bytes` at `address`, also into read-only private memory such as program text (the page is copied, the
    /// file does not change).
    ///
    /// # Errors
    /// If any of it is not mapped. A part may then have been written.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), StopError> {
        let tid = self.any_stopped().ok_or_else(|| self.gone())?;
        self.memory().write(tid, address, bytes)
    }

    /// Disables all debug registers in all threads.
    pub fn clear_debug_registers(&mut self) {
        for tid in self.tids() {
            // A killed thread needs none.
            let _ = ptrace::set_debug_register(tid, 7, 0);
        }
    }

    /// Seizes and interrupts every thread that is not known yet. Returns whether there was one.
    fn seize_new(&mut self) -> Result<bool, StopError> {
        let tids = procfs::tasks(self.pid).map_err(|_| self.gone())?;
        let mut found = false;
        for tid in tids {
            let known = self.threads.get(&tid);
            // After an exec the leader's id belongs to the thread that called it.
            if known.is_some_and(|&thread| thread != Thread::Dead) {
                continue;
            }
            if self.seize(tid)? {
                self.threads.insert(tid, Thread::Stopping);
                found = true;
            }
        }
        Ok(found)
    }

    /// Seizes and interrupts one thread. Returns false if it has ended.
    fn seize(&self, tid: i32) -> Result<bool, StopError> {
        let seized = ptrace::seize(tid).and_then(|()| ptrace::interrupt(tid));
        let Err(error) = seized else {
            return Ok(true);
        };
        if procfs::is_dead(procfs::state(self.pid, tid)) {
            return Ok(false);
        }
        match error.raw_os_error() {
            Some(libc::ESRCH) => Ok(false),
            // We seized it under the id it had before its exec.
            Some(libc::EPERM) if ptrace::interrupt(tid).is_ok() => Ok(true),
            Some(libc::EPERM) => Err(self.not_permitted(tid)),
            _ => Err(self.failed("seize", tid, error)),
        }
    }

    fn await_stops(&mut self, deadline: Instant, patience: Duration) -> Result<(), StopError> {
        let mut polls = 0;
        let mut pause = FIRST_PAUSE;
        while let Some(tid) = self.first_stopping() {
            let thread = observe(tid);
            if thread != Thread::Stopping {
                self.threads.insert(tid, thread);
                continue;
            }
            polls += 1;
            if polls < EAGER_POLLS {
                thread::yield_now();
                continue;
            }
            self.note_the_dead();
            if Instant::now() > deadline && self.first_stopping() == Some(tid) {
                return Err(StopError::NotStopping {
                    pid: self.pid,
                    tid,
                    state: procfs::state(self.pid, tid).unwrap_or('?'),
                    patience,
                });
            }
            thread::sleep(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
        Ok(())
    }

    fn first_stopping(&self) -> Option<i32> {
        let stopping = self.threads.iter().find(|(_, t)| **t == Thread::Stopping);
        stopping.map(|(&tid, _)| tid)
    }

    fn any_stopped(&self) -> Option<i32> {
        let stopped = self.threads.iter().find(|(_, t)| t.is_stopped());
        stopped.map(|(&tid, _)| tid)
    }

    fn note_the_dead(&mut self) {
        for (&tid, thread) in &mut self.threads {
            if procfs::is_dead(procfs::state(self.pid, tid)) {
                *thread = Thread::Dead;
            }
        }
    }

    pub(super) fn set_thread(&mut self, tid: i32, thread: Thread) {
        self.threads.insert(tid, thread);
    }

    fn check_stopped(&self, tid: i32) -> Result<(), StopError> {
        let thread = self.threads.get(&tid);
        if thread.is_some_and(|thread| thread.is_stopped()) {
            return Ok(());
        }
        Err(StopError::NoSuchThread { pid: self.pid, tid })
    }

    fn follows_syscall(&self, address: u64) -> bool {
        let mut before = [0; 2];
        let read = self.read(address.wrapping_sub(2), &mut before);
        read.is_ok() && before == SYSCALL
    }

    fn memory(&self) -> &Memory {
        self.memory
            .as_ref()
            .expect("opened before anyone else sees the stopped process")
    }

    fn gone(&self) -> StopError {
        let pid = self.pid;
        match procfs::state(pid, pid) {
            Some('Z') => StopError::Zombie { pid },
            _ => StopError::Gone { pid },
        }
    }

    pub(super) fn failed(&self, request: &'static str, tid: i32, source: io::Error) -> StopError {
        match source.raw_os_error() {
            Some(libc::ESRCH) => StopError::NoSuchThread { pid: self.pid, tid },
            _ => StopError::Ptrace {
                request,
                tid,
                source,
            },
        }
    }

    /// Determines why the kernel returned EPERM.
    fn not_permitted(&self, tid: i32) -> StopError {
        let pid = self.pid;
        if let Some(tracer) = procfs::tracer(pid, tid) {
            // The kernel reports the tracing thread.
            let tracer = procfs::thread_group(tracer).unwrap_or(tracer);
            let tracer_name = procfs::name(tracer);
            return StopError::AlreadyTraced {
                pid,
                tracer,
                tracer_name,
            };
        }
        // SAFETY: geteuid has no preconditions.
        let our_uid = unsafe { libc::geteuid() };
        let target_uid = procfs::user(pid).unwrap_or(our_uid);
        match procfs::ptrace_scope() {
            Some(3) => StopError::ScopeNobody { pid },
            Some(2) if our_uid != 0 => StopError::ScopeRoot { pid },
            Some(1) if our_uid != 0 && our_uid == target_uid => StopError::ScopeDescendants { pid },
            _ => StopError::NotPermitted {
                pid,
                our_uid,
                target_uid,
            },
        }
    }
}

impl Drop for StoppedProcess {
    /// Releases every stopped thread. The end of this thread releases the others.
    fn drop(&mut self) {
        if self.is_borrowed {
            return;
        }
        for (&tid, &thread) in &self.threads {
            let signal = match thread {
                Thread::Stopping | Thread::Dead => continue,
                Thread::Interrupted { job_control } => {
                    if !job_control {
                        ask_for_restart(tid);
                    }
                    0
                }
                Thread::Receiving { signal } => signal,
            };
            // On failure the thread was killed.
            let _ = ptrace::detach(tid, signal);
        }
    }
}

/// Returns whether a thread was merely interrupted, and not stopped on its way to a signal.
fn is_interrupted(tid: i32) -> bool {
    matches!(observe(tid), Thread::Interrupted { .. })
}

/// Determines whether a thread has stopped, and why.
fn observe(tid: i32) -> Thread {
    let Ok(info) = ptrace::stop_info(tid) else {
        return Thread::Stopping;
    };
    if info.si_code >> 8 == libc::PTRACE_EVENT_STOP {
        // SIGTRAP means interrupted. Anything else is the signal that stopped the whole process; the kernel stops the
        // thread for it again when we release it, unless a SIGCONT came.
        return Thread::Interrupted {
            job_control: info.si_signo != libc::SIGTRAP,
        };
    }
    Thread::Receiving {
        signal: info.si_signo,
    }
}
