//! A live session: a recording in progress whose program can be stopped, inspected, changed and stepped.
//!
//! The handle [`Live`] may be used from any thread. Everything it does to the program becomes an event of the
//! recording.
//!
//! Two threads serve a session. One makes the recording, as `record` does. The other one, the tracer, holds all threads
//! of the program with ptrace(2), so it sees traps, signals and new threads first. If we die, the kernel releases the
//! program; a thread that waited for us in a handler of its own would never resume.

mod breakpoints;
pub(crate) mod commands;
mod condition;
mod core_dump;
mod error;
pub(crate) mod event_loop;
pub(crate) mod family;
mod follow;
pub(crate) mod full;
pub(crate) mod guard;
pub(crate) mod happening;
pub(crate) mod journal;
pub mod model;
pub(crate) mod probes;
mod remote_call;
mod requests;
mod script;
mod start;
mod stepping;
pub(crate) mod stops;
pub(crate) mod tracee;

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering::Release},
    },
    time::{Duration, Instant},
};

use crossbeam::channel::{RecvTimeoutError, Sender};
use debuginfo::{AddressSpace, Register};
use expr::Kept;
use store::control::Control;

pub use condition::{Condition, Message};
pub use core_dump::Dumped;
pub use debuginfo::{GivenUp, Limit};
pub use error::{LiveError, LiveResult};
pub use family::{RECORDED, REFUSED, why_refused};
pub use follow::{Follower, Waiting};
pub use happening::Happening;
pub use model::*;
pub use probes::{
    display::{DisplayFormat, Displaying, Displays},
    failures::Failed,
    hits::FAULTS,
    logged_place::{follows, tells_writes_in_calls},
};
pub use script::{MEMORY_LIMIT, TIME_LIMIT};
pub use start::{record_parked, record_with_probes};
pub use tracee::machine::LiveMachine;

use self::{
    commands::{Commands, ask},
    event_loop::Tracer,
    journal::{Journal, WrittenPlace},
    stops::StopLog,
    tracee::memory::LiveMemory,
};
use crate::stop::procfs;
use crate::{Exit, Outcome, Result, arm::Filter, clock, session::More};

/// A live session. Clones share the same session.
#[derive(Clone)]
pub struct Live {
    inner: Arc<Inner>,
}

/// How often a thread that waits for the recording checks whether the program has ended.
const SETTLE_SLICE: Duration = Duration::from_millis(20);

/// The result of closing the recording.
type Closed = Option<std::result::Result<Outcome, String>>;

struct Inner {
    pid: i32,
    recording: PathBuf,
    pipes: Mutex<Option<(File, File)>>,
    space: Arc<RwLock<Arc<AddressSpace>>>,
    stops: Arc<StopLog>,
    commands: Commands,
    memory: LiveMemory,
    journal: Journal,
    settling: Sender<Sender<()>>,
    more: Sender<More>,
    end: Arc<AtomicBool>,
    closed: Mutex<Closed>,
    closing: Condvar,
    kept: Arc<Kept>,
}

impl Live {
    /// Returns the process id.
    pub fn pid(&self) -> i32 {
        self.inner.pid
    }

    /// Returns the recording's folder.
    pub fn recording(&self) -> &Path {
        &self.inner.recording
    }

    /// Returns the values that the session keeps. Conditions and messages may name them.
    pub fn kept(&self) -> &Arc<Kept> {
        &self.inner.kept
    }

    /// Returns the program's standard output and error, once, if they are pipes.
    pub fn take_output(&self) -> Option<(File, File)> {
        let mut pipes = self.inner.pipes.lock();
        pipes.as_mut().ok().and_then(|pipes| pipes.take())
    }

