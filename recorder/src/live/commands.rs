//! The channel from other threads to the tracer: closures that the tracer runs between two checks for ptrace events,
//! and their results.

use std::io;

use crossbeam::channel::{Receiver, Sender};

use super::{
    error::{LiveError, LiveResult},
    event_loop::Tracer,
    guard,
};
use crate::wake::{Waiter, Waker};

/// A closure for the tracer to run.
pub(crate) type Command = Box<dyn FnOnce(&mut Tracer) + Send>;

/// A sender of commands to the tracer. Clones share the same channel. When the last one is dropped, the tracer releases
/// the program.
#[derive(Clone)]
pub(crate) struct Commands {
    // Dropped before `wakes`: the tracer that wakes up finds the channel closed.
    sender: Sender<Command>,
    wakes: WakesOnDrop,
}

#[derive(Clone)]
struct WakesOnDrop(Waker);

impl Drop for WakesOnDrop {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl Commands {
    /// Creates the channel to a future tracer. Returns both ends.
    pub fn new() -> io::Result<(Self, (Receiver<Command>, Waiter))> {
        let waiter = Waiter::new()?;
        let (sender, inbox) = crossbeam::channel::unbounded();
        let wakes = WakesOnDrop(waiter.waker());
        Ok((Self { sender, wakes }, (inbox, waiter)))
    }

    /// Sends a command.
    ///
    /// # Errors
    /// If the tracer has ended.
    pub fn send(&self, command: Command) -> LiveResult<()> {
        self.sender.send(command).map_err(|_| LiveError::Ended)?;
        self.wakes.0.wake();
        Ok(())
    }
}

/// Runs a closure in the tracer and waits for its result.
pub(crate) fn ask<R: Send + 'static>(
    tracer: &Commands,
    question: impl FnOnce(&mut Tracer) -> R + Send + 'static,
) -> LiveResult<R> {
    let (reply, answer) = crossbeam::channel::bounded(1);
    tracer.send(Box::new(move |tracer| {
        let was_holding = tracer.tracee.is_held;
        let answer = guard::guarded(|| question(tracer));
        if let Err(error) = &answer {
            tracer.journal.log_panic(error);
            tracer.let_go_of_what_is_held(was_holding);
        }
        let _ = reply.send(answer);
    }))?;
    answer.recv().map_err(|_| LiveError::Ended)?
}
