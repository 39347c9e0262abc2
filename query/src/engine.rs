//! The threads that compute answers, and the files they need; both live as long as an answer does.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::question::STACK_BYTES;

/// Threads and temporary files of a session and of its answers.
pub struct Engine {
    /// Empty only while dropping.
    runtime: Option<Runtime>,
    /// Its files are removed after the threads have received the stop signal.
    _files: Arc<dyn Any + Send + Sync>,
}

impl Engine {
    /// Starts `threads` threads, and keeps what owns `files` until they stop.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn start(threads: usize, files: Arc<dyn Any + Send + Sync>) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("query")
            .thread_stack_size(STACK_BYTES)
            .build()
            .map_err(|source| Error::System {
                action: "start threads for queries",
                source,
            })?;
        Ok(Self {
            runtime: Some(runtime),
            _files: files,
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

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the threads of a session")
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
