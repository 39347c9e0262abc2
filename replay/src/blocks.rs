//! The lives of the heap blocks that held an address: which call returned each, which one freed it.
//!
//! Only the recorded calls of allocation functions show blocks. One such function may call another: `operator new`
//! calls malloc. The outermost of them made the block for its caller.

use std::collections::{BTreeMap, BTreeSet};

use crate::allocation::{MAP_FAILED, Role, role};
use crate::calls::CallHead;
use crate::error::{Error, Result};
use crate::overseen::goes_on;
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

/// Asks whoever oversees the search whether it goes on.
fn go_on(head: &CallHead) -> Result<()> {
    match goes_on(head.start) {
        true => Ok(()),
        false => Err(Error::Interrupted),
    }
}

impl Timeline {
    /// Finds the blocks that held `address`, at any time.
    ///
    /// # Errors
    /// The files cannot be read, or [`Error::Interrupted`].
    pub fn blocks_at(&self, address: u64) -> Result<Blocks> {
        let mut makers = BTreeMap::new();
        let mut freers = BTreeSet::new();
        for function in self.functions() {
            let Some(role) = role(function) else {
                continue;
            };
            if role.gives_memory() {
                makers.insert(function.id, role);
            }
            if role.takes_memory() {
                freers.insert(function.id);
            }
        }
        let all: BTreeSet<u32> = makers.keys().chain(&freers).copied().collect();
        let mut found: Vec<Block> = Vec::new();
        let mut has_makers = false;
        let maker_ids: BTreeSet<u32> = makers.keys().copied().collect();
        for head in self.calls.entered_in(&(0..u64::MAX), &maker_ids)? {
            go_on(&head)?;
            has_makers = true;
            found.extend(self.made(&head, makers[&head.function], address, &all)?);
        }
        // An inner function returns the same block a little earlier.
        found.sort_by_key(|block| (block.made.start, u64::MAX - block.len));
        found.dedup_by_key(|block| block.made.start);
        let starts: BTreeSet<u64> = found.iter().map(|block| block.address).collect();
        let mut frees: Vec<Free> = Vec::new();
        let mut has_freers = false;
        for head in self.calls.entered_in(&(0..u64::MAX), &freers)? {
            go_on(&head)?;
            has_freers = true;
            let freed = self.call(&head)?.args[0];
            if starts.contains(&freed) {
                frees.push(Free {
                    address: freed,
                    call: self.outermost(&head, &all)?,
                    is_done: head.returned() || head.only_entered,
                });
            }
        }
        // Of a call and one inside it that did return, the latter comes first.
        frees.sort_by_key(|free| (free.call.start, !free.is_done));
        let given: Vec<u64> = found.iter().filter_map(|block| block.made.end).collect();
        for block in &mut found {
            let since = block.made.end.unwrap_or(u64::MAX);
            let next = given.iter().filter(|given| **given > since).min();
            // realloc frees a block before it returns the next one there. What was freed later was the next one.
            let is_it = |free: &&Free| {
                free.address == block.address
                    && free.call.start > since
                    && next.map_or(free.is_done, |next| free.call.start < *next)
            };
            block.freed = frees.iter().find(is_it).map(|free| free.call);
        }
        Ok(Blocks {
            blocks: found,
            has_makers,
            has_freers,
        })
    }

    /// The block that a call returned, if it holds the address.
    fn made(
        &self,
        head: &CallHead,
        role: Role,
        address: u64,
        all: &BTreeSet<u32>,
    ) -> Result<Option<Block>> {
        if !head.returned() {
            return Ok(None);
        }
        let call = self.call(head)?;
        let Some(len) = role.returned_len(&call.args) else {
            return Ok(None);
        };
        let Some(start) = call.rax.filter(|start| !matches!(*start, 0 | MAP_FAILED)) else {
            return Ok(None);
        };
        if !(start..start.saturating_add(len.max(1))).contains(&address) {
            return Ok(None);
        }
        let made = self.outermost(head, all)?;
        // malloc maps memory for many blocks.
        if role.is_of_pages() && made.start != head.start || !made.returned() {
            return Ok(None);
        }
        Ok(Some(Block {
            address: start,
            len,
            made,
            freed: None,
        }))
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
