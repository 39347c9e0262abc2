//! Sums up blocks: what was left at the end, by the place that allocated it, and the peak.

use std::collections::HashMap;

use serde::Serialize;

use super::Memory;
use super::blocks::{Block, End, Moment};
use crate::callers::{Frame, Frames};
use crate::error::Result;
use crate::report::Source;
use replay::known_as;

/// A number of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Requested bytes.
    pub bytes: u64,
    /// How many blocks.
    pub blocks: u64,
}

impl Held {
    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.blocks += 1;
    }
}

/// The moment at which the heap had the most bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Peak {
    /// What there was.
    pub held: Held,
    /// The event at which this began.
    pub seq: u64,
    /// The time of that event, in ns.
    pub ts_ns: i64,
}

/// A place in the program that allocated blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AllocationSite {
    /// The function that returned them.
    pub function: String,
    /// They are mapped pages, not blocks of the heap.
    pub is_pages: bool,
    /// Who called it: the place of the call first, then the recorded calls around it.
    pub frames: Vec<Frame>,
    /// The blocks left at the end.
    pub live: Held,
    /// All that was made.
    pub made: Held,
}

/// A block that was freed, and freed again before a recorded call allocated its address once more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FreedTwice {
    /// Its address.
    pub address: String,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The event of its allocation.
    pub made_seq: Option<u64>,
    /// The event of the call that freed it, and the frames around that.
    pub freed_seq: u64,
    /// The frames around that call.
    pub freed_in: Vec<Frame>,
    /// The event of the call that freed it again.
    pub again_seq: u64,
    /// The frames around that call.
    pub again_in: Vec<Frame>,
}

/// What a program did with memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemoryReport {
    /// A call of an allocation function was recorded.
    pub has_makers: bool,
    /// The heap at the end.
    pub live: Held,
    /// Mapped pages at the end.
    pub live_pages: Held,
    /// All allocated heap blocks.
    pub made: Held,
    /// Those that were freed.
    pub freed: Held,
    /// Those with an unknown end: their addresses were allocated again, and no recorded call had freed them.
    pub lost: Held,
    /// When the heap was largest.
    pub peak: Option<Peak>,
    /// Freed blocks that were allocated before the recording, or by an unrecorded function.
    pub freed_unknown_blocks: u64,
    /// Blocks that were freed again.
    pub freed_twice: Vec<FreedTwice>,
    /// Blocks of posix_memalign with unknown addresses.
    pub unknown_blocks: u64,
    /// Who allocated the blocks, those with the most left first.
    pub sites: Vec<AllocationSite>,
}

/// Sums up the blocks.
///
/// # Errors
/// The recording cannot be read.
pub fn report(memory: &Memory, source: &Source) -> Result<MemoryReport> {
    let mut report = MemoryReport {
        has_makers: memory.has_makers,
        unknown_blocks: memory.unknown_blocks,
        peak: peak(&memory.blocks),
        ..MemoryReport::default()
    };
    let mut by_node: HashMap<(u32, u32, bool), (Held, Held)> = HashMap::new();
    let mut orphans = Vec::new();
    for block in &memory.blocks {
        let (Some(size), Some(made)) = (block.size, block.made) else {
            if block.freed.is_some() && !block.is_pages {
                orphans.push(block);
            }
            continue;
        };
        let (all, live) = by_node
            .entry((made.node, made.function, block.is_pages))
            .or_default();
        all.add(size);
        if block.end == End::Live {
            live.add(block.live_bytes);
        }
        match (block.is_pages, block.end) {
            (true, End::Live) => report.live_pages.add(block.live_bytes),
            (true, _) => {}
            (false, end) => {
                report.made.add(size);
                match end {
                    End::Live => report.live.add(size),
                    End::Freed => report.freed.add(size),
                    End::Lost(_) => report.lost.add(size),
                }
            }
        }
    }
    let mut frames = Frames::new(source.timeline()?, &memory.tree);
    orphans.retain(|orphan| {
        let freed = orphan.freed.map(|freed| frames.of(freed.node));
        !freed.is_some_and(|frames| is_of_the_allocator(&frames))
    });
    report.freed_twice = freed_twice(&orphans, memory, source)?;
    report.freed_unknown_blocks = (orphans.len() - report.freed_twice.len()) as u64;
    let tried: Vec<&Block> = memory.tried.iter().collect();
    let tried = freed_twice(&tried, memory, source)?;
    report.freed_twice.extend(tried);
    report.sites = sites(by_node, memory, source)?;
    Ok(report)
}

