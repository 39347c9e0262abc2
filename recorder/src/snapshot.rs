//! Copies the program's writable memory while it is stopped: all of it once, later the changes. Constants that the
//! dynamic linker has filled with addresses are copied too: no file has them.
//!
//! A hash of each page detects changes, because not every kernel tracks written pages. Only the program's own memory is
//! copied: our mappings are left out, and return slots of traced calls are copied with the program's return address.
//! Memory shared with other processes is left out too, since they may change it meanwhile, and so are pages that cannot
//! be read. Reserved memory that was never touched is skipped without being queried: a sanitizer's shadow has terabytes
//! of it.

mod pagemap;

use std::{
    collections::HashMap,
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use agent::shared::SHADOWS;
use store::{
    control::{Snapshot, SnapshotReason},
    manifest::RecordingId,
    memory::{MAX_RUN_LEN, PAGE_LEN, Region, SnapshotWriter},
    storage::{Disk, Staged, Storage, StorageFile},
};
use xxhash_rust::xxh3::xxh3_128;

pub(crate) use self::pagemap::resident;
use self::pagemap::{HAS_PAGE, IS_OF_FILE};
use crate::process::Maps;
use crate::{
    clock,
    return_trampoline::{self, LeaveOffsets, ReturnTrampoline},
};

/// Above this size, snapshots bypass the page cache, with buffers of their own.
const LARGE: u64 = 64 << 20;
/// Larger mappings are not searched for constants that the linker has filled in.
const MOST_CONSTANTS: u64 = 64 << 20;
/// Number of pages per query.
const PAGEMAP_PAGES: usize = 4096;
/// Larger mappings are copied only if the kernel reports where in them pages are: querying each page takes too long.
const MOST_UNSCANNED: u64 = 64 << 30;
/// Programs that use no more memory than this are copied at every pause, in a few milliseconds.
const SMALL: u64 = 16 << 20;
/// Snapshots of larger programs may take at most one part in this many of the time.
const SHARE: u32 = 10;

/// The snapshots, shared by the recorder and the tracer.
pub(crate) type SharedSnapshots = Arc<Mutex<Snapshots>>;

/// Copies the changes; see [`Snapshots::take`].
pub(crate) fn take(snapshots: &Mutex<Snapshots>, reason: SnapshotReason) -> io::Result<Snapshot> {
    lock(snapshots).take(reason)
}

/// Copies everything, unless this was done before.
pub(crate) fn take_first(
    snapshots: &Mutex<Snapshots>,
    reason: SnapshotReason,
) -> Option<io::Result<Snapshot>> {
    let mut snapshots = lock(snapshots);
    (snapshots.next == 0).then(|| snapshots.take(reason))
}

/// Returns whether a snapshot now would take only a small share of the program's time.
pub(crate) fn is_due(snapshots: &SharedSnapshots) -> bool {
    lock(snapshots).is_due()
}

/// Copies the changes, unless this would take a large share of the program's time.
pub(crate) fn take_if_due(
    snapshots: &Mutex<Snapshots>,
    reason: SnapshotReason,
) -> Option<io::Result<Snapshot>> {
    let mut snapshots = lock(snapshots);
    snapshots.is_due().then(|| snapshots.take(reason))
}

fn lock(snapshots: &Mutex<Snapshots>) -> MutexGuard<'_, Snapshots> {
    snapshots.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The snapshots of one recording.
pub(crate) struct Snapshots {
    pid: i32,
    dir: PathBuf,
    recording_id: RecordingId,
    /// The library whose return addresses are in return slots.
    runtime: PathBuf,
    leave: LeaveOffsets,
    next: u32,
    /// Hashes of the known pages, by address.
    known: HashMap<u64, u128>,
    staged: Option<Staged>,
    ended: Instant,
    took: Duration,
}

/// A mapping to copy.
struct Copied {
    region: Region,
    /// Untouched pages hold zeroes and do not exist.
    anonymous: bool,
}

impl Snapshots {
    pub fn new(pid: i32, dir: &Path, recording_id: RecordingId, runtime: &Path) -> Self {
        Self {
            pid,
            dir: dir.to_path_buf(),
            recording_id,
            runtime: runtime.to_path_buf(),
            leave: LeaveOffsets::of(runtime),
            next: 0,
            known: HashMap::new(),
            staged: None,
            ended: Instant::now(),
            took: Duration::ZERO,
        }
    }

    /// Returns whether a snapshot now would make the program wait only for a small share of its time.
    pub fn is_due(&self) -> bool {
        resident(self.pid).is_ok_and(|bytes| bytes <= SMALL)
            || self.ended.elapsed() > self.took * SHARE
    }

    /// Copies the changes. No thread of the program may run meanwhile.
    ///
    /// # Errors
    /// If the process cannot be read, or the disk takes no more.
    pub fn take(&mut self, reason: SnapshotReason) -> io::Result<Snapshot> {
        let began = Instant::now();
        let ticks = clock::ticks();
        let (mappings, runtime_at) = self.mappings()?;
        let leave = self.leave.at(runtime_at);
        let (covered, changed) = match self.next == 0 && resident(self.pid)? > LARGE {
            true => {
                let staged = match &self.staged {
                    Some(staged) => staged.clone(),
                    None => Staged::start()?,
                };
                self.staged = Some(staged.clone());
                self.write(&staged, mappings, &leave)?
            }
            false => self.write(&Disk, mappings, &leave)?,
        };
        let id = self.next;
        self.next += 1;
        self.ended = Instant::now();
        self.took = self.ended - began;
        Ok(Snapshot {
            ticks,
            id,
            reason,
            covered,
            changed,
        })
    }

    /// Returns how many bytes are covered, and how many of them had changed.
    fn write<S: Storage>(
        &mut self,
        storage: &S,
        mappings: Vec<Copied>,
        leave: &ReturnTrampoline,
    ) -> io::Result<(u64, u64)>
    where
        S::File: StorageFile,
    {
        let writer = SnapshotWriter::create(storage, &self.dir, self.recording_id, self.next);
        let pages = File::open(format!("/proc/{}/pagemap", self.pid))?;
        let scans = pagemap::can_find_pages(&pages);
        let is_copied = |mapping: &Copied| scans || mapping.region.len <= MOST_UNSCANNED;
        let mappings: Vec<Copied> = mappings.into_iter().filter(is_copied).collect();
        let mut known_pages: Vec<u64> = self.known.keys().copied().collect();
        known_pages.sort_unstable();
        let mut copy = Copy {
            memory: File::open(format!("/proc/{}/mem", self.pid))?,
            pagemap: pages,
            scans,
            known_pages,
            leave,
            known: &mut self.known,
            writer: writer.map_err(io::Error::other)?,
            changed: 0,
            unreadable: Vec::new(),
            bytes: vec![0; MAX_RUN_LEN],
        };
        for mapping in &mappings {
            copy.mapping(mapping)?;
        }
        let Copy {
            writer,
            changed,
            unreadable,
            ..
        } = copy;
        let regions = mappings.into_iter().map(|mapping| mapping.region);
        let regions: Vec<Region> = regions
            .flat_map(|region| readable(region, &unreadable))
            .collect();
        let seen: Vec<Range<u64>> = regions
            .iter()
            .map(|region| region.addr..region.addr + region.len)
            .collect();
        let covered = regions.iter().map(|region| region.len).sum();
        writer.finish(regions).map_err(io::Error::other)?;
        // Memory mapped there later is new.
        self.known.retain(|page, _| {
            let behind = seen.partition_point(|range| range.start <= *page);
            behind > 0 && seen[behind - 1].contains(page)
        });
        Ok((covered, changed))
    }

    /// Returns the mappings to copy, lowest address first, and the start of the runtime's library.
    fn mappings(&self) -> io::Result<(Vec<Copied>, u64)> {
        let mut runtime_at = 0;
        let mut copied = Vec::new();
        for mapping in Maps::read(self.pid)?.mappings {
            let (range, access, path) = (mapping.range, mapping.access.as_str(), mapping.path);
            if Path::new(&path) == self.runtime {
                if runtime_at == 0 {
                    runtime_at = range.start;
                }
                continue;
            }
            let is_ours = SHADOWS
                .iter()
                .any(|shadow| range.start < shadow.base + shadow.bytes && shadow.base < range.end);
            let is_copied = match access {
                "r--p" if path.starts_with('/') => self.was_filled_in(&range)?,
                _ => access.starts_with("rw") && access.ends_with('p'),
            };
            if !is_copied || is_ours {
                continue;
            }
            let anonymous = !path.starts_with('/');
            copied.push(Copied {
                region: Region {
                    addr: range.start,
                    len: range.end - range.start,
                    zeroed: anonymous,
                    name: path,
                },
                anonymous,
            });
        }
        Ok((copied, runtime_at))
    }
}

impl Snapshots {
    /// Returns whether pages of a read-only file mapping differ from the file: the dynamic linker stored addresses in
    /// constants before it protected them (PT_GNU_RELRO).
    fn was_filled_in(&self, range: &Range<u64>) -> io::Result<bool> {
        let len = range.end - range.start;
        if len > MOST_CONSTANTS {
            return Ok(false);
        }
        let file = File::open(format!("/proc/{}/pagemap", self.pid))?;
        let entries = pagemap::entries(&file, range.start, (len / PAGE_LEN) as usize)?;
        let is_own = |entry: &u64| entry & HAS_PAGE != 0 && entry & IS_OF_FILE == 0;
        Ok(entries.iter().any(is_own))
    }
}

/// A snapshot being written.
struct Copy<'a, F: StorageFile> {
    memory: File,
    pagemap: File,
    /// The kernel can report where pages are.
    scans: bool,
    /// The addresses of previously known pages, lowest first.
    known_pages: Vec<u64>,
    leave: &'a ReturnTrampoline,
    known: &'a mut HashMap<u64, u128>,
    writer: SnapshotWriter<F>,
    /// Number of bytes that had changed.
    changed: u64,
    /// Pages that cannot be read, lowest address first.
    unreadable: Vec<Range<u64>>,
    bytes: Vec<u8>,
}

