//! What a recording knows of the program's memory when the program goes on unrecorded, and what has changed when it is recorded again.
//!
//! Pages are told apart by their hashes: those that the program has written to (they belong to no file any more), and all
//! of shared mappings. Others are what their files hold.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use super::image::{self, content};
use crate::error::{Context, Result};
use crate::log::{Bytes, MappedFile, Space, Span};
use crate::maps::{self, Mapping};
use crate::tracee::Tracee;

const PAGE: u64 = 4096;
/// Pages that are read at once.
const AT_ONCE: u64 = 64;
/// Entries of /proc/PID/pagemap that are read at once.
const ENTRIES: u64 = 8192;

/// What /proc/PID/maps calls the vDSO.
const VDSO: &str = "[vdso]";

/// A mapping of the program, with what lies behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Area {
    span: Span,
    /// Others may write to it, or provide it: all of it is looked at.
    is_shared: bool,
    /// Device, inode and offset of a file.
    file: Option<(String, u64, u64)>,
    path: Option<String>,
}

impl Area {
    fn of(mapping: Mapping) -> Option<Area> {
        let span = image::span(&mapping)?;
        let is_shared = mapping.access.ends_with('s') || mapping.path == VDSO;
        let path = mapping.is_of_a_file().then_some(mapping.path);
        let (device, inode) = mapping.file;
        let has_file = inode != 0;
        Some(Area {
            span,
            is_shared,
            file: has_file.then_some((device, inode, mapping.offset)),
            path,
        })
    }

    /// Whether an advice that drops pages (madvise(2)) changes what is there. Elsewhere it is refused, or the same comes back.
    fn is_changed_by(&self, advice: i32) -> bool {
        match advice {
            libc::MADV_FREE => self.is_anonymous(),
            libc::MADV_REMOVE => self.is_shared,
            _ => !self.is_shared,
        }
    }

    /// Whether it is private, and no file lies behind it.
    fn is_anonymous(&self) -> bool {
        let is_zero = self.path.as_deref() == Some("/dev/zero");
        !self.is_shared && (self.file.is_none() || is_zero)
    }

    /// Whether what both have at an address is the same.
    fn continues(&self, other: &Area) -> bool {
        self.is_shared == other.is_shared
            && match (&self.file, &other.file) {
                (None, None) => true,
                (Some((device, inode, offset)), Some((device_2, inode_2, offset_2))) => {
                    let distance = self.span.start.wrapping_sub(other.span.start);
                    (device, inode) == (device_2, inode_2)
                        && offset.wrapping_sub(*offset_2) == distance
                }
                _ => false,
            }
    }
}

/// The program's memory at a moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    areas: Vec<Area>,
    /// By their numbers.
    pages: FxHashMap<u64, u128>,
}

/// What has changed since another moment.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) spaces: Vec<Space>,
    pub(super) writes: Vec<Bytes>,
    pub(super) files: Vec<MappedFile>,
}

impl Known {
    /// The mappings of a program, all of whose threads are stopped, without what is ours.
    pub(super) fn of(process: &Tracee, is_ours: &dyn Fn(u64) -> bool) -> Result<Known> {
        let maps = maps::read(process.shown).context("read the program's mappings")?;
        let areas = maps.into_iter().filter_map(Area::of);
        let areas: Vec<Area> = areas.filter(|area| !is_ours(area.span.start)).collect();
        Ok(Known {
            areas,
            pages: FxHashMap::default(),
        })
    }

    /// Looks at the pages, too.
    pub(super) fn look(&mut self, process: &Tracee) -> Result<()> {
        let map = Pagemap::open(process.shown)?;
        let mut pages = FxHashMap::default();
        for area in &self.areas {
            let is_wanted: &dyn Fn(u64) -> bool = match area.is_shared {
                true => &|_| true,
                false => &is_private,
            };
            for (first, count) in map.runs(area.span, is_wanted) {
                hash(process, first, count, &mut pages);
            }
        }
        self.pages = pages;
        Ok(())
    }

    /// Where the vDSO lies. It is provided, but belongs to no file.
    pub(super) fn vdso(pid: i32) -> Option<Span> {
        let maps = maps::read(pid).ok()?;
        let vdso = maps.iter().find(|mapping| mapping.path == VDSO);
        vdso.and_then(image::span)
    }

    /// The mappings, but those that the kernel provides.
    pub(super) fn spans(&self) -> Vec<Span> {
        self.areas.iter().map(|area| area.span).collect()
    }

