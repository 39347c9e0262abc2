//! Checksums of sealed files: noted while a file is written, compared when it is read.
//!
//! Few writers write Parquet's own page checksums, and fewer readers check them. These are kept outside the file, in
//! `seal.state`, one per block of the file, so that reading a range detects a change in it.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Bytes per checksum in [`FileSum::blocks`].
pub const SUM_BLOCK_LEN: usize = 16 << 10;
const SUM_LEN: usize = size_of::<u32>();

/// Length and checksums of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSum {
    /// Length in bytes.
    pub len: u64,
    /// CRC-32C of all bytes.
    pub crc32c: u32,
    /// CRC-32C of each [`SUM_BLOCK_LEN`] bytes and of the rest at the end, little endian. Empty if an
    /// older writer noted none.
    #[serde(default, with = "shared_bytes")]
    pub blocks: Bytes,
}

/// Bytes that clones share: each reader of a recording notes the checksums of all files.
mod shared_bytes {
    use bytes::Bytes;
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        serde_bytes::deserialize::<Vec<u8>, D>(from).map(Bytes::from)
    }
}

/// Sums up a file that is written front to back.
#[derive(Debug, Default)]
pub(crate) struct Summing {
    sum: FileSum,
    blocks: Vec<u8>,
    block: u32,
    block_len: usize,
}

impl Summing {
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        self.sum.crc32c = crc32c::crc32c_append(self.sum.crc32c, bytes);
        self.sum.len += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = SUM_BLOCK_LEN - self.block_len;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.block = crc32c::crc32c_append(self.block, now);
            self.block_len += now.len();
            if self.block_len == SUM_BLOCK_LEN {
                self.end_block();
            }
            bytes = later;
        }
    }

    pub(crate) fn finish(mut self) -> FileSum {
        if self.block_len > 0 {
            self.end_block();
        }
        FileSum {
            blocks: self.blocks.into(),
            ..self.sum
        }
    }

    fn end_block(&mut self) {
        self.blocks.extend(self.block.to_le_bytes());
        (self.block, self.block_len) = (0, 0);
    }
}

/// The path of a sealed file, and its expected content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealedFile {
    /// The file.
    pub path: PathBuf,
    /// Its length and checksums.
    pub sum: FileSum,
}

/// A sealed file with random access. Each block is compared with its checksum when it is first read. Clones share it.
#[derive(Clone, Debug)]
pub struct CheckedFile {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    file: File,
    sum: FileSum,
    /// The blocks that were compared with their checksum and are intact.
    compared: Box<[AtomicBool]>,
}

impl CheckedFile {
    /// Opens the file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] when it is missing, its length differs, the number of checksums does not match
    /// the blocks, or there is only one checksum and it differs.
    pub fn open(sealed: &SealedFile) -> Result<Self> {
        let path = &sealed.path;
        let file = File::open(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::corrupt(path, 0, "there is no such file"),
            _ => Error::io("open", path)(source),
        })?;
        let len = file.metadata().map_err(Error::io("measure", path))?.len();
        let mut sum = sealed.sum.clone();
        if len != sum.len {
            let what = format!("it has {len} bytes instead of {}", sum.len);
            return Err(Error::corrupt(path, len.min(sum.len), what));
        }
        if sum.blocks.is_empty() {
            sum.blocks = blocks_of(&file, path, sum.crc32c)?;
        }
        let blocks = len.div_ceil(SUM_BLOCK_LEN as u64);
        if sum.blocks.len() as u64 != blocks * SUM_LEN as u64 {
            let what = "seal.state has another number of checksums for it";
            return Err(Error::corrupt(path, 0, what));
        }
        Ok(Self {
            shared: Arc::new(Shared {
                path: path.clone(),
                file,
                sum,
                compared: (0..blocks).map(|_| AtomicBool::new(false)).collect(),
            }),
        })
    }

    /// Returns the file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Returns its length in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.shared.sum.len
    }

    /// Returns the bytes of a range, which must lie within the file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] when they differ from the written ones, naming the first such block.
    pub fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let Shared { path, sum, .. } = &*self.shared;
        if range.start > range.end || range.end > sum.len {
            return Err(Error::corrupt(path, sum.len, "the file ends here"));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let blocks = blocks_around(&range);
        let is_right = |block: &AtomicBool| block.load(Ordering::Relaxed);
        if self.shared.compared[blocks.clone()].iter().all(is_right) {
            return self.shared.read(&range).map(Bytes::from);
        }
        let block_len = SUM_BLOCK_LEN as u64;
        let whole = blocks.start as u64 * block_len..(blocks.end as u64 * block_len).min(sum.len);
        let bytes = self.shared.read(&whole)?;
        self.shared.compare(blocks, &bytes)?;
        let skipped = (range.start - whole.start) as usize;
        let len = (range.end - range.start) as usize;
        Ok(Bytes::from(bytes).slice(skipped..skipped + len))
    }
}