impl<F: StorageFile> Copy<'_, F> {
    fn mapping(&mut self, mapping: &Copied) -> io::Result<()> {
        let Region { addr, len, .. } = mapping.region;
        let mut page = addr;
        loop {
            if mapping.anonymous && self.scans {
                page = self.next_to_look_at(page..addr + len)?;
            }
            if page >= addr + len {
                return Ok(());
            }
            let count = (PAGEMAP_PAGES as u64).min((addr + len - page) / PAGE_LEN) as usize;
            let there = self.present(page, count)?;
            self.pages(page, &there, mapping.anonymous)?;
            page += count as u64 * PAGE_LEN;
        }
    }

    /// Returns the first page of a range that exists now or did before, or the range's end.
    fn next_to_look_at(&self, range: Range<u64>) -> io::Result<u64> {
        if range.is_empty() {
            return Ok(range.end);
        }
        let behind = self.known_pages.partition_point(|page| *page < range.start);
        let known = self.known_pages.get(behind).copied();
        let there = pagemap::first_page(&self.pagemap, range.clone())?;
        let first = known.into_iter().chain(there).min();
        Ok(first.unwrap_or(range.end).min(range.end))
    }

    /// Returns which of the pages exist.
    fn present(&self, page: u64, count: usize) -> io::Result<Vec<bool>> {
        let entries = pagemap::entries(&self.pagemap, page, count)?;
        Ok(entries.iter().map(|entry| entry & HAS_PAGE != 0).collect())
    }

    fn pages(&mut self, first: u64, there: &[bool], anonymous: bool) -> io::Result<()> {
        const STEP: usize = MAX_RUN_LEN / PAGE_LEN as usize;
        for (at, there) in there.chunks(STEP).enumerate() {
            let addr = first + (at * STEP) as u64 * PAGE_LEN;
            let len = there.len() * PAGE_LEN as usize;
            let is_empty = anonymous && !there.contains(&true);
            if is_empty && !self.knows_any(addr, there.len()) {
                continue;
            }
            let mut bytes = std::mem::take(&mut self.bytes);
            let unreadable = self.read(addr, &mut bytes[..len], there, anonymous);
            self.unhook(addr, &mut bytes[..len]);
            let kept = self.keep(addr, &bytes[..len], unreadable, anonymous);
            self.bytes = bytes;
            kept?;
        }
        Ok(())
    }

    fn knows_any(&self, addr: u64, pages: usize) -> bool {
        (0..pages as u64).any(|page| self.known.contains_key(&(addr + page * PAGE_LEN)))
    }

    /// Reads the pages that exist; others become zeroes. Returns a mask of pages that cannot be read (those of a
    /// device, or beyond a file's end), the lowest bit for the first.
    fn read(&self, addr: u64, bytes: &mut [u8], there: &[bool], anonymous: bool) -> u64 {
        bytes.fill(0);
        if !anonymous || !there.contains(&false) {
            if self.memory.read_exact_at(bytes, addr).is_ok() {
                return 0;
            }
            bytes.fill(0);
        }
        let pages = bytes.chunks_mut(PAGE_LEN as usize).zip(there);
        let mut unreadable = 0;
        for (number, (page, there)) in pages.enumerate() {
            let at = addr + number as u64 * PAGE_LEN;
            if (*there || !anonymous) && self.memory.read_exact_at(page, at).is_err() {
                unreadable |= 1 << number;
            }
        }
        unreadable
    }

    /// Replaces our return addresses by the program's.
    fn unhook(&self, addr: u64, bytes: &mut [u8]) {
        return_trampoline::unhook(&self.memory, self.leave, addr, bytes);
    }

    /// Writes the changed pages, consecutive ones as one run.
    fn keep(
        &mut self,
        addr: u64,
        bytes: &[u8],
        unreadable: u64,
        anonymous: bool,
    ) -> io::Result<()> {
        let mut run = 0..0;
        for (number, page) in bytes.chunks(PAGE_LEN as usize).enumerate() {
            let at = addr + number as u64 * PAGE_LEN;
            let is_there = unreadable >> number & 1 == 0;
            if !is_there {
                match self.unreadable.last_mut() {
                    Some(last) if last.end == at => last.end += PAGE_LEN,
                    _ => self.unreadable.push(at..at + PAGE_LEN),
                }
            }
            if is_there && self.has_changed(at, page, anonymous) {
                let start = if run.is_empty() { number } else { run.start };
                run = start..number + 1;
            } else {
                self.append(addr, bytes, run)?;
                run = 0..0;
            }
        }
        self.append(addr, bytes, run)
    }

    fn has_changed(&mut self, at: u64, page: &[u8], anonymous: bool) -> bool {
        let hash = xxh3_128(page);
        match self.known.get(&at) {
            Some(known) if *known == hash => false,
            // Readers take a missing page for zeroes.
            None if anonymous && page.iter().all(|byte| *byte == 0) => false,
            _ => {
                self.known.insert(at, hash);
                true
            }
        }
    }

    fn append(&mut self, addr: u64, bytes: &[u8], run: Range<usize>) -> io::Result<()> {
        if run.is_empty() {
            return Ok(());
        }
        let page = PAGE_LEN as usize;
        let at = addr + run.start as u64 * PAGE_LEN;
        let pages = &bytes[run.start * page..run.end * page];
        self.changed += pages.len() as u64;
        self.writer.append(at, pages).map_err(io::Error::other)
    }
}

