//! Opens one sealed Parquet file and keeps its footer, so that a query never parses the same footer twice.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use crate::error::{Error, Result};

/// A sealed file: its path and its footer with the page index.
#[derive(Debug)]
pub struct PartFile {
    path: PathBuf,
    len_bytes: u64,
    metadata: Arc<ParquetMetaData>,
}

impl PartFile {
    /// Reads the footer of the Parquet file at `path`.
    ///
    /// # Errors
    /// [`Error::Part`] when the file cannot be read or is no Parquet file.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |source| Error::Part {
            path: path.to_path_buf(),
            source,
        };
        let file = File::open(path).map_err(|e| failed(e.into()))?;
        let len_bytes = file.metadata().map_err(|e| failed(e.into()))?.len();
        let metadata = ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Optional)
            .parse_and_finish(&file)
            .map_err(failed)?;
        Ok(Self {
            path: path.to_path_buf(),
            len_bytes,
            metadata: Arc::new(metadata),
        })
    }

    /// Returns where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file's length in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Returns the footer, with the page index where the file has one.
    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        &self.metadata
    }
}
