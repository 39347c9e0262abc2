//! An answer: its rows are handed out while they are computed. Dropping it stops the computation.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use futures::StreamExt;
use futures::channel::mpsc::Receiver;
use futures::stream::{self, Abortable};
use tokio::task::{AbortHandle, JoinHandle};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::reading::Reading;

/// The rows of an answer, in batches. It may outlive its session.
#[derive(Debug)]
pub struct Answer {
    schema: SchemaRef,
    reading: Reading,
    batches: Abortable<Receiver<Result<RecordBatch>>>,
    stopper: Stopper,
    task: Task,
    rows_left: usize,
    cut: bool,
    ended: bool,
}

impl Answer {
    pub(crate) fn new(
        (schema, reading): (SchemaRef, Reading),
        batches: Receiver<Result<RecordBatch>>,
        task: Task,
        max_rows: Option<usize>,
    ) -> Self {
        let (batches, reader) = stream::abortable(batches);
        let computation = task.handle.abort_handle();
        Self {
            schema,
            reading,
            batches,
            stopper: Stopper {
                computation,
                reader,
            },
            task,
            rows_left: max_rows.unwrap_or(usize::MAX),
            cut: false,
            ended: false,
        }
    }

    /// Returns the columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns a view of how much has been read.
    pub fn reading(&self) -> Reading {
        self.reading.clone()
    }

    /// Waits for the next batch, which is never empty; `None` at the end. Nothing comes after an error.
    pub async fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        while !self.ended {
            let batch = match self.batches.next().await {
                Some(Ok(batch)) => self.within_limit(batch),
                Some(Err(error)) => return Some(Err(self.end_with(error))),
                // The computation may be in the middle of a sort, and learn of it much later.
                None if self.batches.is_aborted() => {
                    return Some(Err(self.end_with(Error::Stopped)));
                }
                None => match self.task.end().await {
                    Ok(()) => break,
                    Err(error) => return Some(Err(self.end_with(error))),
                },
            };
            if batch.num_rows() > 0 {
                return Some(Ok(batch));
            }
        }
        self.ended = true;
        None
    }

    /// Returns the rows of `batch` within the limit, and notes whether there were more.
    fn within_limit(&mut self, batch: RecordBatch) -> RecordBatch {
        let rows = batch.num_rows();
        if rows > self.rows_left {
            (self.cut, self.ended) = (true, true);
            self.stopper.stop();
        }
        let kept = rows.min(self.rows_left);
        self.rows_left -= kept;
        batch.slice(0, kept)
    }

    fn end_with(&mut self, error: Error) -> Error {
        self.ended = true;
        error
    }

    /// Returns a handle that stops the computation from another thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Returns whether there were more rows than the limit. Known after the last batch.
    pub fn was_cut(&self) -> bool {
        self.cut
    }
}

/// Blocks the calling thread for each batch.
impl Iterator for Answer {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        futures::executor::block_on(self.next_batch())
    }
}

/// Stops an answer. Its reader gets [`Error::Stopped`] at once, at any point of the computation.
#[derive(Debug, Clone)]
pub struct Stopper {
    computation: AbortHandle,
    reader: stream::AbortHandle,
}

impl Stopper {
    /// Stops the computation; does nothing if it is done.
    pub fn stop(&self) {
        self.computation.abort();
        self.reader.abort();
    }
}

/// A computation that is stopped when dropped.
#[derive(Debug)]
pub(crate) struct Task {
    handle: JoinHandle<()>,
    _engine: Arc<Engine>,
}

impl Task {
    pub fn new(handle: JoinHandle<()>, engine: Arc<Engine>) -> Self {
        Self {
            handle,
            _engine: engine,
        }
    }

    /// Waits for the computation's end.
    ///
    /// # Errors
    /// The rows so far are not the whole answer: [`Error::Stopped`], or [`Error::Execution`] when it panicked.
    pub async fn end(&mut self) -> Result<()> {
        (&mut self.handle)
            .await
            .map_err(|error| match error.is_cancelled() {
                true => Error::Stopped,
                false => {
                    Error::Execution(Box::new(DataFusionError::ExecutionJoin(Box::new(error))))
                }
            })
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}