    /// Whether any of it is shared memory that can be written.
    pub(super) fn has_shared(&self) -> bool {
        let can_write = |area: &Area| area.span.protection & libc::PROT_WRITE as u32 != 0;
        self.areas
            .iter()
            .any(|area| area.is_shared && can_write(area))
    }

    /// The files among them.
    pub(super) fn files(&self) -> Vec<MappedFile> {
        let areas = self.areas.iter();
        areas.filter_map(|area| mapped(area, area.span)).collect()
    }

    /// What has become of it.
    pub(super) fn changes(&self, process: &Tracee, now: &Known) -> Changes {
        let mut changes = Changes::default();
        for old in &self.areas {
            let rest = without(old.span, &now.areas, &|_| true);
            changes.spaces.extend(rest.into_iter().map(Space::Unmap));
        }
        let mut fresh = Vec::new();
        for area in &now.areas {
            let rest = without(area.span, &self.areas, &|old| area.continues(old));
            for span in rest {
                changes.spaces.push(Space::Map(span));
                changes.writes.extend(filled(process, area, span));
                changes.files.extend(mapped(area, span));
                fresh.push(span);
            }
            let is_same = |old: &Area| old.span.protection == area.span.protection;
            for span in without(area.span, &self.areas, &is_same) {
                changes.spaces.push(Space::Protect(span));
            }
        }
        let is_fresh = |page: u64| fresh.iter().any(|span| has(span, page * PAGE));
        let is_there = |page: u64| now.areas.iter().any(|area| has(&area.span, page * PAGE));
        let new = now.pages.iter();
        let new = new.filter(|(page, hash)| self.pages.get(*page) != Some(*hash));
        let gone = self
            .pages
            .keys()
            .filter(|page| !now.pages.contains_key(page));
        let gone = gone.filter(|page| is_there(**page));
        let mut pages: Vec<u64> = new.map(|(page, _)| *page).chain(gone.copied()).collect();
        pages.retain(|page| !is_fresh(*page));
        pages.sort_unstable();
        changes.rewrite(process, &pages);
        changes
    }
}

impl Changes {
    /// Adds pages that are others now.
    fn rewrite(&mut self, process: &Tracee, pages: &[u64]) {
        for run in pages.chunk_by(|first, second| first + 1 == *second) {
            let (start, end) = (run[0] * PAGE, (run[run.len() - 1] + 1) * PAGE);
            let written = content(process, start, end);
            let bytes: usize = written.iter().map(|part| part.bytes.len()).sum();
            if (bytes as u64) < end - start {
                let protection = 0;
                let span = Span {
                    start,
                    end,
                    protection,
                };
                self.spaces.push(Space::Discard(span));
            }
            self.writes.extend(written);
        }
    }
}

fn has(span: &Span, at: u64) -> bool {
    (span.start..span.end).contains(&at)
}

/// A page that the program has, and that belongs to no file: bits 63 and 62 (it is there, in memory or not), and not 61 (see
/// proc_pid_pagemap(5)).
fn is_private(entry: u64) -> bool {
    entry >> 62 != 0 && entry & (1 << 61) == 0
}

/// What a new mapping holds. Memory without a file is zero where no page is.
fn filled(process: &Tracee, area: &Area, span: Span) -> Vec<Bytes> {
    let map = Pagemap::open(process.shown);
    match map {
        Ok(map) if area.file.is_none() && !area.is_shared => map
            .runs(span, &is_private)
            .into_iter()
            .flat_map(|(first, count)| content(process, first * PAGE, (first + count) * PAGE))
            .collect(),
        _ => content(process, span.start, span.end),
    }
}

/// What a stretch of memory holds. Where no file is and no page, that is nothing, and it is not looked at.
pub(super) fn held(process: &Tracee, span: Span) -> Result<Vec<Bytes>> {
    let known = Known::of(process, &|_| false)?;
    let parts = known.areas.iter().filter_map(|area| {
        let part = area.span.common(span)?;
        Some(filled(process, area, part))
    });
    Ok(parts.flatten().collect())
}

