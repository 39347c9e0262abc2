//! The way to the tracer from other threads: closures that it runs between two looks at the program, and their answers.

use std::io;

use crossbeam::channel::{Receiver, Sender};

use super::{
    error::{LiveError, LiveResult},
    event_loop::Tracer,
    guard,
};
use crate::wake::{Waiter, Waker};

/// Something to do for the tracer.
pub(crate) type Command = Box<dyn FnOnce(&mut Tracer) + Send>;

/// The way to the tracer. Clones lead to the same one; once the last one is gone, it lets the program go.
#[derive(Clone)]
pub(crate) struct Commands {
    // Dropped before the other: whoever is woken finds that it is gone.
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
    /// Returns the way to a tracer that is to be, and its end.
    pub fn new() -> io::Result<(Self, (Receiver<Command>, Waiter))> {
        let waiter = Waiter::new()?;
        let (sender, inbox) = crossbeam::channel::unbounded();
        let wakes = WakesOnDrop(waiter.waker());
        Ok((Self { sender, wakes }, (inbox, waiter)))
    }

    /// Sends a command.
    ///
    /// # Errors
    /// The tracer has ended.
    pub fn send(&self, command: Command) -> LiveResult<()> {
        self.sender.send(command).map_err(|_| LiveError::Ended)?;
        self.wakes.0.wake();
        Ok(())
    }
}

/// Asks the tracer for something and waits for the answer.
pub(crate) fn ask<R: Send + 'static>(
    tracer: &Commands,
    question: impl FnOnce(&mut Tracer) -> R + Send + 'static,
) -> LiveResult<R> {
    let (reply, answer) = crossbeam::channel::bounded(1);
    tracer.send(Box::new(move |tracer| {
        let was_holding = tracer.tracee.is_held;
        let answer = guard::guarded(|| question(tracer));
        if let Err(error) = &answer {
            tracer.log_panic(error);
            tracer.let_go_of_what_is_held(was_holding);
        }
        let _ = reply.send(answer);
    }))?;
    answer.recv().map_err(|_| LiveError::Ended)?
}
