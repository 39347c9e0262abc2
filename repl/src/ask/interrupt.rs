//! Ctrl-C while a question is being answered. Before the first [`Interrupts::catch`] it ends the program, as usual.

use std::future::Future;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

/// Waits for things that Ctrl-C may stop.
pub struct Interrupts {
    runtime: Runtime,
    signal: Option<Signal>,
}

impl Interrupts {
    /// Leaves Ctrl-C as it is: it ends the program.
    ///
    /// # Errors
    /// When the system refuses what waiting takes.
    pub fn ignore() -> Result<Interrupts, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| Error::io("wait for answers", source))?;
        Ok(Interrupts {
            runtime,
            signal: None,
        })
    }

    /// Takes Ctrl-C over: from now on it stops what [`Self::wait`] waits for, and nothing else.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn catch() -> Result<Interrupts, Error> {
        let mut interrupts = Interrupts::ignore()?;
        let guard = interrupts.runtime.enter();
        let signal =
            signal(SignalKind::interrupt()).map_err(|source| Error::io("catch Ctrl-C", source))?;
        drop(guard);
        interrupts.signal = Some(signal);
        Ok(interrupts)
    }

    /// Waits until `work` is done.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when Ctrl-C comes first; `work` is then dropped.
    pub fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Error> {
        let Some(signal) = &mut self.signal else {
            return Ok(self.runtime.block_on(work));
        };
        self.runtime.block_on(async {
            tokio::select! {
                done = work => Ok(done),
                _ = signal.recv() => Err(Error::Interrupted),
            }
        })
    }

    /// Forgets a Ctrl-C that came while nothing was waited for.
    pub fn forget(&mut self) {
        let Some(signal) = &mut self.signal else {
            return;
        };
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = signal.recv() => {}
                () = std::future::ready(()) => {}
            }
        });
    }
}
