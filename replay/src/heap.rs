//! Blocks of the heap, as the recorded calls of allocation functions handed them out.
//!
//! What was seen at an address before a block there was handed out belonged to something else, and is no older value of what the
//! block holds. Recordings without such calls, which are those of the default filters, do not tell.

use std::collections::BTreeSet;
use std::ops::Range;

use store::control::FunctionDef;

use crate::calls::Calls;
use crate::error::Result;

/// What is said of stale bytes of the heap in a recording without such calls.
pub const UNKNOWN_BLOCK: &str = "calls of malloc are not recorded: an earlier object may have been at that address; -f 'module:libc.so*' records them";

/// Blocks that are remembered: with more, nothing is told of any.
const MOST_BLOCKS: usize = 1 << 22;
/// Blocks that are looked at for one answer.
const MOST_LOOKED_AT: usize = 1 << 16;

/// Where an allocation function has the size of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    /// In an argument.
    Argument(usize),
    /// It is the product of the first two.
    Product,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    addr: u64,
    end: u64,
    /// The event with which it was handed out.
    given: u64,
}

/// The blocks that were handed out.
#[derive(Debug)]
pub(crate) struct Heap {
    /// By address.
    blocks: Vec<Block>,
    /// The highest end among each block and those before it.
    ends: Vec<u64>,
}

impl Heap {
    /// Reads the calls of allocation functions; `None` if none was recorded, or too many were.
    pub(crate) fn read<'f>(
        calls: &Calls,
        functions: impl Iterator<Item = &'f FunctionDef>,
    ) -> Result<Option<Heap>> {
        let sizes = functions.filter_map(|function| Some((function.id, size_of(&function.name)?)));
        let sizes: std::collections::BTreeMap<u32, Size> = sizes.collect();
        if sizes.is_empty() {
            return Ok(None);
        }
        let ids: BTreeSet<u32> = sizes.keys().copied().collect();
        let mut blocks = Vec::new();
        for head in calls.entered_in(&(0..u64::MAX), &ids)? {
            let (Some(given), false) = (head.end, head.unwound) else {
                continue;
            };
            let call = calls.call(&head)?;
            let len = match sizes[&head.function] {
                Size::Argument(number) => call.args[number],
                Size::Product => call.args[0].saturating_mul(call.args[1]),
            };
            let Some(addr) = call.rax.filter(|addr| *addr != 0) else {
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
        Ok((!blocks.is_empty()).then(|| Heap::of(blocks)))
    }

    fn of(mut blocks: Vec<Block>) -> Heap {
        blocks.sort_unstable_by_key(|block| (block.addr, block.given));
        let mut highest = 0;
        let end = |block: &Block| {
            highest = highest.max(block.end);
            highest
        };
        let ends = blocks.iter().map(end).collect();
        Heap { blocks, ends }
    }

    /// Finds a part of `range` that was handed out after event `after` and up to event `until`, and the event that did.
    pub(crate) fn given(
        &self,
        range: &Range<u64>,
        after: u64,
        until: u64,
    ) -> Option<(Range<u64>, u64)> {
        let behind = self.blocks.partition_point(|block| block.addr < range.end);
        let around = (0..behind).rev().take(MOST_LOOKED_AT);
        let mut around = around.take_while(|at| self.ends[*at] > range.start);
        around.find_map(|at| {
            let block = &self.blocks[at];
            let part = range.start.max(block.addr)..range.end.min(block.end);
            let is_later = after < block.given && block.given <= until;
            (is_later && !part.is_empty()).then_some((part, block.given))
        })
    }
}

/// Tells whether the function hands out blocks of the heap.
pub(crate) fn allocates(function: &FunctionDef) -> bool {
    size_of(&function.name).is_some()
}

/// Where the function of this name has the size of the block that it returns; `None` if it allocates nothing.
fn size_of(name: &str) -> Option<Size> {
    // glibc describes its functions by one of several names: `__libc_malloc`, `__GI___libc_malloc`.
    let plain = name.strip_prefix("__GI_").unwrap_or(name);
    let plain = plain.strip_prefix("__libc_").unwrap_or(plain);
    match plain {
        "malloc" | "valloc" | "pvalloc" => Some(Size::Argument(0)),
        "realloc" | "aligned_alloc" | "memalign" => Some(Size::Argument(1)),
        "calloc" => Some(Size::Product),
        "__rust_alloc" | "__rdl_alloc" | "__rust_alloc_zeroed" => Some(Size::Argument(0)),
        "__rust_realloc" | "__rdl_realloc" => Some(Size::Argument(3)),
        other if other.starts_with("operator new") => Some(Size::Argument(0)),
        _ => None,
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

    #[test]
    fn sizes_are_where_each_function_has_them() {
        assert_eq!(size_of("__libc_calloc"), Some(Size::Product));
        assert_eq!(size_of("__GI___libc_malloc"), Some(Size::Argument(0)));
        assert_eq!(
            size_of("operator new(unsigned long)"),
            Some(Size::Argument(0))
        );
        assert_eq!(size_of("malloc_usable_size"), None);
    }
}
