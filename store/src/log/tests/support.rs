//! A small log, a disk that fails on demand, and a reader that collects.

use std::fs::File;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::Result;
use crate::log::{End, FrameBody, LogReader, LogWriter, Step, Tail};
use crate::storage::{Disk, Storage, StorageFile};
use crate::synth::{RECORDING_ID, Synth, SynthFrame, append_frame};

/// A log of some ten frames of every kind.
pub(super) fn small() -> Synth {
    let mut synth = Synth::new();
    let f = synth.function("f");
    synth
        .thread(1)
        .enter(f, 0x7f00)
        .output(1, b"hello")
        .leave(0x7f00);
    synth.watermark();
    synth.thread(2).enter(f, 0x8f00).leave(0x8f00).thread_exit();
    synth.thread(1).enter(f, 0x7f00).watermark();
    synth.thread(1).leave_value(0x7f00, 7).flush();
    synth
}

/// Writes `frames` with small segments; returns after a clean close.
pub(super) fn write(dir: &Path, frames: &[SynthFrame], roll_len: u64) {
    let disk = FaultyDisk::with_space(1 << 40);
    let mut log = LogWriter::create_on(disk, dir, RECORDING_ID, roll_len).unwrap();
    for frame in frames {
        append_frame(&mut log, frame).unwrap();
    }
    log.close().unwrap();
}

pub(super) fn reader(dir: &Path, tail: Tail) -> Result<LogReader> {
    LogReader::open(dir, RECORDING_ID, tail)
}

/// Reads everything present.
pub(super) fn collect(reader: &mut LogReader) -> Result<(Vec<SynthFrame>, End)> {
    let mut frames = Vec::new();
    loop {
        match reader.next_frame()? {
            Step::Frame(frame) => frames.push(owned(frame.body)),
            Step::End(end) => return Ok((frames, end)),
        }
    }
}

pub(super) fn read(dir: &Path, tail: Tail) -> Result<(Vec<SynthFrame>, End)> {
    collect(&mut reader(dir, tail)?)
}

pub(super) fn owned(body: FrameBody<'_>) -> SynthFrame {
    match body {
        FrameBody::Block(block) => SynthFrame::Block {
            ring: block.ring,
            tenancy: block.tenancy,
            bytes: block.bytes.to_vec(),
        },
        FrameBody::Control(control) => SynthFrame::Control(*control),
        FrameBody::Watermark { ticks } => SynthFrame::Watermark(ticks),
    }
}

/// A disk with limited space that can also fail to sync or to truncate. It never waits for the real one.
#[derive(Clone, Default)]
pub(super) struct FaultyDisk {
    pub(super) state: Arc<DiskState>,
}

#[derive(Default)]
pub(super) struct DiskState {
    pub(super) free_bytes: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) synced_bytes: AtomicU64,
    pub(super) sync_fails: AtomicBool,
    pub(super) truncate_fails: AtomicBool,
    /// Each `append` writes at most this many bytes, 0 for no limit.
    pub(super) write_limit: AtomicU64,
}

pub(super) struct FaultyFile {
    file: File,
    state: Arc<DiskState>,
}

impl FaultyDisk {
    pub(super) fn with_space(free_bytes: u64) -> Self {
        let disk = Self::default();
        disk.state.free_bytes.store(free_bytes, Ordering::Relaxed);
        disk
    }

    fn wrap(&self, file: File) -> FaultyFile {
        let state = Arc::clone(&self.state);
        FaultyFile { file, state }
    }
}

impl Storage for FaultyDisk {
    type File = FaultyFile;

    fn create(&self, path: &Path) -> io::Result<FaultyFile> {
        Disk.create(path).map(|file| self.wrap(file))
    }

    fn reopen(&self, path: &Path) -> io::Result<FaultyFile> {
        Disk.reopen(path).map(|file| self.wrap(file))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl StorageFile for FaultyFile {
    fn append(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let free = self.state.free_bytes.load(Ordering::Relaxed) as usize;
        let limit = match self.state.write_limit.load(Ordering::Relaxed) as usize {
            0 => bytes.len(),
            limit => limit,
        };
        let count = bytes.len().min(free).min(limit);
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.state
            .free_bytes
            .fetch_sub(count as u64, Ordering::Relaxed);
        let written = self.file.append(&[IoSlice::new(&bytes[..count])])?;
        assert_eq!(written, count);
        Ok(count)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        if self.state.truncate_fails.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Other.into());
        }
        let cut = self.file.metadata()?.len() - len;
        self.state.free_bytes.fetch_add(cut, Ordering::Relaxed);
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        if self.state.sync_fails.load(Ordering::Relaxed) {
            return Err(io::Error::other("the disk is gone"));
        }
        let len = self.file.metadata()?.len();
        self.state.syncs.fetch_add(1, Ordering::Relaxed);
        self.state.synced_bytes.fetch_max(len, Ordering::Relaxed);
        Ok(())
    }
}
