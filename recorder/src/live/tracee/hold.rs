//! All threads of the program stand still, and go on.

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

/// How long threads may take to stop.
pub(crate) const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// How long a stop waits for other threads to stand still for a copy of memory.
pub(crate) const COPY_PATIENCE: Duration = Duration::from_millis(100);
/// Threads mostly stop so soon that sleeping would take longer.
const HOLD_EAGER: Duration = Duration::from_millis(2);
/// While threads are waited for, how often it is looked whether one of them is dead.
const DEAD_PERIOD: Duration = Duration::from_millis(10);

impl Tracer {
    /// Stops all threads. Those that report something first keep it for later.
    pub fn hold(&mut self) -> LiveResult<()> {
        self.hold_within(STOP_PATIENCE)
    }

    /// The same; what has not stopped after `patience` runs on.
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
                // The first thread may have ended before the others; nobody is told of it.
                self.tracee.drop_the_dead();
                looked_for_dead = Instant::now();
            } else if began.elapsed() > patience {
                return Err(LiveError::NotStopping);
            } else {
                thread::sleep(Duration::from_micros(100));
            }
        }
    }

    /// Lets everybody go whom nobody wants stopped, and acts on what was kept for later.
    pub fn release(&mut self) {
        self.tracee.is_held = false;
        let busy = std::mem::take(&mut self.tracee.busy);
        let tids: Vec<Tid> = self.tracee.threads.keys().copied().collect();
        for tid in tids {
            let Some(thread) = self.tracee.threads.get_mut(&tid) else {
                continue;
            };
            let halt = thread.halt_mut().filter(|halt| halt.stop.is_none());
            let Some(halt) = halt.filter(|_| !busy.contains(&tid)) else {
                continue;
            };
            // Another thread's event is acted on when nobody is in the middle of something.
            if !busy.is_empty() && halt.pending.is_some() {
                self.tracee.has_deferred = true;
                continue;
            }
            match halt.pending.take() {
                Some(event) => self.dispatch(tid, event),
                None if halt.is_job_stopped => {
                    let _ = ptrace::listen(tid);
                    thread.state = State::Listening {
                        is_interrupted: false,
                    };
                }
                None => self.go_on(tid),
            }
        }
    }

    /// Acts on what threads reported while another one was dealt with. Returns whether there was anything.
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

    /// Lets everything go that a panic has left held.
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
            // What does not stop is not touched; the work checks what it writes over.
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
