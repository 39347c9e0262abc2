//! Reads the parts of a type in any language: the places of members, and enumerators.

use gimli::constants as dw;

use super::members::{BitRange, Enumerator};
use super::read::constant;
use crate::dies::{Die, DieReader, Value};

/// Enumerators read of one type, at most.
const MAX_ENUMERATORS: usize = 1 << 16;

/// Returns the bytes that a member's location adds to the address of its structure, if they are constant.
pub(super) fn constant_offset(location: &Value<'_>) -> Option<u64> {
    location.udata_value().or_else(|| plus(location))
}

/// Returns the offset of a member in DWARF 2: `DW_OP_plus_uconst`.
fn plus(location: &Value<'_>) -> Option<u64> {
    let expression = location.exprloc_value()?;
    let (first, rest) = expression.0.slice().split_first()?;
    if *first != dw::DW_OP_plus_uconst.0 {
        return None;
    }
    let mut rest = gimli::EndianSlice::new(rest, gimli::LittleEndian);
    let offset = gimli::Reader::read_uleb128(&mut rest).ok()?;
    rest.is_empty().then_some(offset)
}

/// Returns the bits of the member `die` if it is a bit field. Its storage begins at byte `offset`, if known.
pub(super) fn bit_range<'a>(
    session: &DieReader<'_, 'a>,
    die: &Die<'a>,
    offset: Option<u64>,
) -> Option<BitRange> {
    let size = session.unsigned(die, dw::DW_AT_bit_size)?;
    if let Some(offset) = session.unsigned(die, dw::DW_AT_data_bit_offset) {
        return Some(BitRange { offset, size });
    }
    let start = offset?.checked_mul(8)?;
    // The older form counts from the highest bit of the storage unit.
    let Some(from_top) = session.attr(die, dw::DW_AT_bit_offset) else {
        return Some(BitRange {
            offset: start,
            size,
        });
    };
    // It is negative if a packed field begins before its storage unit; clang writes that as 8 unsigned bytes.
    let from_top = match from_top {
        Value::Sdata(negative) => negative,
        stated => stated.udata_value()?.cast_signed(),
    };
    let storage = session.unsigned(die, dw::DW_AT_byte_size);
    let storage = storage.or_else(|| storage_size(session, die))?;
    // Counting from the end of the storage allows for a field that extends across its beginning.
    let end = start.checked_add(storage.checked_mul(8)?)?;
    let offset = end
        .checked_sub(size)?
        .checked_add_signed(from_top.checked_neg()?)?;
    Some(BitRange { offset, size })
}

/// Returns the size of a member's type, for bit fields that do not state their storage.
pub(super) fn storage_size<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Option<u64> {
    stated_size(session, &session.follow(die, dw::DW_AT_type)?)
}

/// Returns the size in bytes that a type, or the type it is an alias of, states.
fn stated_size<'a>(session: &DieReader<'_, 'a>, die: &Die<'a>) -> Option<u64> {
    let mut ty = die.clone();
    for _ in 0..super::MAX_STEPS {
        if let Some(size) = session.unsigned(&ty, dw::DW_AT_byte_size) {
            return Some(size);
        }
        let next = session.follow(&ty, dw::DW_AT_signature);
        ty = next.or_else(|| session.follow(&ty, dw::DW_AT_type))?;
    }
    None
}

pub(super) fn enumerators<'a>(
    session: &DieReader<'_, 'a>,
    die: &Die<'a>,
    signed: bool,
) -> Vec<Enumerator> {
    let enumerator = |die: &Die<'a>| {
        let value = session.attr(die, dw::DW_AT_const_value)?;
        let name = session.string(die, dw::DW_AT_name)?;
        Some(Enumerator {
            name: name.to_string_lossy().into_owned(),
            value: constant(value, signed)?,
        })
    };
    let all = session.children(die, &[dw::DW_TAG_enumerator]);
    let all = all.iter().take(MAX_ENUMERATORS);
    all.filter_map(enumerator).collect()
}
