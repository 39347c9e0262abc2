//! Ctrl-C during a query. Before the first [`Interrupts::catch`] it ends the program, as usual.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

/// How often a display is updated.
const BEAT: Duration = Duration::from_millis(200);

/// Waits for work that Ctrl-C may stop.
pub struct Interrupts {
    runtime: Runtime,
    signal: Option<Signal>,
}

impl Interrupts {
    /// Leaves Ctrl-C unchanged: it ends the program.
    ///
    /// # Errors
    /// When the runtime for waiting cannot be made.
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

    /// Takes over Ctrl-C: from now on it stops only what [`Self::wait`] waits for.
    ///
    /// # Errors
    /// When a system call fails.
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
    /// [`Error::Interrupted`] when Ctrl-C is pressed first; `work` is then dropped.
    pub fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Error> {
        self.wait_showing(work, || {})
    }

    /// As [`Self::wait`]; calls `show` repeatedly meanwhile.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when Ctrl-C is pressed first; `work` is then dropped.
    pub fn wait_showing<T>(
        &mut self,
        work: impl Future<Output = T>,
        mut show: impl FnMut(),
    ) -> Result<T, Error> {
        let Interrupts { runtime, signal } = self;
        let interrupted = async {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        let shown = async {
            loop {
                tokio::time::sleep(BEAT).await;
                show();
            }
        };
        runtime.block_on(async {
            tokio::select! {
                done = work => Ok(done),
                () = interrupted => Err(Error::Interrupted),
                () = shown => unreachable!("it never ends"),
            }
        })
    }

    /// Discards a Ctrl-C that was pressed outside a wait.
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
