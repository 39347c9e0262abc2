//! Maps files read-only. This module has the only `unsafe` code of the crate.
#![allow(unsafe_code)]

use std::fs::File;
use std::ops::Deref;
use std::path::Path;

/// A file's bytes: mapped, or held in memory.
#[derive(Debug)]
pub(crate) enum Bytes {
    /// A private, read-only mapping of a file.
    Mapped(memmap2::Mmap),
    /// Bytes given by the caller.
    Owned(Vec<u8>),
}

impl Bytes {
    /// Maps the file at `path`. An empty file yields empty bytes.
    pub(crate) fn map(path: &Path) -> std::io::Result<Bytes> {
        // Checked before opening, because opening a pipe would wait for its other end.
        if !std::fs::metadata(path)?.is_file() {
            return Err(std::io::Error::other("not a regular file"));
        }
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(Bytes::Owned(Vec::new()));
        }
        // SAFETY: the mapping is private and read-only, and the file stays open until the mapping exists. Another
        // process may still change or truncate the file. However, build tools replace a program by a new file instead
        // of writing into it, and the kernel refuses writes to a running one (ETXTBSY), so the bytes read here keep
        // their values.
        let map = unsafe { memmap2::MmapOptions::new().map(&file)? };
        Ok(Bytes::Mapped(map))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}
