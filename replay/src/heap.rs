//! Heap blocks, as the recorded calls of allocation functions returned them.
//!
//! A value seen at an address before a block was allocated there belonged to something else; it is not an older value
//! of the block. Recordings that lack some of these calls, such as those with the default filters, do not know all
//! blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use store::control::FunctionDef;

use crate::allocation::{MAP_FAILED, Role, library_name, role};
use crate::calls::Calls;
use crate::error::Result;

/// The reason given for stale bytes of the heap if no such call identifies their block.
pub const UNKNOWN_BLOCK: &str = "no recorded call of malloc returned that block: an earlier object may have been at that address; -f 'module:libc.so*' records them";

/// The functions that return every block, directly or for other functions. Unless all of them are recorded, a block may
/// not be the only one at its address.
const SOURCES: [&str; 3] = ["malloc", "calloc", "realloc"];

/// The function that posix_memalign(3) of glibc calls; it returns the block.
const ALIGNED: &str = "_mid_memalign";

/// Most blocks that are kept: with more, the heap is unknown.
const MOST_BLOCKS: usize = 1 << 22;
/// Most blocks that are examined for one answer.
const MOST_LOOKED_AT: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Block {
    addr: u64,
    end: u64,
    /// The event that allocated it.
    given: u64,
}

/// The allocated blocks.
#[derive(Debug)]
pub(crate) struct Heap {
    /// By address.
    blocks: Vec<Block>,
    /// The highest end among each block and those before it.
    ends: Vec<u64>,
    /// The events that allocated blocks, in order.
    anywhere: Vec<u64>,
    /// No unrecorded function allocated blocks.
    has_all: bool,
}

