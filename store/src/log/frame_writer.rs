//! Appends frames to one file; a frame that does not fit the disk leaves no trace.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::file_header::{self, FileHeader};
use crate::format::{FILE_HEADER_LEN, FrameKind, MAX_PAYLOAD_LEN};
use crate::log::frame::{self, FrameHeader};
use crate::log::frame_reader::FrameReader;
use crate::storage::{Disk, Storage, StorageFile};

/// The one writer of a file of frames.
pub struct FrameWriter<F: StorageFile = std::fs::File> {
    file: Arc<F>,
    path: PathBuf,
    file_crc: u32,
    len: u64,
    stopped: bool,
}

impl FrameWriter {
    /// Opens an existing file, cuts it to its first `len` bytes and continues from there.
    ///
    /// # Errors
    /// When the file differs from `header`, or is shorter than `len` bytes.
    pub fn resume(path: &Path, header: FileHeader, len: u64) -> Result<Self> {
        let reader = FrameReader::open(path, &header)?;
        let found = reader.file_len()?;
        if found < len || len < FILE_HEADER_LEN as u64 {
            return Err(Error::Truncated {
                path: path.to_path_buf(),
                offset: found,
                what: format!("{len} bytes were written"),
            });
        }
        let file = Disk.reopen(path).map_err(Error::io("open", path))?;
        file.truncate(len).map_err(Error::io("cut", path))?;
        Ok(Self {
            file: Arc::new(file),
            path: path.to_path_buf(),
            file_crc: reader.file_crc(),
            len,
            stopped: false,
        })
    }
}

impl<F: StorageFile> FrameWriter<F> {
    /// Creates the file `path`, which must not exist, and waits until its header is written. Removes it again on
    /// failure.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Append`].
    pub fn create<S: Storage<File = F>>(
        storage: &S,
        path: &Path,
        header: FileHeader,
    ) -> Result<Self> {
        let file = storage.create(path).map_err(Error::io("create", path))?;
        let bytes = header.encode();
        let headed = append_all(&file, &mut [IoSlice::new(&bytes)]).and_then(|()| file.settle());
        if let Err(source) = headed {
            storage.remove(path).map_err(Error::io("remove", path))?;
            return Err(append_error(path, source));
        }
        Ok(Self {
            file: Arc::new(file),
            path: path.to_path_buf(),
            file_crc: file_header::stored_crc(&bytes),
            len: FILE_HEADER_LEN as u64,
            stopped: false,
        })
    }

    /// Appends a frame whose payload is the concatenation of `parts`, with one `writev`, and returns its length in
    /// bytes.
    ///
    /// # Errors
    /// [`Error::Append`] when the disk takes no more: the file then ends with the frame before, and a later
    /// append may succeed. [`Error::WriterStopped`] when that cut failed.
    #[inline]
    pub fn append(&mut self, kind: FrameKind, arg: u64, parts: [&[u8]; 2]) -> Result<usize> {
        let len = parts[0].len() + parts[1].len();
        if len > MAX_PAYLOAD_LEN {
            let rule = "a frame holds at most 64 MiB";
            return Err(Error::BadPayload { len, rule });
        }
        if self.stopped {
            let path = self.path.clone();
            return Err(Error::WriterStopped { path });
        }
        let header = FrameHeader { kind, len, arg };
        let header = frame::encode(&header, self.file_crc, self.len, parts);
        let mut slices = [&header, parts[0], parts[1], frame::padding(len)].map(IoSlice::new);
        match append_all(&*self.file, &mut slices) {
            Ok(()) => {
                let frame_len = frame::frame_len(len);
                self.len += frame_len as u64;
                Ok(frame_len)
            }
            Err(source) => Err(self.undo(source)),
        }
    }

    /// Returns the length of the file in bytes: where the next frame begins.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether no frame has been appended.
    pub fn is_empty(&self) -> bool {
        self.len <= FILE_HEADER_LEN as u64
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs everything appended to the disk.
    ///
    /// # Errors
    /// [`Error::Sync`].
    pub fn sync(&self) -> Result<()> {
        self.file.sync().map_err(|error| Error::Sync {
            path: self.path.clone(),
            message: error.to_string(),
        })
    }

    /// Makes the appended frames visible to readers, soon.
    pub fn flush(&self) {
        self.file.flush();
    }

    /// Ends the file: the rest is on its way to the disk.
    pub(crate) fn end(&self) {
        self.file.end();
    }

    /// Waits until the appended frames are written.
    ///
    /// # Errors
    /// [`Error::Append`].
    pub(crate) fn finish(&self) -> Result<()> {
        self.file
            .finish()
            .map_err(|source| append_error(&self.path, source))
    }

    /// Returns the file, for a thread that syncs it.
    pub(crate) fn file(&self) -> Arc<F> {
        Arc::clone(&self.file)
    }

    #[cold]
    fn undo(&mut self, source: io::Error) -> Error {
        self.stopped = self.file.truncate(self.len).is_err();
        append_error(&self.path, source)
    }
}

fn append_error(path: &Path, source: io::Error) -> Error {
    Error::Append {
        path: path.to_path_buf(),
        source,
    }
}

/// Appends all bytes of `slices`: usually one system call, more only after a partial write.
#[inline]
fn append_all<F: StorageFile>(file: &F, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut slices, 0); // drops empty ones in front
    while !slices.is_empty() {
        match file.append(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut slices, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
