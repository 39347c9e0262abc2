//! Reads memory as of a snapshot, a page at a time, with bounded memory; trusts no byte of a file.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Codec, Contents, MAX_RUN_LEN, PAGE_LEN, PREFIX_LEN, Region, Run, header_of, path_of};
use crate::error::{Error, Result};
use crate::format::{FRAME_HEADER_LEN, FrameKind};
use crate::log::frame_reader::{FrameReader, RawFrame};
use crate::manifest::RecordingId;
use crate::recording::{Recording, RecordingState};

/// Most runs that are kept unpacked: 4 MiB.
const KEPT_RUNS: usize = 64;

/// Most files that are kept open: a program may have no more than 1,024, and a recording may have more snapshots.
const KEPT_FILES: usize = 16;

/// All snapshots of a recording.
pub struct Memory {
    dir: PathBuf,
    recording_id: RecordingId,
    /// In order: snapshot `n` is the `n`th.
    snapshots: Vec<Snapshot>,
    /// Each snapshot that covers other memory than the one before it, and that memory; the first is snapshot 0.
    coverage: Vec<(usize, Arc<[Region]>)>,
    /// By a page's address: the snapshots after the first that have the page, in order.
    changes: FxHashMap<u64, Vec<u32>>,
    /// The files read last, by snapshot; the latest first.
    open: VecDeque<(usize, FrameReader)>,
    /// The runs read last, by snapshot and address; the latest first.
    kept: VecDeque<(usize, u64, Arc<[u8]>)>,
}

/// One of them.
struct Snapshot {
    path: PathBuf,
    runs: Box<[Run]>,
}

/// The content of a page, or of a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// These bytes, as many as requested.
    Bytes(Vec<u8>),
    /// Zeroes: it had never been written.
    Zeroes,
    /// The snapshot does not cover it.
    Uncovered,
}

