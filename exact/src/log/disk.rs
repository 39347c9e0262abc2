//! The log's file on a disk that may become full: some room was kept for its end.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// The file, and what the disk said.
#[derive(Debug)]
pub(super) struct Disk {
    file: File,
    /// Removed when the disk takes no more.
    spare: Option<PathBuf>,
    refused: Option<io::Error>,
}

impl Disk {
    pub(super) fn new(file: File, spare: Option<PathBuf>) -> Disk {
        Disk {
            file,
            spare,
            refused: None,
        }
    }

    /// Why it took no more; it may have taken some more since.
    pub(super) fn refused(&self) -> Option<&io::Error> {
        self.refused.as_ref()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let error = match self.file.write(bytes) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => error,
            written => return written,
        };
        let kind = error.kind();
        self.refused.get_or_insert(error);
        match self.spare.take().map(fs::remove_file) {
            Some(Ok(())) => self.file.write(bytes),
            Some(Err(_)) | None => Err(kind.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