impl Heap {
    /// Reads the calls of allocation functions; `None` if there are none, or too many.
    pub(crate) fn read<'f>(
        calls: &Calls,
        functions: impl Iterator<Item = &'f FunctionDef>,
    ) -> Result<Option<Heap>> {
        let mut roles = BTreeMap::new();
        let mut sources: BTreeSet<&str> = BTreeSet::new();
        let mut has_inner = false;
        for function in functions {
            let name = library_name(&function.name);
            has_inner |= name == ALIGNED;
            sources.extend(SOURCES.iter().filter(|source| **source == name));
            let role = role(function).filter(|role| role.gives_memory());
            roles.extend(role.map(|role| (function.id, role)));
        }
        if roles.is_empty() {
            return Ok(None);
        }
        if has_inner {
            roles.retain(|_, role| !matches!(role, Role::Stores(_)));
        }
        let ids: BTreeSet<u32> = roles.keys().copied().collect();
        let (mut blocks, mut anywhere) = (Vec::new(), Vec::new());
        for head in calls.entered_in(&(0..u64::MAX), &ids)? {
            let Some(given) = head.end.filter(|_| head.returned()) else {
                continue;
            };
            let call = calls.call(&head)?;
            let Some(len) = roles[&head.function].returned_len(&call.args) else {
                anywhere.push(given);
                continue;
            };
            let Some(addr) = call.rax.filter(|addr| !matches!(*addr, 0 | MAP_FAILED)) else {
                continue;
            };
            if blocks.len() == MOST_BLOCKS {
                return Ok(None);
            }
            blocks.push(Block {
                addr,
                end: addr.saturating_add(len),
                given,
            });
        }
        anywhere.sort_unstable();
        Ok((!blocks.is_empty()).then(|| Heap {
            anywhere,
            has_all: sources.len() == SOURCES.len(),
            ..Heap::of(blocks)
        }))
    }

    fn of(mut blocks: Vec<Block>) -> Heap {
        blocks.sort_unstable_by_key(|block| (block.addr, block.given));
        let mut highest = 0;
        let end = |block: &Block| {
            highest = highest.max(block.end);
            highest
        };
        let ends = blocks.iter().map(end).collect();
        Heap {
            blocks,
            ends,
            anywhere: Vec::new(),
            has_all: false,
        }
    }

    /// Returns whether `range` is known to have been in one block from event `since` to event `until`, and in no other.
    pub(crate) fn is_one_block(&self, range: &Range<u64>, since: u64, until: u64) -> bool {
        let next = self.anywhere.partition_point(|given| *given <= since);
        let is_elsewhere = self.anywhere.get(next).is_none_or(|given| *given > until);
        let is_around = |block: &Block| {
            block.addr <= range.start && range.end <= block.end && block.given <= since
        };
        self.has_all
            && is_elsewhere
            && self.reaching(range).any(is_around)
            && self.given(range, since, until).is_none()
    }

    /// The blocks that may reach into `range`, the highest first.
    fn reaching(&self, range: &Range<u64>) -> impl Iterator<Item = &Block> {
        let behind = self.blocks.partition_point(|block| block.addr < range.end);
        let start = range.start;
        let around = (0..behind).rev().take(MOST_LOOKED_AT);
        let around = around.take_while(move |at| self.ends[*at] > start);
        around.map(|at| &self.blocks[at])
    }

    /// Finds a part of `range` that was allocated after event `after` and up to event `until`, and the event.
    pub(crate) fn given(
        &self,
        range: &Range<u64>,
        after: u64,
        until: u64,
    ) -> Option<(Range<u64>, u64)> {
        self.reaching(range).find_map(|block| {
            let part = range.start.max(block.addr)..range.end.min(block.end);
            let is_later = after < block.given && block.given <= until;
            (is_later && !part.is_empty()).then_some((part, block.given))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(addr: u64, len: u64, given: u64) -> Block {
        Block {
            addr,
            end: addr + len,
            given,
        }
    }

    #[test]
    fn what_was_handed_out_since_is_found() {
        let heap = Heap::of(vec![
            block(0x100, 0x1000, 5),
            block(0x200, 0x20, 9),
            block(0x200, 0x10, 30),
            block(0x300, 0x10, 12),
        ]);
        assert_eq!(heap.given(&(0x208..0x210), 9, 40), Some((0x208..0x210, 30)));
        assert_eq!(
            heap.given(&(0x208..0x218), 20, 40),
            Some((0x208..0x210, 30))
        );
        assert_eq!(heap.given(&(0x210..0x218), 9, 40), None);
        assert_eq!(heap.given(&(0x210..0x218), 8, 40), Some((0x210..0x218, 9)));
        assert_eq!(heap.given(&(0x210..0x218), 4, 6), Some((0x210..0x218, 5)));
        assert_eq!(heap.given(&(0x208..0x210), 9, 29), None);
        assert_eq!(heap.given(&(0x1100..0x1108), 0, 40), None);
        assert_eq!(
            heap.given(&(0x10f8..0x1108), 0, 40),
            Some((0x10f8..0x1100, 5))
        );
    }

    /// A block is the only one at its address since `since` if every allocation function was recorded.
    #[test]
    fn one_block_is_told_from_several() {
        let mut heap = Heap::of(vec![block(0x100, 0x40, 5), block(0x120, 0x10, 20)]);
        assert!(!heap.is_one_block(&(0x100..0x108), 6, 30));
        heap.has_all = true;
        assert!(heap.is_one_block(&(0x100..0x108), 6, 30));
        assert!(!heap.is_one_block(&(0x100..0x108), 4, 30));
        assert!(!heap.is_one_block(&(0x120..0x128), 6, 30));
        assert!(!heap.is_one_block(&(0x138..0x148), 6, 30));
        assert!(!heap.is_one_block(&(0x200..0x208), 6, 30));
        heap.anywhere = vec![10];
        assert!(!heap.is_one_block(&(0x100..0x108), 6, 30));
        assert!(heap.is_one_block(&(0x100..0x108), 10, 30));
        assert!(heap.is_one_block(&(0x100..0x108), 6, 9));
    }
}
