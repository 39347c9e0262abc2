//! The lives of the heap blocks that held an address: which call returned each, which one freed it.
//!
//! Only the recorded calls of allocation functions show blocks. One such function may call another: `operator new`
//! calls malloc. The outermost of them made the block for its caller.

use std::collections::{BTreeMap, BTreeSet};

use crate::allocation::{MAP_FAILED, Role, role};
use crate::calls::{CallHead, Values};
use crate::error::Result;
use crate::timeline::Timeline;

/// Allocation functions call each other at most this deep.
const DEEPEST: usize = 8;

/// A block of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first byte.
    pub address: u64,
    /// The requested size in bytes.
    pub len: u64,
    /// The call that returned it. It has ended.
    pub made: CallHead,
    /// The call that freed it, or moved its content elsewhere.
    pub freed: Option<CallHead>,
}

impl Block {
    /// Returns whether the block was allocated just after event `seq`, and not being freed.
    #[must_use]
    pub fn is_there(&self, seq: u64) -> bool {
        self.made.end.is_some_and(|end| end <= seq)
            && self.freed.is_none_or(|call| call.start > seq)
    }
}

/// A call that was to free a block.
struct Free {
    address: u64,
    call: CallHead,
    /// It did so. If the program died in it, that is known only if the address was given out again.
    is_done: bool,
}

/// What is known about the blocks that held an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// In the order in which they were made.
    pub blocks: Vec<Block>,
    /// Allocation functions were recorded.
    pub has_makers: bool,
    /// Freeing functions were recorded.
    pub has_freers: bool,
}

/// The arguments that tell which block a call is about, by any allocation function.
const ARGUMENTS: [usize; 4] = [0, 1, 2, 3];

impl Timeline {
    /// Finds the blocks that held `address`, at any time.
    ///
    /// # Errors
    /// The files cannot be read, or [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn blocks_at(&self, address: u64) -> Result<Blocks> {
        let known = self.functions().filter_map(|f| Some((f.id, role(f)?)));
        let roles: BTreeMap<u32, Role> = known.collect();
        let all: BTreeSet<u32> = roles.keys().copied().collect();
        let mut answer = Blocks::default();
        let mut starts: BTreeSet<u64> = BTreeSet::new();
        let calls = self.calls.with_values(&all, &ARGUMENTS, &mut |values| {
            let role = roles[&values.function];
            answer.has_makers |= role.gives_memory();
            answer.has_freers |= role.takes_memory();
            let made = returned(role, values, address);
            // Calls come in the order of their ends: that of the call which returned a block comes before that of the one which frees it.
            let is_freed = role.takes_memory() && starts.contains(&values.args[0]);
            starts.extend(made.map(|(start, _)| start));
            made.is_some() || is_freed
        })?;
        let mut frees: Vec<Free> = Vec::new();
        for (head, values) in calls {
            let role = roles[&values.function];
            let outermost = self.outermost(&head, &all)?;
            answer
                .blocks
                .extend(made(role, &values, address, &head, &outermost));
            if role.takes_memory() && starts.contains(&values.args[0]) {
                frees.push(Free {
                    address: values.args[0],
                    call: outermost,
                    is_done: head.returned() || head.only_entered,
                });
            }
        }
        let found = &mut answer.blocks;
        // An inner function returns the same block a little earlier.
        found.sort_by_key(|block| (block.made.start, u64::MAX - block.len));
        found.dedup_by_key(|block| block.made.start);
        free(found, frees);
        Ok(answer)
    }

    /// The outermost of the allocation functions around a call, itself included.
    fn outermost(&self, call: &CallHead, all: &BTreeSet<u32>) -> Result<CallHead> {
        let mut outermost = *call;
        for _ in 0..DEEPEST {
            match self.parent(&outermost)? {
                Some(parent) if all.contains(&parent.function) => outermost = parent,
                _ => break,
            }
        }
        Ok(outermost)
    }
}

/// Returns the first byte and the length of the block that a call returned, if it holds the address.
fn returned(role: Role, values: &Values, address: u64) -> Option<(u64, u64)> {
    let len = role.returned_len(&values.args)?;
    let start = values
        .rax
        .filter(|start| !matches!(*start, 0 | MAP_FAILED))?;
    let bytes = start..start.saturating_add(len.max(1));
    bytes.contains(&address).then_some((start, len))
}

/// Returns that block. `outermost`: the outermost of the allocation functions around the call, itself included.
fn made(
    role: Role,
    values: &Values,
    address: u64,
    head: &CallHead,
    outermost: &CallHead,
) -> Option<Block> {
    let (start, len) = returned(role, values, address)?;
    // malloc maps memory for many blocks.
    let is_inside = role.is_of_pages() && outermost.start != head.start;
    let is_made = head.returned() && outermost.returned() && !is_inside;
    is_made.then_some(Block {
        address: start,
        len,
        made: *outermost,
        freed: None,
    })
}

/// Says of each block which call freed it.
fn free(blocks: &mut [Block], mut frees: Vec<Free>) {
    // Of a call and one inside it that did return, the latter comes first.
    frees.sort_by_key(|free| (free.address, free.call.start, !free.is_done));
    let mut given: Vec<u64> = blocks.iter().filter_map(|block| block.made.end).collect();
    given.sort_unstable();
    for block in blocks {
        let since = block.made.end.unwrap_or(u64::MAX);
        let next = given.get(given.partition_point(|given| *given <= since));
        let from = (block.address, since);
        let first = frees.partition_point(|free| (free.address, free.call.start) <= from);
        // realloc frees a block before it returns the next one there. What was freed later was the next one.
        let mut its = frees[first..].iter().take_while(|free| {
            free.address == block.address && next.is_none_or(|next| free.call.start < *next)
        });
        block.freed = its
            .find(|free| next.is_some() || free.is_done)
            .map(|free| free.call);
    }
}
