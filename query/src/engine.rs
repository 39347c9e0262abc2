//! The threads that compute answers, and the files they need; both live as long as an answer does.

use std::future::Future;
use std::sync::Arc;

use store::Reader;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::error::{Error, Result};

/// Threads and temporary files of a session and of its answers.
#[derive(Debug)]
pub struct Engine {
    /// Empty only while dropping.
    runtime: Option<Runtime>,
    /// Its files are removed after the threads have received the stop signal.
    _reader: Arc<Reader>,
}

impl Engine {
    /// Starts `threads` threads, and keeps the files of `reader` until they stop.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn start(threads: usize, reader: Arc<Reader>) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("query")
            .build()
            .map_err(|source| Error::System {
                action: "start threads for queries",
                source,
            })?;
        Ok(Self {
            runtime: Some(runtime),
            _reader: reader,
        })
    }

    /// Starts a computation.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.runtime().spawn(work)
    }

    /// Returns the number of computations; each answer has one or more.
    pub fn running_tasks(&self) -> usize {
        self.runtime().metrics().num_alive_tasks()
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("taken when dropped only")
    }
}

/// Stops the running ones without waiting for them: that would block an asynchronous caller.
impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
