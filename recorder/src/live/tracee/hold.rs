//! Halts all threads of the program, and releases them.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::threads::{State, Thread};
use crate::{
    live::{
        error::{LiveError, LiveResult},
        event_loop::Tracer,
        model::Tid,
    },
    stop::{StopError, StoppedProcess, ptrace},
};

/// Time limit for threads to stop.
pub(crate) const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for other threads to halt for a memory snapshot at a stop.
pub(crate) const COPY_PATIENCE: Duration = Duration::from_millis(100);
/// Poll for this long before sleeping: threads usually stop sooner.
const HOLD_EAGER: Duration = Duration::from_millis(2);
/// How often to check for dead threads while waiting.
const DEAD_PERIOD: Duration = Duration::from_millis(10);

impl Tracer {
    /// Halts all threads. A thread that reports an event first keeps it for later.
    pub fn hold(&mut self) -> LiveResult<()> {
        self.hold_within(STOP_PATIENCE)
    }

    /// As [`Self::hold`]; threads that have not stopped after `patience` keep running.
    pub fn hold_within(&mut self, patience: Duration) -> LiveResult<()> {
        if !self.tracee.is_held {
            let halted = self.tracee.threads.iter().filter(|(_, thread)| {
                let halt = thread.halt();
                halt.is_some_and(|halt| halt.stop.is_none() && !halt.is_job_stopped)
            });
            self.tracee.busy = halted.map(|(tid, _)| *tid).collect();
        }
        self.tracee.is_held = true;
        let began = Instant::now();
        let mut looked_for_dead = began;
        loop {
            let mut running = false;
            let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
            for tid in tids {
                let Some(thread) = self.tracee.threads.get_mut(&tid) else {
                    continue;
                };
                let is_interrupted = match &mut thread.state {
                    State::Halted(_) => continue,
                    State::Listening { is_interrupted } => is_interrupted,
                    State::Running(run) => &mut run.is_interrupted,
                };
                running = true;
                if !*is_interrupted {
                    *is_interrupted = ptrace::interrupt(tid).is_ok();
                }
            }
            if self.done || !running && !self.tracee.has_unseen_threads() {
                return Ok(());
            }
            if self.reap_events() {
                continue;
            }
            if began.elapsed() < HOLD_EAGER {
                thread::yield_now();
            } else if looked_for_dead.elapsed() > DEAD_PERIOD {
                // The first thread may have ended before the others, which is not reported.
                self.tracee.drop_the_dead();
                looked_for_dead = Instant::now();
            } else if began.elapsed() > patience {
                return Err(LiveError::NotStopping);
            } else {
                thread::sleep(Duration::from_micros(100));
            }
        }
    }

    /// Releases all held threads that are not stopped for the user, and acts on pending events.
    pub fn release(&mut self) {
        self.tracee.is_held = false;
        let busy = std::mem::take(&mut self.tracee.busy);
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in tids {
            let halt = self.tracee.halt_mut(tid);
            let halt = halt.filter(|halt| halt.stop.is_none());
            let Some(halt) = halt.filter(|_| !busy.contains(&tid)) else {
                continue;
            };
            // Another thread's event is deferred until no handler is in progress.
            if !busy.is_empty() && halt.pending.is_some() {
                self.tracee.has_deferred = true;
                continue;
            }
            match halt.pending.take() {
                Some(event) => self.dispatch(tid, event),
                None if halt.is_job_stopped => {
                    if let Some(thread) = self.tracee.resumable(tid) {
                        thread.listen();
                    }
                }
                None => self.go_on(tid),
            }
        }
    }

    /// Acts on events that were deferred. Returns whether there were any.
    pub fn dispatch_deferred(&mut self) -> bool {
        if !std::mem::take(&mut self.tracee.has_deferred) {
            return false;
        }
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in tids {
            let thread = self.tracee.threads.get_mut(&tid);
            let held = thread.filter(|thread| thread.is_held());
            if let Some(event) = held.and_then(Thread::take_pending) {
                self.dispatch(tid, event);
            }
        }
        true
    }

    /// Releases everything that a panic left held.
    pub fn let_go_of_what_is_held(&mut self, was_holding: bool) {
        if self.tracee.is_held && !was_holding {
            self.release();
        }
    }

    /// Runs `work` on the process with all its threads stopped.
    pub fn with_stopped<R>(
        &mut self,
        work: impl FnOnce(&mut StoppedProcess) -> R,
    ) -> Result<R, StopError> {
        let was_holding = self.tracee.is_held;
        if !was_holding {
            // A thread that does not stop is left alone; `work` checks what it overwrites.
            let _ = self.hold();
        }
        let tids: Vec<Tid> = self
            .tracee
            .threads
            .iter()
            .filter(|(_, thread)| thread.is_halted())
            .map(|(tid, _)| *tid)
            .collect();
        let result =
            StoppedProcess::borrowed(self.tracee.pid, &tids).map(|mut process| work(&mut process));
        if !was_holding {
            self.release();
        }
        result
    }
}