impl Memory {
    /// Opens the snapshots of a recording, except one that is being written or was when the recorder died.
    ///
    /// # Errors
    /// [`Error::Io`], or the fault of a file, with its offset.
    pub fn open(recording: &Recording) -> Result<Self> {
        let mut memory = Self {
            dir: recording.dir().to_path_buf(),
            recording_id: recording.manifest().recording_id,
            snapshots: Vec::new(),
            coverage: Vec::new(),
            changes: FxHashMap::default(),
            open: VecDeque::new(),
            kept: VecDeque::new(),
        };
        for id in 0.. {
            let path = path_of(recording.dir(), id);
            if !path.exists() {
                break;
            }
            match contents_of(&path, memory.recording_id, id) {
                Ok(contents) => memory.add(path, contents),
                Err(Error::Truncated { .. }) if recording.state() != RecordingState::Closed => {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(memory)
    }

    fn add(&mut self, path: PathBuf, contents: Contents) {
        let number = self.snapshots.len();
        let covered = self.coverage.last().map(|(_, regions)| &**regions);
        if covered != Some(&contents.regions) {
            self.coverage.push((number, contents.regions.into()));
        }
        if number > 0 {
            for run in &contents.runs {
                for page in (run.addr..run.addr + u64::from(run.len)).step_by(PAGE_LEN as usize) {
                    self.changes.entry(page).or_default().push(number as u32);
                }
            }
        }
        self.snapshots.push(Snapshot {
            path,
            runs: contents.runs.into(),
        });
    }

    /// Returns how many snapshots there are; their ids count from 0.
    pub fn len(&self) -> usize {
        self.snapshots.len()
    }

    /// Refuses a recording that lacks the snapshot `id` of an event: it was finished before that event was written.
    ///
    /// # Errors
    /// [`Error::Truncated`] naming the file.
    pub fn must_have(&self, id: u32) -> Result<()> {
        if (id as usize) < self.snapshots.len() {
            return Ok(());
        }
        let path = path_of(&self.dir, id);
        let found = path.metadata();
        let what = match &found {
            Ok(_) => "an event tells of this copy of memory, and its end is missing",
            Err(_) => "an event tells of this copy of memory, and there is no such file",
        };
        Err(Error::Truncated {
            offset: found.map_or(0, |found| found.len()),
            path,
            what: what.to_owned(),
        })
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.snapshots.is_empty()
    }

    /// Returns their files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.snapshots
            .iter()
            .map(|snapshot| snapshot.path.as_path())
    }

    /// Returns the memory that snapshot `id` covers, lowest address first; nothing if the snapshot does not exist.
    pub fn regions(&self, id: u32) -> &[Region] {
        match (id as usize) < self.snapshots.len() {
            true => &self.coverage[self.coverage_of(id as usize)].1,
            false => &[],
        }
    }

    /// Returns the entry of `coverage` for a snapshot.
    fn coverage_of(&self, number: usize) -> usize {
        let behind = self.coverage.partition_point(|(from, _)| *from <= number);
        behind - 1
    }

    /// Returns the page with the byte at `addr` as of snapshot `id`.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Corrupt`], naming file and offset.
    pub fn page(&mut self, id: u32, addr: u64) -> Result<Seen> {
        let page = addr / PAGE_LEN * PAGE_LEN;
        self.part(id, page..page.saturating_add(PAGE_LEN))
    }

    /// Returns a part of a page as of snapshot `id`.
    ///
    /// # Errors
    /// As for [`Self::page`].
    ///
    /// # Panics
    /// The range is empty, or not within one page.
    pub fn part(&mut self, id: u32, part: Range<u64>) -> Result<Seen> {
        let page = part.start / PAGE_LEN * PAGE_LEN;
        assert!(
            part.start < part.end && part.end <= page.saturating_add(PAGE_LEN),
            "{part:x?} is not within a page"
        );
        let Some(region) = region_at(self.regions(id), page) else {
            return Ok(Seen::Uncovered);
        };
        let zeroed = region.zeroed;
        if let Some((at, run)) = self.newest(id, page)
            && self.was_covered(page, at, id as usize)
        {
            let bytes = self.run(at, run)?;
            let (from, to) = (part.start - run.addr, part.end - run.addr);
            return Ok(Seen::Bytes(bytes[from as usize..to as usize].to_vec()));
        }
        Ok(match zeroed {
            true => Seen::Zeroes,
            false => Seen::Uncovered,
        })
    }

    /// Finds the newest snapshot up to `id` that has a page.
    fn newest(&self, id: u32, page: u64) -> Option<(usize, Run)> {
        let changes = self.changes.get(&page).map_or(&[][..], Vec::as_slice);
        let behind = changes.partition_point(|changed| *changed <= id);
        let at = behind.checked_sub(1).map_or(0, |last| changes[last]) as usize;
        let runs = &self.snapshots.get(at)?.runs;
        let behind = runs.partition_point(|run| run.addr <= page);
        let run = *runs.get(behind.checked_sub(1)?)?;
        (page - run.addr < u64::from(run.len)).then_some((at, run))
    }

    /// Returns whether each of the snapshots `from..=until` covers a page: it was always mapped.
    fn was_covered(&self, page: u64, from: usize, until: usize) -> bool {
        self.coverage[self.coverage_of(from)..=self.coverage_of(until)]
            .iter()
            .all(|(_, regions)| region_at(regions, page).is_some())
    }

    fn run(&mut self, at: usize, run: Run) -> Result<Arc<[u8]>> {
        let is_it = |kept: &(usize, u64, Arc<[u8]>)| kept.0 == at && kept.1 == run.addr;
        if let Some(index) = self.kept.iter().position(is_it) {
            return Ok(Arc::clone(&self.kept[index].2));
        }
        let bytes: Arc<[u8]> = self.read(at, run)?.into();
        self.kept.truncate(KEPT_RUNS - 1);
        self.kept.push_front((at, run.addr, Arc::clone(&bytes)));
        Ok(bytes)
    }

    /// Reads a run from the file of the snapshot `at`; reopens the file if needed.
    fn read(&mut self, at: usize, run: Run) -> Result<Vec<u8>> {
        let path = &self.snapshots[at].path;
        let known = self.open.iter().position(|(number, _)| *number == at);
        let entry = match known.and_then(|index| self.open.remove(index)) {
            Some(entry) => entry,
            None => {
                let header = header_of(self.recording_id, at as u32);
                (at, FrameReader::open(path, &header)?)
            }
        };
        self.open.truncate(KEPT_FILES - 1);
        self.open.push_front(entry);
        let reader = &mut self.open[0].1;
        reader.seek(run.offset);
        let frame = whole(path, run.offset, reader.next_frame()?)?;
        let is_it = frame.header.kind == FrameKind::Pages && frame.header.arg == run.addr;
        let bytes = if is_it { unpack(frame.payload) } else { None };
        bytes
            .filter(|bytes| bytes.len() == run.len as usize)
            .ok_or_else(|| Error::corrupt(path, run.offset, "these are no pages"))
    }

    /// Reads every run of every snapshot. Returns how many bytes of memory they hold.
    ///
    /// # Errors
    /// The fault of the first damaged one, with its file and offset.
    pub fn check(&mut self) -> Result<u64> {
        let mut len = 0;
        for at in 0..self.snapshots.len() {
            for run in self.snapshots[at].runs.clone() {
                len += self.read(at, run)?.len() as u64;
            }
        }
        Ok(len)
    }
}

fn region_at(regions: &[Region], addr: u64) -> Option<&Region> {
    let behind = regions.partition_point(|region| region.addr <= addr);
    let region = regions.get(behind.checked_sub(1)?)?;
    (addr - region.addr < region.len).then_some(region)
}

impl Contents {
    /// Returns whether a writer could have written this.
    fn is_sound(&self) -> bool {
        let regions = self.regions.iter().map(|region| (region.addr, region.len));
        let runs = self.runs.iter().map(|run| (run.addr, u64::from(run.len)));
        let are_short = self.runs.iter().all(|run| run.len as usize <= MAX_RUN_LEN);
        are_short && are_pages_in_order(regions) && are_pages_in_order(runs)
    }
}

fn are_pages_in_order(mut ranges: impl Iterator<Item = (u64, u64)>) -> bool {
    let mut end = 0;
    ranges.all(|(addr, len)| {
        let is_sound = addr >= end
            && len > 0
            && addr.is_multiple_of(PAGE_LEN)
            && len.is_multiple_of(PAGE_LEN)
            && addr.checked_add(len).is_some();
        end = addr.saturating_add(len);
        is_sound
    })
}

/// Reads the index of a snapshot's file.
fn contents_of(path: &Path, recording_id: RecordingId, id: u32) -> Result<Contents> {
    let mut reader = FrameReader::open(path, &header_of(recording_id, id))?;
    let end_at = reader.file_len()?.saturating_sub(FRAME_HEADER_LEN as u64);
    reader.seek(end_at);
    let contents_at = match reader.next_frame()? {
        Ok(frame) if frame.header.kind == FrameKind::SegmentEnd => frame.header.arg,
        // Its writer has not finished.
        _ => {
            return Err(Error::Truncated {
                path: path.to_path_buf(),
                offset: end_at,
                what: "a snapshot ends with a frame of its own".into(),
            });
        }
    };
    reader.seek(contents_at);
    let frame = whole(path, contents_at, reader.next_frame()?)?;
    let contents: Option<Contents> = match frame.header.kind {
        FrameKind::Document => rmp_serde::from_slice(frame.payload).ok(),
        _ => None,
    };
    contents
        .filter(Contents::is_sound)
        .ok_or_else(|| Error::corrupt(path, contents_at, "this is no table of a snapshot's pages"))
}

fn whole<'a, E: std::fmt::Display>(
    path: &Path,
    offset: u64,
    frame: std::result::Result<RawFrame<'a>, E>,
) -> Result<RawFrame<'a>> {
    frame.map_err(|fault| Error::corrupt(path, offset, fault.to_string()))
}

/// Returns the pages of a frame's payload; `None`: it is malformed.
fn unpack(payload: &[u8]) -> Option<Vec<u8>> {
    let (prefix, bytes) = payload.split_first_chunk::<PREFIX_LEN>()?;
    let [a, b, c, d, codec @ ..] = *prefix;
    let len = u32::from_le_bytes([a, b, c, d]) as usize;
    if len > MAX_RUN_LEN {
        return None;
    }
    let codec = u32::from_le_bytes(codec);
    let bytes = match codec {
        _ if codec == Codec::Raw as u32 => bytes.to_vec(),
        _ if codec == Codec::Zstd as u32 => zstd::bulk::decompress(bytes, len).ok()?,
        _ => return None,
    };
    (bytes.len() == len).then_some(bytes)
}
