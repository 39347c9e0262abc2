//! One sealed Parquet file. Its footer is read when it is needed: those of all files grow with the recording.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use store::columns::{CheckedFile, SealedFile};

use crate::error::{Error, Result};

/// A sealed file.
#[derive(Debug)]
pub struct PartFile {
    file: CheckedFile,
    /// The footer with the index of pages, once a query scans the file.
    with_pages: Mutex<Option<Arc<ParquetMetaData>>>,
}

/// A file that was just opened, with its footer.
pub struct OpenedPart {
    /// The file.
    pub part: Arc<PartFile>,
    /// Its footer, without the index of pages.
    pub footer: Arc<ParquetMetaData>,
}

impl OpenedPart {
    /// Opens a sealed file.
    ///
    /// # Errors
    /// [`Error::Store`] when it differs from the sealed file, [`Error::Part`] when it cannot be read.
    pub fn open(sealed: &SealedFile) -> Result<Self> {
        let part = PartFile {
            file: CheckedFile::open(sealed)?,
            with_pages: Mutex::default(),
        };
        let footer = part.footer();
        let footer = footer.map_err(|source| Error::of_part(&sealed.path, source))?;
        Ok(Self {
            part: Arc::new(part),
            footer,
        })
    }
}

impl PartFile {
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

    /// Returns the footer; the index of pages may be missing.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn footer(&self) -> std::result::Result<Arc<ParquetMetaData>, ParquetError> {
        if let Some(known) = &*self.known() {
            return Ok(Arc::clone(known));
        }
        let footer = ParquetMetaDataReader::new().parse_and_finish(&self.file)?;
        Ok(Arc::new(footer))
    }

    /// Returns the footer with the index of pages, where the file has one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn with_pages(&self) -> std::result::Result<Arc<ParquetMetaData>, ParquetError> {
        let mut known = self.known();
        if let Some(known) = &*known {
            return Ok(Arc::clone(known));
        }
        let reader = ParquetMetaDataReader::new();
        let reader = reader.with_page_index_policy(PageIndexPolicy::Optional);
        let whole = Arc::new(reader.parse_and_finish(&self.file)?);
        *known = Some(Arc::clone(&whole));
        Ok(whole)
    }

    /// Gives back the memory of the footer and the index of pages. The next scan reads them again.
    pub fn forget_pages(&self) {
        *self.known() = None;
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<ParquetMetaData>>> {
        // The value is replaced as a whole, so it is consistent at all times.
        self.with_pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
