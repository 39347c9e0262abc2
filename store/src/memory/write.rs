//! Writes one snapshot.

use std::fs::File;
use std::path::Path;

use super::{Codec, Contents, MAX_RUN_LEN, PAGE_LEN, PREFIX_LEN, Region, Run, header_of, path_of};
use crate::error::{Error, Result};
use crate::format::{FrameKind, MEMORY_DIR};
use crate::log::frame_writer::FrameWriter;
use crate::manifest::RecordingId;
use crate::storage::{self, Storage, StorageFile};

/// Most bytes of a snapshot that are compressed: the program waits meanwhile.
const COMPRESSED_LEN: u64 = 32 << 20;
/// The fastest level of zstd that is not meant for speed alone.
const LEVEL: i32 = 1;

/// The one writer of a snapshot.
pub struct SnapshotWriter<F: StorageFile = File> {
    file: FrameWriter<F>,
    compressor: zstd::bulk::Compressor<'static>,
    runs: Vec<Run>,
    raw_len: u64,
}

impl<F: StorageFile> SnapshotWriter<F> {
    /// Creates the file of snapshot `id` in the recording's folder `dir`, which must not have it.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Append`].
    pub fn create<S: Storage<File = F>>(
        storage: &S,
        dir: &Path,
        recording_id: RecordingId,
        id: u32,
    ) -> Result<Self> {
        let folder = dir.join(MEMORY_DIR);
        if !folder.is_dir() {
            storage::create_dir(&folder).map_err(Error::io("create", &folder))?;
        }
        let path = path_of(dir, id);
        Ok(Self {
            file: FrameWriter::create(storage, &path, header_of(recording_id, id))?,
            compressor: zstd::bulk::Compressor::new(LEVEL).map_err(Error::io("compress", &path))?,
            runs: Vec::new(),
            raw_len: 0,
        })
    }

    /// Appends consecutive pages, the first at `addr`. Runs come lowest address first.
    ///
    /// # Errors
    /// [`Error::Append`] when the disk takes no more.
    ///
    /// # Panics
    /// When `bytes` are not whole pages, or more than [`MAX_RUN_LEN`].
    pub fn append(&mut self, addr: u64, bytes: &[u8]) -> Result<()> {
        let is_whole = addr.is_multiple_of(PAGE_LEN)
            && bytes.len().is_multiple_of(PAGE_LEN as usize)
            && (1..=MAX_RUN_LEN).contains(&bytes.len());
        assert!(is_whole, "a run is a few whole pages");
        let packed = match self.raw_len < COMPRESSED_LEN {
            true => self.compressor.compress(bytes).ok(),
            false => None,
        };
        self.raw_len += bytes.len() as u64;
        self.runs.push(Run {
            addr,
            len: bytes.len() as u32,
            offset: self.file.len(),
        });
        match packed.filter(|packed| packed.len() < bytes.len()) {
            Some(packed) => self.frame(addr, bytes.len(), Codec::Zstd, &packed),
            None => self.frame(addr, bytes.len(), Codec::Raw, bytes),
        }
    }

    fn frame(&mut self, addr: u64, len: usize, codec: Codec, bytes: &[u8]) -> Result<()> {
        let mut prefix = [0; PREFIX_LEN];
        prefix[..4].copy_from_slice(&(len as u32).to_le_bytes());
        prefix[4..].copy_from_slice(&(codec as u32).to_le_bytes());
        self.file.append(FrameKind::Pages, addr, [&prefix, bytes])?;
        Ok(())
    }

    /// Writes what the snapshot covers, and waits until readers can see all of it. Returns the length of the file in
    /// bytes.
    ///
    /// # Errors
    /// [`Error::Append`] or [`Error::Encode`].
    pub fn finish(mut self, regions: Vec<Region>) -> Result<u64> {
        let contents = Contents {
            regions,
            runs: self.runs,
        };
        let contents_at = self.file.len();
        let bytes = rmp_serde::to_vec_named(&contents).map_err(|source| Error::Encode {
            what: "the regions of a snapshot",
            source,
        })?;
        self.file.append(FrameKind::Document, 0, [&bytes, &[]])?;
        self.file
            .append(FrameKind::SegmentEnd, contents_at, [&[], &[]])?;
        self.file.finish()?;
        Ok(self.file.len())
    }
}
