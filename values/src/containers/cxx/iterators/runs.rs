//! Where iterators over contiguous elements, blocks of them, and bits point. They hold no sign of the end: they are shown
//! as pointers are, by what lies there.

use crate::containers::cxx::iterators::{Target, Which};
use crate::containers::cxx::sequences::bool_type;
use crate::containers::typed_place::{Reach, TypedPlace, first_target, size};
use debuginfo::Unknown;

/// The number of bits in a word of a `vector<bool>`.
const WORD: u64 = 64;

pub(in crate::containers::cxx) fn pointer(
    pointer: &TypedPlace,
    which: Which,
    reach: &Reach,
) -> Result<Target, Unknown> {
    let element = pointer.target(reach)?;
    if element.address() == Ok(0) {
        return Ok(Target::Null);
    }
    Ok(Target::Element(match which {
        Which::Own => element,
        Which::Before => element.inner(&element.ty, size(&element.ty)?.wrapping_neg()),
    }))
}

/// An iterator over a `deque`: a pointer into a block, and one to the pointer to the block.
pub(super) fn deque(spot: &TypedPlace, which: Which, reach: &Reach) -> Result<Target, Unknown> {
    let word = |name: &str| spot.field(name)?.number(reach);
    let (first, last) = (word("_M_first")?, word("_M_last")?);
    let block = Block {
        map: word("_M_node")?,
        first,
        len_bytes: last.wrapping_sub(first),
    };
    block.target(&spot.field("_M_cur")?, which, reach)
}

/// A block of a `deque`.
pub(in crate::containers::cxx) struct Block {
    /// The address of the pointer to it.
    pub map: u64,
    pub first: u64,
    pub len_bytes: u64,
}

impl Block {
    pub(in crate::containers::cxx) fn target(
        &self,
        current: &TypedPlace,
        which: Which,
        reach: &Reach,
    ) -> Result<Target, Unknown> {
        let unknown = || Unknown::because("the type of its elements is not known");
        let ty = first_target(&current.ty).ok_or_else(unknown)?;
        let at = current.number(reach)?;
        if at == 0 {
            return Ok(Target::Null);
        }
        let at = self.place(at, size(&ty)?, which, reach)?;
        Ok(Target::Element(TypedPlace::memory(&ty, at)))
    }

    fn place(&self, at: u64, size: u64, which: Which, reach: &Reach) -> Result<u64, Unknown> {
        if reach.machine.is_symbolic() {
            return Ok(at);
        }
        let inside = at.wrapping_sub(self.first);
        if inside >= self.len_bytes || size == 0 || !inside.is_multiple_of(size) {
            return Err(Unknown::corrupt(format!(
                "{at:#x} is no element of the block at {:#x}",
                self.first
            )));
        }
        match (which, inside) {
            (Which::Own, _) => Ok(at),
            (Which::Before, 0) => {
                let before = reach.word(self.map.wrapping_sub(8))?;
                Ok(before.wrapping_add(self.len_bytes).wrapping_sub(size))
            }
            (Which::Before, _) => Ok(at.wrapping_sub(size)),
        }
    }
}

/// An iterator over a `vector<bool>`: a word, and the number of a bit in it.
pub(super) fn bit(spot: &TypedPlace, which: Which, reach: &Reach) -> Result<Target, Unknown> {
    let word = spot.field("_M_p")?.number(reach)?;
    let bit = spot.field("_M_offset")?.number(reach)?;
    bit_at(word, bit, which, reach)
}

pub(in crate::containers::cxx) fn bit_at(
    word: u64,
    bit: u64,
    which: Which,
    reach: &Reach,
) -> Result<Target, Unknown> {
    let ty = bool_type(reach)?;
    if word == 0 {
        return Ok(Target::Null);
    }
    if bit >= WORD && !reach.machine.is_symbolic() {
        return Err(Unknown::corrupt(format!("bit {bit} of a word")));
    }
    let (word, bit) = match (which, bit) {
        (Which::Own, _) => (word, bit),
        (Which::Before, 0) => (word.wrapping_sub(WORD / 8), WORD - 1),
        (Which::Before, _) => (word, bit - 1),
    };
    let bit = (reach.word(word)? >> (bit % WORD)) & 1;
    let bit = TypedPlace::bytes(&ty, &[u8::from(bit == 1)]);
    Ok(Target::Element(bit))
}
