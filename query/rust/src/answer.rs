//! The rows of an answer, as they are computed.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use crate::error::{Error, Result};

/// The rows of an answer, in batches that are computed while they are read. Dropping it stops the computation. It may
/// outlive its recording.
///
/// ```no_run
/// # let recording = hindsight::Recording::open("ten")?;
/// let mut rows = 0;
/// for batch in recording.stream("SELECT * FROM calls")? {
///     rows += batch?.num_rows();
/// }
/// # Ok::<(), hindsight::Error>(())
/// ```
#[derive(Debug)]
pub struct Answer {
    inner: query::Answer,
}

impl Answer {
    pub(crate) fn new(inner: query::Answer) -> Self {
        Self { inner }
    }

    /// Returns the columns, also those of an answer without rows.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// let answer = recording.stream("SELECT seq, function FROM calls")?;
    /// assert_eq!(answer.schema().field(1).name(), "function");
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    pub fn schema(&self) -> &SchemaRef {
        self.inner.schema()
    }

    /// Waits for the next batch, which is never empty; `None` at the end. Nothing comes after an error. Any executor
    /// may run it: the computation has threads of its own.
    ///
    /// ```no_run
    /// # async fn example(recording: &hindsight::Recording) -> hindsight::Result<()> {
    /// let mut answer = recording.ask("SELECT * FROM calls").await?;
    /// while let Some(batch) = answer.next_batch().await {
    ///     println!("{} rows", batch?.num_rows());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.inner.next_batch().await?;
        Some(batch.map_err(Error::of_query))
    }
}

/// Blocks the calling thread for each batch.
impl Iterator for Answer {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.inner.next()?.map_err(Error::of_query))
    }
}
