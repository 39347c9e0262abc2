//! The log writer's access to the disk: one small trait, so that tests can fill or break the disk at any byte.
//!
//! Everything made here belongs to its owner only: folders have mode 0700, files 0600.

pub(crate) mod aligned;
mod spare;
mod speed;
mod staged;

pub use spare::{Spare, free_bytes, is_full};
pub use staged::{Staged, StagedFile};

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Mode of every folder of a recording.
pub const DIR_MODE: u32 = 0o700;
/// Mode of every file of a recording.
pub const FILE_MODE: u32 = 0o600;

/// The storage of a log.
pub trait Storage: Send + 'static {
    /// A file open for appending.
    type File: StorageFile;

    /// Creates `path`, which must not exist, for appending.
    fn create(&self, path: &Path) -> io::Result<Self::File>;
    /// Opens `path`, which must exist, for appending.
    fn reopen(&self, path: &Path) -> io::Result<Self::File>;
    /// Removes `path`.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Syncs the names in `dir` to the disk.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// A file that is only appended to.
pub trait StorageFile: Send + Sync + 'static {
    /// Appends some of the bytes and returns their number, as `writev` does.
    fn append(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Cuts the file to `len` bytes.
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// Syncs the file's bytes and length to the disk.
    fn sync(&self) -> io::Result<()>;
    /// Makes the appended bytes visible to readers, soon.
    fn flush(&self) {}
    /// Waits until the appended bytes can be read, and continues in the same buffer.
    ///
    /// # Errors
    /// When they could not be written.
    fn settle(&self) -> io::Result<()> {
        Ok(())
    }
    /// Ends appending for now: returns buffers.
    fn end(&self) {}
    /// Waits until the appended bytes are written, though not yet synced.
    ///
    /// # Errors
    /// When they could not be written.
    fn finish(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Storage for Disk {
    type File = File;

    fn create(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(FILE_MODE);
        options.open(path)
    }

    fn reopen(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().append(true).open(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

impl StorageFile for File {
    #[inline]
    fn append(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut file = self;
        file.write_vectored(parts)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Creates the folder `path`, which must not exist, for its owner only.
pub fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIR_MODE).create(path)
}
