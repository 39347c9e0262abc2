//! The parts of a struct, class or union: data members and base classes with their offsets.

use gimli::constants as dw;
use gimli::{AttributeValue, EndianSlice, LittleEndian, Operation};

use super::Types;
use crate::dies::{Die, Session};
use crate::dwarf::Slice;

/// A data member or a base class.
pub(super) struct Member<'a> {
    /// The entry of the member itself.
    pub die: Die<'a>,
    /// Its type.
    pub of: Die<'a>,
    /// Bytes from the start of the record.
    pub offset: u64,
    /// For a bit-field: first bit, counted from the start of the record, and number of bits.
    pub bits: Option<(u64, u64)>,
}

impl<'a> Types<'_, '_, 'a> {
    /// Members that lie in each object, base classes included, in the order of the declaration.
    pub(super) fn members(&self, record: &Die<'a>) -> Vec<Member<'a>> {
        let tags = [dw::DW_TAG_member, dw::DW_TAG_inheritance];
        let parts = self.session.children(record, &tags).into_iter();
        parts.filter_map(|die| member(self.session, die)).collect()
    }
}

/// Reads a member; `None` for one that is not part of the object (a static member) or has no type.
pub(super) fn member<'a>(session: &Session<'_, 'a>, die: Die<'a>) -> Option<Member<'a>> {
    if session.flag(&die, dw::DW_AT_external) || session.flag(&die, dw::DW_AT_declaration) {
        return None;
    }
    let of = session.follow(&die, dw::DW_AT_type)?;
    let offset = member_offset(session, &die).unwrap_or(0);
    let bits = bit_field(session, &die, offset);
    Some(Member {
        die,
        of,
        offset,
        bits,
    })
}

fn member_offset<'a>(session: &Session<'_, 'a>, die: &Die<'a>) -> Option<u64> {
    let value = session.attr(die, dw::DW_AT_data_member_location)?;
    if let Some(offset) = value.udata_value() {
        return Some(offset);
    }
    let bytes = match value {
        AttributeValue::Exprloc(expression) => expression.0,
        AttributeValue::Block(bytes) => bytes,
        _ => return None,
    };
    plus_constant(bytes, die.unit.encoding())
}

/// The constant in `DW_OP_plus_uconst N`, which DWARF 2 wrote for every offset.
fn plus_constant(bytes: Slice<'_>, encoding: gimli::Encoding) -> Option<u64> {
    let mut rest: EndianSlice<'_, LittleEndian> = bytes;
    match Operation::parse(&mut rest, encoding).ok()? {
        Operation::PlusConstant { value } if rest.is_empty() => Some(value),
        _ => None,
    }
}

fn bit_field<'a>(session: &Session<'_, 'a>, die: &Die<'a>, offset: u64) -> Option<(u64, u64)> {
    let size = session.unsigned(die, dw::DW_AT_bit_size)?;
    if let Some(first) = session.unsigned(die, dw::DW_AT_data_bit_offset) {
        return Some((first, size));
    }
    let Some(from_top) = session.unsigned(die, dw::DW_AT_bit_offset) else {
        return Some((offset.saturating_mul(8), size));
    };
    // DWARF 3 and older count from the most significant bit of the storage unit.
    let storage_bytes = session.unsigned(die, dw::DW_AT_byte_size).or_else(|| {
        let of = session.follow(die, dw::DW_AT_type)?;
        session.unsigned(&of, dw::DW_AT_byte_size)
    })?;
    let storage_end = offset.saturating_add(storage_bytes).saturating_mul(8);
    let first = storage_end.checked_sub(from_top.checked_add(size)?)?;
    Some((first, size))
}
