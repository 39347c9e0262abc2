//! Opens one sealed Parquet file and keeps its footer, so that a query never parses the same footer twice.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use store::columns::{CheckedFile, SealedFile};

use crate::error::{Error, Result};

/// A sealed file and its footer.
#[derive(Debug)]
pub struct PartFile {
    file: CheckedFile,
    footer: Arc<ParquetMetaData>,
    /// The same with the index of pages, once a query scans the file. The indexes of all files grow with the recording.
    with_pages: OnceLock<Arc<ParquetMetaData>>,
}

impl PartFile {
    /// Reads the footer of a sealed file.
    ///
    /// # Errors
    /// [`Error::Store`] when it differs from the sealed file, [`Error::Part`] when it cannot be read.
    pub fn open(sealed: &SealedFile) -> Result<Self> {
        let file = CheckedFile::open(sealed)?;
        let footer = ParquetMetaDataReader::new().parse_and_finish(&file);
        let footer = footer.map_err(|source| Error::Part {
            path: sealed.path.clone(),
            source,
        })?;
        Ok(Self {
            file,
            footer: Arc::new(footer),
            with_pages: OnceLock::new(),
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

    /// Returns the footer.
    pub fn footer(&self) -> &Arc<ParquetMetaData> {
        &self.footer
    }

    /// Returns the footer with the index of pages, where the file has one.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn with_pages(&self) -> std::result::Result<&Arc<ParquetMetaData>, ParquetError> {
        if let Some(known) = self.with_pages.get() {
            return Ok(known);
        }
        let mut reader = ParquetMetaDataReader::new_with_metadata((*self.footer).clone())
            .with_page_index_policy(PageIndexPolicy::Optional);
        reader.read_page_indexes(&self.file)?;
        let whole = Arc::new(reader.finish()?);
        Ok(self.with_pages.get_or_init(|| whole))
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