/// What an advice that drops pages has changed in a stretch of memory, lowest first, and what is there now. `is_refused`: the kernel has
/// come to a mapping that it refuses, at the latest to the last one.
pub(super) fn dropped(
    process: &Tracee,
    span: Span,
    advice: i32,
    is_refused: bool,
) -> Result<Vec<(Span, Vec<Bytes>)>> {
    let known = Known::of(process, &|_| false)?;
    let areas = known.areas.iter();
    let parts = areas.filter_map(|area| Some((area, area.span.common(span)?)));
    let mut parts: Vec<(&Area, Span)> = parts.collect();
    if is_refused {
        parts.pop();
    }
    parts.retain(|(area, _)| area.is_changed_by(advice));
    let filled = |(area, part)| (part, filled(process, area, part));
    Ok(parts.into_iter().map(filled).collect())
}

/// Whether others may write to the memory at an address.
pub(super) fn is_shared(process: &Tracee, at: u64) -> Result<bool> {
    let known = Known::of(process, &|_| false)?;
    let mut areas = known.areas.iter();
    Ok(areas.any(|area| area.is_shared && has(&area.span, at)))
}

fn mapped(area: &Area, span: Span) -> Option<MappedFile> {
    let (_, _, offset) = area.file.as_ref()?;
    Some(MappedFile {
        start: span.start,
        end: span.end,
        offset: offset + (span.start - area.span.start),
        protection: span.protection,
        path: area.path.clone()?,
    })
}

/// The parts of a span that none of these areas has.
fn without(span: Span, areas: &[Area], counts: &dyn Fn(&Area) -> bool) -> Vec<Span> {
    let mut rest = Vec::new();
    let mut at = span.start;
    for area in areas.iter().filter(|area| counts(area)) {
        if area.span.end <= at || area.span.start >= span.end {
            continue;
        }
        if area.span.start > at {
            rest.push(Span {
                start: at,
                end: area.span.start,
                ..span
            });
        }
        at = area.span.end;
    }
    if at < span.end {
        rest.push(Span { start: at, ..span });
    }
    rest
}

fn hash(process: &Tracee, first: u64, count: u64, into: &mut FxHashMap<u64, u128>) {
    let mut buffer = vec![0; (AT_ONCE * PAGE) as usize];
    let mut page = first;
    while page < first + count {
        let wanted = AT_ONCE.min(first + count - page);
        let read = process.read(page * PAGE, &mut buffer[..(wanted * PAGE) as usize]);
        for (bytes, number) in buffer[..read].chunks_exact(PAGE as usize).zip(page..) {
            into.insert(number, xxh3_128(bytes));
        }
        // A page that cannot be read is skipped.
        page += (read as u64 / PAGE).max(1);
    }
}

/// The contents of all mappings.
pub(super) fn all(process: &Tracee, known: &Known) -> Vec<Bytes> {
    let areas = known.areas.iter();
    areas
        .flat_map(|area| filled(process, area, area.span))
        .collect()
}

/// Where anything has changed: starts and ends.
pub(super) fn touched<'a>(
    spaces: &'a [Space],
    writes: &'a [Bytes],
) -> impl Iterator<Item = (u64, u64)> {
    let spaces = spaces.iter().map(|space| match space {
        Space::Map(span) | Space::Unmap(span) | Space::Protect(span) | Space::Discard(span) => {
            (span.start, span.end)
        }
        Space::Move { from, .. } => (from.start, from.end),
    });
    let writes = writes.iter();
    spaces.chain(writes.map(|part| (part.at, part.at + part.bytes.len() as u64)))
}

/// Which pages there are.
struct Pagemap(File);

impl Pagemap {
    fn open(pid: i32) -> Result<Pagemap> {
        File::open(format!("/proc/{pid}/pagemap"))
            .context("read which pages the program has")
            .map(Pagemap)
    }

    /// Runs of pages whose entries are wanted: the first, and how many.
    fn runs(&self, span: Span, is_wanted: &dyn Fn(u64) -> bool) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let (mut at, end) = (span.start / PAGE, span.end / PAGE);
        let mut buffer = vec![0; (ENTRIES * 8) as usize];
        while at < end {
            let bytes = (ENTRIES.min(end - at) * 8) as usize;
            let Ok(read @ 8..) = self.0.read_at(&mut buffer[..bytes], at * 8) else {
                break;
            };
            for (entry, page) in buffer[..read].chunks_exact(8).zip(at..) {
                let entry = entry.try_into().map_or(0, u64::from_le_bytes);
                if !is_wanted(entry) {
                    continue;
                }
                match runs.last_mut() {
                    Some((first, count)) if *first + *count == page => *count += 1,
                    _ => runs.push((page, 1)),
                }
            }
            at += read as u64 / 8;
        }
        runs
    }
}
