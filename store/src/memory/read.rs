//! Reads what memory held as of a snapshot, a page at a time, with bounded memory; trusts no byte of a file.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Codec, Contents, MAX_RUN_LEN, PAGE_LEN, PREFIX_LEN, Region, Run, header_of, path_of};
use crate::error::{Error, Result};
use crate::format::{FRAME_HEADER_LEN, FrameKind};
use crate::log::frame_reader::{FrameReader, RawFrame};
use crate::recording::{Recording, RecordingState};

/// Runs that are kept unpacked: 4 MiB.
const KEPT_RUNS: usize = 64;

/// All snapshots of a recording.
pub struct Memory {
    /// In order: snapshot `n` is the `n`th.
    snapshots: Vec<Snapshot>,
    /// The runs that were read last, by snapshot and address; the latest first.
    kept: VecDeque<(usize, u64, Arc<[u8]>)>,
}

/// One of them.
struct Snapshot {
    path: PathBuf,
    reader: FrameReader,
    contents: Contents,
}

/// What a page held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// These bytes, as many as a page has.
    Bytes(Vec<u8>),
    /// Zeroes: nobody had written it.
    Zeroes,
    /// The snapshot does not cover it.
    Uncovered,
}

impl Memory {
    /// Opens the snapshots of a recording. One that is being written, or was when the recorder died, is left out.
    ///
    /// # Errors
    /// [`Error::Io`], or what is wrong with a file, with its offset.
    pub fn open(recording: &Recording) -> Result<Self> {
        let mut snapshots = Vec::new();
        for id in 0.. {
            let path = path_of(recording.dir(), id);
            if !path.exists() {
                break;
            }
            match Snapshot::open(path, recording, id) {
                Ok(snapshot) => snapshots.push(snapshot),
                Err(Error::Truncated { .. }) if recording.state() != RecordingState::Closed => {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            snapshots,
            kept: VecDeque::new(),
        })
    }

    /// Returns how many snapshots there are; their ids count from 0.
    pub fn len(&self) -> usize {
        self.snapshots.len()
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

    /// Returns what snapshot `id` covers, lowest address first; nothing where there is no such snapshot.
    pub fn regions(&self, id: u32) -> &[Region] {
        let snapshot = self.snapshots.get(id as usize);
        snapshot.map_or(&[], |snapshot| &snapshot.contents.regions)
    }

    /// Returns what the page with the byte at `addr` held when snapshot `id` was taken.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Corrupt`], naming file and offset.
    pub fn page(&mut self, id: u32, addr: u64) -> Result<Seen> {
        let page = addr / PAGE_LEN * PAGE_LEN;
        // From the newest back, as long as the page was there all the time.
        for at in (0..self.snapshots.len().min(id as usize + 1)).rev() {
            let contents = &self.snapshots[at].contents;
            if contents.region(page).is_none() {
                break;
            }
            if let Some(run) = contents.run(page) {
                let bytes = self.run(at, run)?;
                let from = (page - run.addr) as usize;
                return Ok(Seen::Bytes(bytes[from..from + PAGE_LEN as usize].to_vec()));
            }
        }
        let newest = self.snapshots.get(id as usize);
        let region = newest.and_then(|snapshot| snapshot.contents.region(page));
        Ok(match region {
            Some(region) if region.zeroed => Seen::Zeroes,
            _ => Seen::Uncovered,
        })
    }

    fn run(&mut self, at: usize, run: Run) -> Result<Arc<[u8]>> {
        let is_it = |kept: &(usize, u64, Arc<[u8]>)| kept.0 == at && kept.1 == run.addr;
        if let Some(index) = self.kept.iter().position(is_it) {
            return Ok(Arc::clone(&self.kept[index].2));
        }
        let bytes: Arc<[u8]> = self.snapshots[at].read(run)?.into();
        self.kept.truncate(KEPT_RUNS - 1);
        self.kept.push_front((at, run.addr, Arc::clone(&bytes)));
        Ok(bytes)
    }

    /// Reads every run of every snapshot. Returns how many bytes of memory they hold.
    ///
    /// # Errors
    /// What is wrong with the first that is damaged, with its file and offset.
    pub fn check(&mut self) -> Result<u64> {
        let mut len = 0;
        for snapshot in &mut self.snapshots {
            for run in snapshot.contents.runs.clone() {
                len += snapshot.read(run)?.len() as u64;
            }
        }
        Ok(len)
    }
}

impl Contents {
    fn region(&self, addr: u64) -> Option<&Region> {
        let behind = self.regions.partition_point(|region| region.addr <= addr);
        let region = self.regions.get(behind.checked_sub(1)?)?;
        (addr - region.addr < region.len).then_some(region)
    }

    fn run(&self, addr: u64) -> Option<Run> {
        let behind = self.runs.partition_point(|run| run.addr <= addr);
        let run = *self.runs.get(behind.checked_sub(1)?)?;
        (addr - run.addr < u64::from(run.len)).then_some(run)
    }

    /// Tells whether a writer could have written this.
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

impl Snapshot {
    fn open(path: PathBuf, recording: &Recording, id: u32) -> Result<Self> {
        let header = header_of(recording.manifest().recording_id, id);
        let mut reader = FrameReader::open(&path, &header)?;
        let end_at = reader.file_len()?.saturating_sub(FRAME_HEADER_LEN as u64);
        reader.seek(end_at);
        let contents_at = match reader.next_frame()? {
            Ok(frame) if frame.header.kind == FrameKind::SegmentEnd => frame.header.arg,
            // Its writer has not come to the end.
            _ => {
                return Err(Error::Truncated {
                    path,
                    offset: end_at,
                    what: "a snapshot ends with a frame of its own".into(),
                });
            }
        };
        reader.seek(contents_at);
        let frame = whole(&path, contents_at, reader.next_frame()?)?;
        let contents: Option<Contents> = match frame.header.kind {
            FrameKind::Document => rmp_serde::from_slice(frame.payload).ok(),
            _ => None,
        };
        let contents = contents.filter(Contents::is_sound).ok_or_else(|| {
            Error::corrupt(&path, contents_at, "this is no table of a snapshot's pages")
        })?;
        Ok(Self {
            path,
            reader,
            contents,
        })
    }

    fn read(&mut self, run: Run) -> Result<Vec<u8>> {
        self.reader.seek(run.offset);
        let frame = whole(&self.path, run.offset, self.reader.next_frame()?)?;
        let is_it = frame.header.kind == FrameKind::Pages && frame.header.arg == run.addr;
        let bytes = if is_it { unpack(frame.payload) } else { None };
        bytes
            .filter(|bytes| bytes.len() == run.len as usize)
            .ok_or_else(|| Error::corrupt(&self.path, run.offset, "these are no pages"))
    }
}

fn whole<'a, E: std::fmt::Display>(
    path: &Path,
    offset: u64,
    frame: std::result::Result<RawFrame<'a>, E>,
) -> Result<RawFrame<'a>> {
    frame.map_err(|fault| Error::corrupt(path, offset, fault.to_string()))
}

/// Returns the pages of a frame's payload; `None`: it is none.
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
