//! Room on a disk that is kept for later: a file that is removed when the room is needed.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

use super::FILE_MODE;

/// Such a file. Dropping it removes the file.
#[derive(Debug)]
pub struct Spare {
    path: PathBuf,
}

impl Spare {
    /// Keeps so many bytes at `path`. File systems that cannot do this keep nothing: `None`.
    ///
    /// # Errors
    /// The room is not there, or the file cannot be created.
    pub fn keep(path: &Path, bytes: u64) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let file = options.mode(FILE_MODE).open(path)?;
        let spare = Self {
            path: path.to_path_buf(),
        };
        match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(Some(spare)),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        // Whoever needed the room may have removed it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns how many bytes are free where `path` lies.
///
/// # Errors
/// The file system does not say.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let found = statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Returns whether an error says that the disk takes no more.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_kept_until_it_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spare");
        let spare = Spare::keep(&path, 1 << 20).unwrap();
        let spare = spare.expect("file systems of tests can keep room");
        assert_eq!(spare.path().metadata().unwrap().len(), 1 << 20);
        drop(spare);
        assert!(!path.exists());
    }

    #[test]
    fn room_that_is_not_there_cannot_be_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spare");
        // More than any disk has: nothing is taken before that is known.
        let error = Spare::keep(&path, i64::MAX as u64 / 2).unwrap_err();
        assert!(is_full(&error), "{error}");
        assert!(free_bytes(folder.path()).unwrap() < i64::MAX as u64 / 2);
        assert!(!path.exists());
    }
}
