//! Stops the program to have it patched: in a temporary thread, or through the tracer of a live session.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    live::commands::{Commands, ask},
    stop::{StopError, StoppedProcess, while_stopped},
};

#[derive(Clone)]
pub(crate) enum Stopper {
    /// Threads are seized temporarily.
    Moment,
    /// The tracer holds the threads anyway.
    Tracer(Commands),
}

impl Stopper {
    /// Runs `work` while no thread of `pid` runs.
    ///
    /// # Errors
    /// If the program does not stop.
    pub fn while_stopped<R: Send + 'static>(
        &self,
        pid: i32,
        patience: Duration,
        work: impl FnOnce(&mut StoppedProcess) -> R + Send + 'static,
    ) -> Result<R, StopError> {
        match self {
            Self::Moment => while_stopped(pid, patience, work),
            Self::Tracer(commands) => ask(commands, |tracer| tracer.with_stopped(work))
                .unwrap_or(Err(StopError::Gone { pid })),
        }
    }

    /// As [`while_stopped`](Self::while_stopped), as soon as Frida has detached from the program, which happens after
    /// it says so. `again` makes the work for each attempt.
    pub fn after_frida<R: Send + 'static, W>(
        &self,
        pid: i32,
        patience: Duration,
        mut again: impl FnMut() -> W,
    ) -> Result<R, StopError>
    where
        W: FnOnce(&mut StoppedProcess) -> R + Send + 'static,
    {
        let deadline = Instant::now() + patience;
        loop {
            match self.while_stopped(pid, patience, again()) {
                Err(StopError::AlreadyTraced { .. }) if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(1));
                }
                result => return result,
            }
        }
    }
}