/// Functions of glibc that hand blocks which the program has freed from a thread's cache back to the heap, by the same function:
/// `tcache_thread_shutdown` in malloc.c, which is inlined into the first one.
const OF_THE_ALLOCATOR: [&str; 3] = [
    "__malloc_arena_thread_freeres",
    "tcache_thread_shutdown",
    "__libc_thread_freeres",
];

/// Returns whether the allocator itself has freed a block; it did so where nobody is known to have called, too: at the end of a
/// thread, in a C library without symbols.
fn is_of_the_allocator(frames: &[Frame]) -> bool {
    let first = frames.first();
    first.is_none_or(|frame| OF_THE_ALLOCATOR.contains(&frame.function.as_str()))
}

/// Finds the frees without an allocation that follow another free of the same address.
fn freed_twice(orphans: &[&Block], memory: &Memory, source: &Source) -> Result<Vec<FreedTwice>> {
    let mut of_address: HashMap<u64, Vec<&Block>> = HashMap::new();
    for orphan in orphans {
        of_address.entry(orphan.address).or_default();
    }
    for block in &memory.blocks {
        if let Some(blocks) = of_address.get_mut(&block.address) {
            blocks.push(block);
        }
    }
    let mut frames = Frames::new(source.timeline()?, &memory.tree);
    let mut found = Vec::new();
    for orphan in orphans {
        let Some(again) = orphan.freed else { continue };
        let began = |block: &&&Block| block.made.or(block.freed).map(|moment| moment.at);
        let earlier = of_address[&orphan.address].iter();
        let before = earlier
            .filter(|block| began(block).is_some_and(|at| at < again.at))
            .max_by_key(began);
        let freed = before.and_then(|block| block.freed);
        if let (Some(block), Some(freed)) = (before, freed.filter(|freed| freed.at < again.at)) {
            found.push(FreedTwice {
                address: format!("{:#x}", block.address),
                size: block.size,
                made_seq: block.made.map(|made| made.seq),
                freed_seq: freed.seq,
                freed_in: frames.of(freed.node),
                again_seq: again.seq,
                again_in: frames.of(again.node),
            });
        }
    }
    Ok(found)
}

/// Paths that differ in nothing that is reported are one place.
fn sites(
    by_node: HashMap<(u32, u32, bool), (Held, Held)>,
    memory: &Memory,
    source: &Source,
) -> Result<Vec<AllocationSite>> {
    let timeline = source.timeline()?;
    let mut frames = Frames::new(timeline, &memory.tree);
    let mut places: HashMap<(String, bool, Vec<Frame>), (Held, Held)> = HashMap::new();
    for ((node, function, is_pages), (made, live)) in by_node {
        let key = (source.known_name(function), is_pages, frames.of(node));
        let sum = places.entry(key).or_default();
        for (sum, one) in [(&mut sum.0, made), (&mut sum.1, live)] {
            sum.bytes += one.bytes;
            sum.blocks += one.blocks;
        }
    }
    let site = |((function, is_pages, frames), (made, live))| AllocationSite {
        function,
        is_pages,
        frames,
        live,
        made,
    };
    let mut sites: Vec<AllocationSite> = places.into_iter().map(site).collect();
    let text = |site: &AllocationSite| site.frames.iter().map(Frame::text).collect::<Vec<_>>();
    sites.sort_by_cached_key(|site| {
        let rest = |bytes: u64| u64::MAX - bytes;
        let held = (rest(site.live.bytes), rest(site.made.bytes));
        (site.is_pages, held, text(site), site.function.clone())
    });
    Ok(sites)
}

impl Source {
    /// Returns the name under which an allocation function is shown.
    pub(crate) fn known_name(&self, id: u32) -> String {
        known_as(&self.function_name(id)).to_owned()
    }
}

/// Finds when the heap had the most bytes.
fn peak(blocks: &[Block]) -> Option<Peak> {
    let mut changes: Vec<(u64, bool, u64, i64)> = Vec::new();
    for block in blocks.iter().filter(|block| !block.is_pages) {
        let (Some(size), Some(Moment { at, ts_ns, .. })) = (block.size, block.made) else {
            continue;
        };
        changes.push((at, true, size, ts_ns));
        let gone = match (block.freed, block.end) {
            (Some(freed), _) => Some(freed.at),
            (None, End::Lost(at)) => Some(at),
            (None, _) => None,
        };
        changes.extend(gone.map(|at| (at, false, size, 0)));
    }
    changes.sort_unstable();
    let mut held = Held::default();
    let mut peak: Option<Peak> = None;
    for (seq, is_made, size, ts_ns) in changes {
        if !is_made {
            held.bytes -= size;
            held.blocks -= 1;
            continue;
        }
        held.add(size);
        if peak.is_none_or(|peak| held.bytes > peak.held.bytes) {
            peak = Some(Peak { held, seq, ts_ns });
        }
    }
    peak
}
