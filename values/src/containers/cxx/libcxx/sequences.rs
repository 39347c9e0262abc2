//! `vector` and `deque` of libc++.

use crate::containers::content::Content;
use crate::containers::cxx::libcxx::held;
use crate::containers::cxx::sequences::{Blocks, backwards, between, distance};
use crate::containers::items::{Bits, Items};
use crate::containers::typed_place::{Reach, TypedPlace, argument, size};
use debuginfo::Unknown;

/// Bytes of a block of a `deque`, unless an element needs many of them.
const BLOCK: u64 = 4096;

pub(super) fn vector(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let element = argument(&spot.ty, 0)?;
    let start = spot.field("__begin_")?.number(reach)?;
    let Some(finish) = spot.find("__end_") else {
        return bits(spot, start, reach);
    };
    let end = held(spot, &["__end_cap_", "__cap_"])?.number(reach)?;
    between(element, start, finish.number(reach)?, end, reach)
}

/// `vector<bool>`: the number of bits, and words.
fn bits(spot: &TypedPlace, first: u64, reach: &Reach) -> Result<Content, Unknown> {
    let element = argument(&spot.ty, 0)?;
    let len = spot.field("__size_")?.number(reach)?;
    let words = held(spot, &["__cap_alloc_", "__cap_"])?.number(reach)?;
    if words.checked_mul(64).is_none_or(|room| len > room) && !reach.machine.is_symbolic() {
        return Err(Unknown::corrupt(format!("{len} bits in {words} words")));
    }
    reach.fits(first, words, 8)?;
    let bits = Bits {
        start: TypedPlace::memory(&element, first),
        element,
        skip: 0,
        len,
    };
    Ok(Content::Sequence(Items::new(Some(len), bits)))
}

/// The number of elements in each block of a `deque`.
pub(super) fn per_block(size: u64) -> u64 {
    match size {
        0 => 0,
        _ if size < 256 => BLOCK / size,
        _ => 16,
    }
}

pub(super) fn deque(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let element = argument(&spot.ty, 0)?;
    let size = size(&element)?;
    let map = spot.field("__map_")?;
    let (from, to) = (map.field("__begin_")?, map.field("__end_")?);
    let (from, to) = (from.number(reach)?, to.number(reach)?);
    let skip = spot.field("__start_")?.number(reach)?;
    let len = held(spot, &["__size_"])?.number(reach)?;
    let per_block = per_block(size);
    let blocks = distance(from, to, 8)?;
    reach.fits(from, blocks, 8)?;
    let room = blocks.checked_mul(per_block);
    let used = skip.checked_add(len);
    if len > 0 && (used.is_none() || used > room) && !reach.machine.is_symbolic() {
        return Err(match used {
            Some(used) => Unknown::corrupt(format!("{used} places in {blocks} blocks")),
            None => backwards(from, to),
        });
    }
    let blocks = Blocks {
        element,
        size,
        map: from,
        per_block,
        skip,
        len,
    };
    Ok(Content::Sequence(Items::new(Some(len), blocks)))
}
