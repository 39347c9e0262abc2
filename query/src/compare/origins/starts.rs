//! Where blocks begin: addresses to numbers, for the many pointers that lead to the first byte of a block.
//!
//! Blocks that were made one after another lie side by side, and programs go through them so. A page of addresses has a line of
//! the processor's cache here for its parts, and one for the slots of each part. So most questions find what they need near the
//! last answer, and what is looked up by hash is small.

use rustc_hash::FxHashMap;

/// Bits of an address within a page.
const PAGE_BITS: u32 = 12;
/// Bits of an address within a part of a page.
const PART_BITS: u32 = 8;
/// Bits of an address within a slot: most allocators align blocks to that.
const SLOT_BITS: u32 = 4;
/// Parts of a page, and slots of a part.
const COUNT: usize = 16;
const NONE: u32 = u32::MAX;

/// Numbers that addresses have. They grow with the addresses.
#[derive(Debug, Default)]
pub struct Starts {
    pages: FxHashMap<u64, u32>,
    /// Of each page: which of `slots` its parts have.
    parts: Vec<[u32; COUNT]>,
    slots: Vec<[u32; COUNT]>,
}

fn part(address: u64) -> usize {
    (address >> PART_BITS) as usize % COUNT
}

fn slot(address: u64) -> usize {
    (address >> SLOT_BITS) as usize % COUNT
}

/// Adds a line, and returns its place.
fn added(lines: &mut Vec<[u32; COUNT]>) -> u32 {
    lines.push([NONE; COUNT]);
    (lines.len() - 1) as u32
}

impl Starts {
    /// Adds an address, with a number that no later one has. They come in order.
    pub fn add(&mut self, address: u64, number: u32) {
        let parts = &mut self.parts;
        let page = self.pages.entry(address >> PAGE_BITS);
        let page = *page.or_insert_with(|| added(parts));
        let line = &mut parts[page as usize][part(address)];
        if *line == NONE {
            *line = added(&mut self.slots);
        }
        let slot = &mut self.slots[*line as usize][slot(address)];
        // The first of those that share a slot has the lowest number.
        *slot = number.min(*slot);
    }

    /// Returns the number of the first address in the slot of `address`; `None` if there is none, so that it was not added.
    #[inline]
    pub fn near(&self, address: u64) -> Option<u32> {
        let page = self.pages.get(&(address >> PAGE_BITS))?;
        let line = self.parts[*page as usize][part(address)];
        let number = *self.slots.get(line as usize)?.get(slot(address))?;
        (number != NONE).then_some(number)
    }
}
