//! Lists the parts of a struct, class or union: data members and base classes with their offsets.

use gimli::constants as dw;

use super::Types;
use crate::dies::{Die, DieReader};
use crate::types::{BitRange, bit_range, constant_offset};

/// A data member or a base class.
pub(super) struct Member<'a> {
    /// The DIE of the member itself.
    pub die: Die<'a>,
    /// Its type.
    pub of: Die<'a>,
    /// Bytes from the start of the record.
    pub offset: u64,
    /// The bits of a bit field.
    pub bits: Option<BitRange>,
}

impl<'a> Types<'_, '_, 'a> {
    /// Returns the members that every object contains, base classes included, in declaration order.
    pub(super) fn members(&self, record: &Die<'a>) -> Vec<Member<'a>> {
        let tags = [dw::DW_TAG_member, dw::DW_TAG_inheritance];
        let parts = self.session.children(record, &tags).into_iter();
        parts.filter_map(|die| member(self.session, die)).collect()
    }
}

/// Reads a member. Returns `None` if it is not part of the object (a static member) or has no type.
pub(super) fn member<'a>(session: &DieReader<'_, 'a>, die: Die<'a>) -> Option<Member<'a>> {
    if session.flag(&die, dw::DW_AT_external) || session.flag(&die, dw::DW_AT_declaration) {
        return None;
    }
    let of = session.follow(&die, dw::DW_AT_type)?;
    let location = session.attr(&die, dw::DW_AT_data_member_location);
    let offset = location.and_then(|l| constant_offset(&l)).unwrap_or(0);
    let bits = bit_range(session, &die, Some(offset));
    Some(Member {
        die,
        of,
        offset,
        bits,
    })
}
