//! The footer that was read last, of several files that are read one after the other. Those of all files grow with the recording.

use std::sync::{Mutex, PoisonError};

use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use crate::error::Result;

/// The last footer, and the number of its file.
#[derive(Default)]
pub struct LastFooter(Mutex<Option<(usize, ArrowReaderMetadata)>>);

impl LastFooter {
    /// Returns the footer of a file; `read` reads it, unless it is the last one.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn of(
        &self,
        file: usize,
        read: impl FnOnce() -> Result<ArrowReaderMetadata>,
    ) -> Result<ArrowReaderMetadata> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, footer)) = &*last
            && *known == file
        {
            return Ok(footer.clone());
        }
        let footer = read()?;
        *last = Some((file, footer.clone()));
        Ok(footer)
    }
}