/// Returns the blocks of a non-empty range.
fn blocks_around(range: &Range<u64>) -> Range<usize> {
    let block_len = SUM_BLOCK_LEN as u64;
    (range.start / block_len) as usize..range.end.div_ceil(block_len) as usize
}

impl Shared {
    /// Reads a non-empty range into memory that need not be zeroed first.
    fn read(&self, range: &Range<u64>) -> Result<Vec<u8>> {
        let failed = |error: io::Error| Error::io("read", &self.path)(error);
        let len = (range.end - range.start) as usize;
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let at = range.start + bytes.len() as u64;
            match rustix::io::pread(&self.file, spare_capacity(&mut bytes), at) {
                Ok(0) => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        bytes.truncate(len); // A vector may have more room than requested.
        Ok(bytes)
    }

    /// Compares whole blocks with their checksums.
    fn compare(&self, blocks: Range<usize>, bytes: &[u8]) -> Result<()> {
        let (sums, _) = self.sum.blocks.as_chunks::<SUM_LEN>();
        for (block, bytes) in blocks.zip(bytes.chunks(SUM_BLOCK_LEN)) {
            if crc32c::crc32c(bytes) != u32::from_le_bytes(sums[block]) {
                let what = "the checksum of the 16 KiB from here differs";
                let offset = (block * SUM_BLOCK_LEN) as u64;
                return Err(Error::corrupt(&self.path, offset, what));
            }
            self.compared[block].store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Reads a whole file with only one noted checksum, as older writers noted it, and returns the checksums of its blocks.
fn blocks_of(mut file: &File, path: &Path, crc32c: u32) -> Result<Bytes> {
    let mut summing = Summing::default();
    let mut buffer = vec![0; 64 * SUM_BLOCK_LEN];
    loop {
        match file.read(&mut buffer).map_err(Error::io("read", path))? {
            0 => break,
            count => summing.add(&buffer[..count]),
        }
    }
    let found = summing.finish();
    if found.crc32c != crc32c {
        return Err(Error::corrupt(path, 0, "the file's checksum differs"));
    }
    Ok(found.blocks)
}

impl Length for CheckedFile {
    fn len(&self) -> u64 {
        self.len_bytes()
    }
}

impl ChunkReader for CheckedFile {
    type T = From;

    fn get_read(&self, start: u64) -> parquet::errors::Result<From> {
        Ok(From {
            file: self.clone(),
            at: start,
            ahead: Bytes::new(),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let range = start..start.saturating_add(length as u64);
        self.read(range)
            .map_err(|error| ParquetError::External(Box::new(error)))
    }
}

/// Reads a file from an offset on.
#[derive(Debug)]
pub struct From {
    file: CheckedFile,
    at: u64,
    ahead: Bytes,
}

impl Read for From {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() {
            let block_len = SUM_BLOCK_LEN as u64;
            let end = ((self.at / block_len + 1) * block_len).min(self.file.len_bytes());
            let range = self.at.min(end)..end;
            self.ahead = self.file.read(range).map_err(io::Error::other)?;
            self.at = end;
        }
        let count = to.len().min(self.ahead.len());
        to[..count].copy_from_slice(&self.ahead.split_to(count));
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEN: usize = 3 * SUM_BLOCK_LEN + 1000;

    fn content() -> Vec<u8> {
        (0..LEN).map(|at| (at * at / 7) as u8).collect()
    }

    fn sum_of(pieces: &[&[u8]]) -> FileSum {
        let mut summing = Summing::default();
        pieces.iter().for_each(|piece| summing.add(piece));
        summing.finish()
    }

    /// A file with `content`, the sums of the right content, and the folder.
    fn sealed(content: &[u8]) -> (tempfile::TempDir, SealedFile) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("calls");
        std::fs::write(&path, content).unwrap();
        let sum = sum_of(&[&self::content()]);
        (dir, SealedFile { path, sum })
    }

    #[test]
    fn the_sums_do_not_depend_on_the_pieces() {
        let content = content();
        let whole = sum_of(&[&content]);
        assert_eq!(whole.len, LEN as u64);
        assert_eq!(whole.crc32c, crc32c::crc32c(&content));
        let blocks = content.chunks(SUM_BLOCK_LEN);
        let blocks: Vec<u8> = blocks
            .flat_map(|block| crc32c::crc32c(block).to_le_bytes())
            .collect();
        assert_eq!(whole.blocks, blocks);
        for at in [0, 1, SUM_BLOCK_LEN, SUM_BLOCK_LEN + 1, LEN] {
            let (a, b) = content.split_at(at);
            assert_eq!(sum_of(&[a, b]), whole, "cut at {at}");
        }
        assert_eq!(sum_of(&[]), FileSum::default());
    }

    #[test]
    fn a_file_of_another_length_is_refused() {
        let mut content = content();
        content.pop();
        let (_dir, file) = sealed(&content);
        let error = CheckedFile::open(&file).unwrap_err().to_string();
        assert!(
            error.contains("it has 50151 bytes instead of 50152"),
            "{error}"
        );
    }

    #[test]
    fn files_with_one_sum_are_read_whole_once() {
        let mut content = content();
        let (_dir, mut file) = sealed(&content);
        file.sum.blocks.clear();
        let read = CheckedFile::open(&file).unwrap().read(10..100);
        assert_eq!(read.unwrap(), content[10..100]);

        content[70] ^= 1;
        let (_dir, mut file) = sealed(&content);
        file.sum.blocks.clear();
        let error = CheckedFile::open(&file).unwrap_err().to_string();
        assert!(error.contains("the file's checksum differs"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_damaged_is_not_read(damaged in 0..LEN, start in 0..LEN, len in 0..LEN) {
            let right = content();
            let mut wrong = right.clone();
            wrong[damaged] ^= 0x10;
            let (_dir, file) = sealed(&wrong);
            let file = CheckedFile::open(&file).unwrap();
            let range = start..(start + len).min(LEN);
            let touches = !range.is_empty()
                && (range.start / SUM_BLOCK_LEN..=(range.end - 1) / SUM_BLOCK_LEN)
                    .contains(&(damaged / SUM_BLOCK_LEN));
            let read = file.read(range.start as u64..range.end as u64);
            let mut through = vec![0; range.len()];
            let reader = file.get_read(range.start as u64).unwrap().read_exact(&mut through);
            if touches {
                prop_assert!(file.read(range.start as u64..range.end as u64).is_err(), "read again");
                let offset = damaged / SUM_BLOCK_LEN * SUM_BLOCK_LEN;
                let error = read.unwrap_err();
                prop_assert!(
                    matches!(&error, Error::Corrupt { offset: at, .. } if *at == offset as u64),
                    "{}", error
                );
                prop_assert!(reader.is_err());
            } else {
                prop_assert_eq!(&read.unwrap()[..], &right[range.clone()]);
                reader.unwrap();
                prop_assert_eq!(&through[..], &right[range.clone()]);
                let again = file.read(range.start as u64..range.end as u64);
                prop_assert_eq!(&again.unwrap()[..], &right[range]);
            }
        }
    }
}
