//! Opens one sealed Parquet file and keeps its footer, so that a query never parses the same footer twice.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use store::columns::{CheckedFile, SealedFile};

use crate::error::{Error, Result};

/// A sealed file and its footer with the page index.
#[derive(Debug)]
pub struct PartFile {
    file: CheckedFile,
    metadata: Arc<ParquetMetaData>,
}

impl PartFile {
    /// Reads the footer of a sealed file.
    ///
    /// # Errors
    /// [`Error::Store`] when it differs from the sealed file, [`Error::Part`] when it cannot be read.
    pub fn open(sealed: &SealedFile) -> Result<Self> {
        let file = CheckedFile::open(sealed)?;
        let metadata = ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Optional)
            .parse_and_finish(&file)
            .map_err(|source| Error::Part {
                path: sealed.path.clone(),
                source,
            })?;
        Ok(Self {
            file,
            metadata: Arc::new(metadata),
        })
    }

    /// Returns the file.
    pub fn file(&self) -> &CheckedFile {
        &self.file
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the file's length in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.file.len_bytes()
    }

    /// Returns the footer, with the page index where the file has one.
    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        &self.metadata
    }

    /// Returns the bytes of a range.
    ///
    /// # Errors
    /// When they cannot be read or differ from the sealed ones.
    pub fn read(&self, range: Range<u64>) -> std::result::Result<Bytes, ParquetError> {
        let read = self.file.read(range);
        read.map_err(|error| ParquetError::External(Box::new(error)))
    }
}
