//! Indexed containers of C++: `vector`, `deque`, `array`, `bitset` and the types that borrow from them.

use crate::containers::content::Content;
use crate::containers::items::{Bits, Each, Element, Items, Run, Visit};
use crate::containers::typed_place::{Reach, TypedPlace, argument, argument_value, size};
use debuginfo::Unknown;
use debuginfo::types::Type;

/// Most bits of a `bitset`: more are damage.
const MAX_BITS: u64 = 1 << 32;

pub(super) fn backwards(start: u64, end: u64) -> Unknown {
    Unknown::corrupt(format!("from {start:#x} to {end:#x}"))
}

/// The number of elements of `size` from `start` to `end`.
pub(super) fn distance(start: u64, end: u64, size: u64) -> Result<u64, Unknown> {
    let bytes = end.checked_sub(start);
    let count = bytes
        .filter(|b| size > 0 && b % size == 0)
        .map(|b| b / size);
    count.ok_or_else(|| backwards(start, end))
}

pub(super) fn vector(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let element = argument(&spot.ty, 0)?;
    let parts = spot.field("_M_impl")?;
    let (start, finish) = (parts.field("_M_start")?, parts.field("_M_finish")?);
    if start.find("_M_offset").is_some() {
        return bits(element, &start, &finish, reach);
    }
    let (start, finish) = (start.number(reach)?, finish.number(reach)?);
    let end = parts.field("_M_end_of_storage")?.number(reach)?;
    between(element, start, finish, end, reach)
}

/// Elements from `start` to `finish`, in memory up to `end`.
pub(super) fn between(
    element: Type,
    start: u64,
    finish: u64,
    end: u64,
    reach: &Reach,
) -> Result<Content, Unknown> {
    if finish > end {
        return Err(backwards(finish, end));
    }
    let size = size(&element)?;
    let len = match distance(start, finish, size) {
        // The distance of garbage addresses need not be a whole number of elements.
        Err(_) if reach.machine.is_symbolic() && size > 0 => finish.abs_diff(start) / size,
        len => len?,
    };
    Ok(Content::Sequence(Run::items(reach, element, start, len)?))
}

/// `vector<bool>`: its iterators are a word and a bit in it.
fn bits(
    element: Type,
    start: &TypedPlace,
    finish: &TypedPlace,
    reach: &Reach,
) -> Result<Content, Unknown> {
    let position = |spot: &TypedPlace| -> Result<(u64, u64), Unknown> {
        let bit = spot.field("_M_offset")?.number(reach)?;
        Ok((spot.field("_M_p")?.number(reach)?, bit))
    };
    let ((first, skip), (last, used)) = (position(start)?, position(finish)?);
    let bytes = distance(first, last, 1)?;
    reach.fits(first, bytes, 1)?;
    let len = (bytes * 8)
        .checked_add(used)
        .and_then(|n| n.checked_sub(skip));
    let len = len.ok_or_else(|| backwards(first, last))?;
    let bits = Bits {
        start: TypedPlace::memory(&element, first),
        element,
        skip,
        len,
    };
    Ok(Content::Sequence(Items::new(Some(len), bits)))
}

pub(super) fn bitset(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let unknown = || Unknown::because("the number of its bits is not known");
    let len = argument_value(&spot.ty, 0).ok_or_else(unknown)?;
    let bool_type = bool_type(reach)?;
    // No bits have no words.
    let words = spot.find("_M_w").or_else(|| spot.find("__first_"));
    let start = words.unwrap_or_else(|| spot.clone());
    let bits = Bits {
        start: start.cast(&bool_type),
        element: bool_type,
        skip: 0,
        len: len.min(MAX_BITS),
    };
    Ok(Content::Bits(Items::new(Some(bits.len), bits)))
}

pub(super) fn bool_type(reach: &Reach) -> Result<Type, Unknown> {
    let found = debuginfo::types::find_type(reach.space, None, "bool");
    found.ok_or_else(|| Unknown::because("there is no type bool"))
}

pub(super) fn array(spot: &TypedPlace, name: &str, reach: &Reach) -> Result<Content, Unknown> {
    let element = argument(&spot.ty, 0)?;
    let elements = spot.field(name)?;
    let len = match argument_value(&spot.ty, 1) {
        Some(len) => len,
        None => elements.ty.strip().count().unwrap_or(0),
    };
    if let Ok(address) = spot.address() {
        reach.fits(address, len, size(&element)?)?;
    }
    let run = Run {
        element,
        start: elements.at,
        len,
    };
    Ok(Content::Sequence(Items::new(Some(len), run)))
}

/// A pointer and a length; for `span` the length may be a template argument.
pub(super) fn span(
    spot: &TypedPlace,
    start: &[&str],
    len: &[&str],
    reach: &Reach,
) -> Result<Content, Unknown> {
    let element = argument(&spot.ty, 0)?;
    let start = spot.any_field(start)?.number(reach)?;
    let stated = spot.any_field(len).ok();
    let stated = stated.filter(|len| len.ty.size() == Some(8));
    let len = match (stated, argument_value(&spot.ty, 1)) {
        (Some(len), _) => len.number(reach)?,
        (None, Some(len)) => len,
        (None, None) => return Err(Unknown::because("its length is not known")),
    };
    Ok(Content::Sequence(Run::items(reach, element, start, len)?))
}

pub(super) fn deque(spot: &TypedPlace, reach: &Reach) -> Result<Content, Unknown> {
    let element = argument(&spot.ty, 0)?;
    let size = size(&element)?;
    let parts = spot.field("_M_impl")?;
    let (start, finish) = (parts.field("_M_start")?, parts.field("_M_finish")?);
    let of = |iterator: &TypedPlace, name: &str| iterator.field(name)?.number(reach);
    let first = of(&start, "_M_first")?;
    let per_block = distance(first, of(&start, "_M_last")?, size)?;
    let skip = distance(first, of(&start, "_M_cur")?, size)?;
    let used = distance(of(&finish, "_M_first")?, of(&finish, "_M_cur")?, size)?;
    let (from, to) = (of(&start, "_M_node")?, of(&finish, "_M_node")?);
    let blocks = distance(from, to, 8)?;
    reach.fits(from, blocks, 8)?;
    let len = blocks
        .checked_mul(per_block)
        .and_then(|n| n.checked_add(used));
    let len = len
        .and_then(|n| n.checked_sub(skip))
        .filter(|_| per_block > 0);
    let blocks = Blocks {
        element,
        size,
        map: from,
        per_block,
        skip,
        len: len.ok_or_else(|| backwards(from, to))?,
    };
    Ok(Content::Sequence(Items::new(Some(blocks.len), blocks)))
}

/// The blocks of a `deque`, all of the same size.
pub(super) struct Blocks {
    pub element: Type,
    pub size: u64,
    /// Address of the pointer to the first block.
    pub map: u64,
    pub per_block: u64,
    /// Number of unused places before the first element.
    pub skip: u64,
    pub len: u64,
}

impl Visit for Blocks {
    fn visit(&self, reach: &Reach, from: u64, each: Each) -> Result<(), Unknown> {
        let mut block = None;
        for i in from..self.len {
            let place = self.skip.wrapping_add(i);
            let (number, inside) = (place / self.per_block, place % self.per_block);
            let start = match block.filter(|_| inside > 0) {
                Some(start) => start,
                None => reach.word(self.map.wrapping_add(number.wrapping_mul(8)))?,
            };
            block = Some(start);
            let address = start.wrapping_add(inside * self.size);
            if !each(Element::of(TypedPlace::memory(&self.element, address))) {
                break;
            }
        }
        Ok(())
    }
}