/// Returns the parts of a region without the pages that cannot be read.
fn readable(region: Region, unreadable: &[Range<u64>]) -> Vec<Region> {
    let end = region.addr + region.len;
    let first = unreadable.partition_point(|hole| hole.end <= region.addr);
    let holes = unreadable[first..]
        .iter()
        .take_while(|hole| hole.start < end);
    let mut left = Vec::new();
    let mut from = region.addr;
    for hole in holes {
        left.push(from..hole.start);
        from = hole.end;
    }
    left.push(from..end);
    left.into_iter()
        .filter(|range| range.start < range.end)
        .map(|range| Region {
            addr: range.start,
            len: range.end - range.start,
            ..region.clone()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_split_around_what_cannot_be_read() {
        let region = Region {
            addr: 0x3000,
            len: 0x5000,
            zeroed: false,
            name: "/f".to_owned(),
        };
        let left = |unreadable: &[Range<u64>]| -> Vec<(u64, u64)> {
            let left = readable(region.clone(), unreadable);
            left.iter().map(|part| (part.addr, part.len)).collect()
        };
        assert_eq!(left(&[]), [(0x3000, 0x5000)]);
        assert_eq!(left(&[0x1000..0x3000, 0x8000..0x9000]), [(0x3000, 0x5000)]);
        assert_eq!(left(&[0x3000..0x8000]), []);
        assert_eq!(left(&[0x3000..0x4000]), [(0x4000, 0x4000)]);
        assert_eq!(left(&[0x7000..0x8000]), [(0x3000, 0x4000)]);
        let parts = left(&[0x1000..0x2000, 0x4000..0x5000, 0x6000..0x7000]);
        assert_eq!(
            parts,
            [(0x3000, 0x1000), (0x5000, 0x1000), (0x7000, 0x1000)]
        );
    }
}
