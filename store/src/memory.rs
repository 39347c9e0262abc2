//! Snapshots of the program's memory: one file each in the recording's folder `memory/`.
//!
//! A snapshot keeps the pages that have changed since the one before, and lists the memory it covers. The content of a
//! covered page is in the newest snapshot so far that has it. A page that no snapshot has is as it was mapped: zeroes,
//! or the bytes of its file. Snapshots are written once, while the program is stopped. Sealing never reads them: the
//! log only holds an event for each. `docs/format.md` is the norm.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use read::{Memory, Seen};
pub use write::SnapshotWriter;

use crate::file_header::FileHeader;
use crate::format::{FileKind, MEMORY_DIR, MEMORY_SUFFIX};
use crate::manifest::RecordingId;

/// Length of a page in bytes.
pub const PAGE_LEN: u64 = 4096;
/// Most bytes of one run of pages: a reader has to unpack them for one page.
pub const MAX_RUN_LEN: usize = 64 << 10;

/// Memory that a snapshot covers: whole pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Address of its first byte.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// True where pages that were never written hold zeroes.
    pub zeroed: bool,
    /// Path of the mapped file, or the kernel's name in brackets; empty for anonymous memory.
    pub name: String,
}

/// The content of a snapshot's file; the frame before the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Contents {
    /// Lowest address first, none overlapping.
    regions: Vec<Region>,
    /// Lowest address first, none overlapping.
    runs: Vec<Run>,
}

/// Consecutive pages in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    /// Address of the first byte.
    addr: u64,
    /// Length in bytes.
    len: u32,
    /// Offset of its frame in the file.
    offset: u64,
}

/// How the bytes of a run are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Codec {
    /// Uncompressed.
    Raw = 0,
    /// One zstd frame (RFC 8878).
    Zstd = 1,
}

/// Before the bytes of a run: their length when unpacked and their codec, each as a little endian u32.
const PREFIX_LEN: usize = 8;

/// Returns the path of the snapshot `id` in the recording's folder `dir`.
fn path_of(dir: &Path, id: u32) -> PathBuf {
    dir.join(MEMORY_DIR).join(format!("{id:06}{MEMORY_SUFFIX}"))
}

fn header_of(recording_id: RecordingId, id: u32) -> FileHeader {
    FileHeader {
        kind: FileKind::Memory,
        recording_id,
        number: id,
    }
}