    /// Returns the modules loaded now.
    pub fn space(&self) -> Arc<AddressSpace> {
        let space = self.inner.space.read();
        Arc::clone(&space.unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the state of the program.
    pub fn status(&self) -> Status {
        if let Some(exit) = self.inner.stops.ended() {
            return Status::Ended(exit);
        }
        let newest = self.ask(|tracer| {
            let stops = tracer
                .tracee
                .threads
                .values()
                .filter_map(|thread| thread.stop().cloned());
            stops.max_by_key(|stop| (stop.reason != Reason::AllThreads, stop.number))
        });
        match newest {
            Ok(Some(stop)) => Status::Stopped(stop),
            Ok(None) => Status::Running,
            Err(_) => {
                let ended = self
                    .inner
                    .stops
                    .wait(u64::MAX, None, None, Duration::from_secs(5));
                match ended {
                    Waited::Ended(exit) => Status::Ended(exit),
                    _ => Status::Ended(Exit::Detached),
                }
            }
        }
    }

    /// Returns the program's threads, by number; none once it has ended.
    pub fn threads(&self) -> Vec<ThreadView> {
        let pid = self.inner.pid;
        self.ask(move |tracer| {
            let threads = tracer
                .tracee
                .threads
                .iter()
                .map(|(tid, thread)| ThreadView {
                    tid: *tid,
                    name: thread_name(pid, *tid),
                    state: match thread.stop() {
                        Some(stop) => ThreadState::Stopped(stop.clone()),
                        None => ThreadState::Running,
                    },
                });
            threads.collect()
        })
        .unwrap_or_default()
    }

    /// Resumes a stopped thread; with `others`, also continues all other stopped threads. Returns a number below that
    /// of the next stop to show, to pass to [`Live::wait`].
    ///
    /// A thread whose stop was not shown is never resumed. If `tid` is one, nothing moves, and its stop is the next.
    ///
    /// # Errors
    /// The thread is running, or there is nothing to finish or to run until.
    pub fn resume(&self, tid: Tid, motion: Motion, others: bool) -> Result<u64> {
        Ok(self.ask(move |tracer| tracer.resume(tid, motion, others))??)
    }

    /// Continues all stopped threads, including those whose stops were not shown. Returns as [`resume`](Live::resume).
    ///
    /// # Errors
    /// The thread is running.
    pub fn resume_all(&self, tid: Tid) -> Result<u64> {
        Ok(self.ask(move |tracer| tracer.resume_all(tid))??)
    }

    /// Returns the numbers of the stops not shown yet whose threads are still stopped there, oldest first.
    pub fn unshown(&self) -> Vec<u64> {
        self.ask(|tracer| tracer.tracee.unshown(&tracer.stops))
            .unwrap_or_default()
    }

    /// Marks a stop as shown: its thread may be resumed.
    pub fn mark_shown(&self, stop: u64) {
        self.inner.stops.mark_shown(stop);
    }

    /// Stops all threads. Abandons the functions that threads were made to [`call`](Live::call). Returns the number of the
    /// stop: a new one, or the newest if all were stopped already.
    ///
    /// # Errors
    /// A thread does not stop.
    pub fn pause(&self) -> Result<u64> {
        Ok(self.ask(Tracer::pause)??)
    }

    /// Waits for a stop with a number greater than `after`, or the end. The stop is marked as shown.
    pub fn wait(&self, after: u64, timeout: Duration) -> Waited {
        let waited = self.peek(after, None, None, timeout);
        if let Waited::Stopped(stop) = &waited {
            self.mark_shown(stop.number);
        }
        waited
    }

    /// As [`wait`](Live::wait); with `moved`, also waits for the end of that thread, which was moving to a goal. The
    /// stop is not marked as shown; [`mark_shown`](Live::mark_shown) does that. With `woken`, a higher number of wakes
    /// than that ends the wait: a thread is back at an earlier stop, or [`wake`](Live::wake) was called.
    pub fn peek(
        &self,
        after: u64,
        moved: Option<Tid>,
        woken: Option<u64>,
        timeout: Duration,
    ) -> Waited {
        self.inner.stops.wait(after, moved, woken, timeout)
    }

    /// Wakes the waits that can be woken.
    pub fn wake(&self) {
        self.inner.stops.wake();
    }

    /// Returns how often waits were woken.
    pub fn woken(&self) -> u64 {
        self.inner.stops.woken()
    }

    /// Returns the number of the newest stop, or 0 if there was none.
    pub fn newest_stop(&self) -> u64 {
        self.inner.stops.newest()
    }

    /// Returns a stopped thread's registers and memory.
    ///
    /// # Errors
    /// The thread is running, or there is none.
    pub fn machine(&self, tid: Tid) -> Result<LiveMachine> {
        Ok(self.ask(move |tracer| {
            tracer.tracee.check_stopped(tid)?;
            tracer.tracee.machine(&tracer.breakpoints, tid)
        })??)
    }

    /// Reads memory of the running or stopped program: fills `bytes` or fails.
    ///
    /// # Errors
    /// [`LiveError::Memory`].
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let len = bytes.len();
        self.inner
            .memory
            .read(address, bytes)
            .map_err(|_| LiveError::Memory { address, len }.into())
    }

    /// Writes memory, and records an event with the old and new bytes. `target` is the text that the user wrote.
    /// Returns the old bytes.
    ///
    /// # Errors
    /// [`LiveError::Memory`]; nothing was written then.
    pub fn write(&self, target: &str, address: u64, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut old = vec![0; bytes.len()];
        self.read(address, &mut old)?;
        let missing = |_| LiveError::Memory {
            address,
            len: bytes.len(),
        };
        self.inner.memory.write(address, bytes).map_err(missing)?;
        let place = WrittenPlace::Memory(address);
        let (kept, new) = (old.clone(), bytes.to_vec());
        self.inner.journal.write(0, target, place, Some(kept), new);
        // If the tracer has ended, nothing is watched.
        let _ = self.ask(|tracer| tracer.probes.look_at_watches(&tracer.tracee));
        Ok(old)
    }

    /// Writes a register of a stopped thread (innermost frame): 8 bytes, or 16 for vectors. Fewer bytes change the low
    /// ones. Returns the old bytes.
    ///
    /// # Errors
    /// The thread is running, or there is no such register.
    pub fn write_register(
        &self,
        tid: Tid,
        target: &str,
        register: Register,
        bytes: &[u8],
    ) -> Result<Vec<u8>> {
        let (target, bytes) = (target.to_owned(), bytes.to_vec());
        Ok(self.ask(move |tracer| {
            tracer.tracee.write_register(
                &tracer.breakpoints,
                &tracer.journal,
                tid,
                &target,
                register,
                &bytes,
            )
        })??)
    }

    /// Makes a number the only one on the x87 stack of a stopped thread, as where a function returns a `long double`, and
    /// records that. `target` is the text that the user wrote.
    ///
    /// # Errors
    /// The thread is running, or there is none.
    pub fn write_x87_result(&self, tid: Tid, target: &str, number: [u8; 10]) -> Result<()> {
        let target = target.to_owned();
        Ok(self.ask(move |tracer| {
            let journal = &tracer.journal;
            tracer
                .tracee
                .write_x87_result(journal, tid, &target, number)
        })??)
    }

    /// Calls a function in a stopped thread. Other threads stay as they are.
    ///
    /// # Errors
    /// The thread is running, the function did not return in time, a signal ended it, or it was abandoned by
    /// [`interrupt_call`](Live::interrupt_call) or [`pause`](Live::pause).
    pub fn call(&self, tid: Tid, call: Call) -> Result<Returned> {
        let (reply, answer) = crossbeam::channel::bounded(1);
        let patience = call.timeout + Duration::from_secs(10);
        self.ask(move |tracer| tracer.call(tid, &call, reply))?;
        let answered = answer.recv_timeout(patience);
        let silent = |error: RecvTimeoutError| match error.is_timeout() {
            true => LiveError::NotStopping,
            // The thread has ended.
            false => LiveError::Ended,
        };
        Ok(answered.map_err(silent)??)
    }

    /// Abandons the function that a thread was made to call, if there is one: the thread is back where it was before.
    /// [`call`](Live::call) then fails with [`LiveError::Interrupted`].
    ///
    /// # Errors
    /// The thread does not stop.
    pub fn interrupt_call(&self, tid: Tid) -> Result<()> {
        Ok(self.ask(move |tracer| tracer.interrupt_call(tid))??)
    }

    /// Appends a note to the recording.
    ///
    /// # Errors
    /// [`LiveError::Ended`].
    pub fn note(&self, text: &str) -> Result<()> {
        if self.inner.stops.ended().is_some() {
            return Err(LiveError::Ended.into());
        }
        self.inner.journal.send(Control::Note {
            ticks: clock::ticks(),
            text: text.to_owned(),
        });
        Ok(())
    }

    /// Waits until readers of the recording can see everything that has happened so far, at most for `timeout`. Always
    /// succeeds once the program has ended. Returns whether it succeeded.
    pub fn settle(&self, timeout: Duration) -> bool {
        let (done, settled) = crossbeam::channel::bounded(1);
        let until = Instant::now() + timeout;
        let mut asked = self.inner.settling.send(done).is_ok();
        self.inner.journal.wake_recorder();
        loop {
            if self.inner.stops.ended().is_some() {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            if !asked {
                // The recording is being closed; its end is about to be announced.
                std::thread::sleep(left.min(SETTLE_SLICE));
                continue;
            }
            match settled.recv_timeout(left.min(SETTLE_SLICE)) {
                Ok(()) => return true,
                Err(error) => asked = error.is_timeout(),
            }
        }
    }

    /// Records calls of more functions from now on: those that match patterns as `-f` takes them, in the modules that are loaded.
    ///
    /// # Errors
    /// A pattern is empty, the program has ended, or it could not be stopped to patch it.
    pub fn trace(&self, patterns: &[String]) -> Result<Traced> {
        let filter = Filter::new(patterns, &[])?;
        let (reply, answer) = crossbeam::channel::bounded(1);
        let wish = More { filter, reply };
        self.inner.more.send(wish).map_err(|_| LiveError::Ended)?;
        self.inner.journal.wake_recorder();
        answer.recv().map_err(|_| LiveError::Ended)?
    }

    /// Undoes all changes and leaves the program running. Closes the recording.
    ///
    /// # Errors
    /// The recording could not be closed; the text says why.
    pub fn detach(&self) -> Result<Outcome> {
        self.inner.end.store(true, Release);
        self.inner.journal.wake_recorder();
        self.closed(Instant::now() + Duration::from_secs(60))
    }

    /// Kills the program. Closes the recording.
    ///
    /// # Errors
    /// As [`detach`](Live::detach).
    pub fn kill(&self) -> Result<Outcome> {
        if self.inner.stops.ended().is_none() {
            // SAFETY: the process is our child or our tracee, so its number is not reused until we notice its end.
            unsafe { libc::kill(self.inner.pid, libc::SIGKILL) };
        }
        self.closed(Instant::now() + Duration::from_secs(60))
    }

    /// Returns what was recorded, once the recording is closed. Waits for that until `deadline`.
    pub fn outcome(&self, deadline: Instant) -> Option<Outcome> {
        self.closed(deadline).ok()
    }

    fn closed(&self, deadline: Instant) -> Result<Outcome> {
        let mut closed = self
            .inner
            .closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(closed) = &*closed {
                return Ok(closed.clone().map_err(LiveError::NotClosed)?);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LiveError::Closing.into());
            }
            closed = self
                .inner
                .closing
                .wait_timeout(closed, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Tracer) -> R + Send + 'static,
    ) -> LiveResult<R> {
        ask(&self.inner.commands, question)
    }
}

fn thread_name(pid: i32, tid: Tid) -> String {
    procfs::text(format!("/proc/{pid}/task/{tid}/comm"))
        .map_or_else(|_| "?".to_owned(), |name| name.trim_end().to_owned())
}

impl From<LiveError> for crate::Error {
    fn from(error: LiveError) -> Self {
        Self::Live(error)
    }
}
