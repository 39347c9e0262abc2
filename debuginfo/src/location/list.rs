//! Entries of location lists as they are stored, those with empty ranges among them.
//!
//! A compiler that numbers the views of an address (DW_AT_GNU_locviews) describes what a variable is between two statements
//! without code of their own: such a range is empty.

use gimli::{Expression, RawLocListEntry};

use super::MAX_ENTRIES;
use crate::dies::{Die, DieReader, Value as Attribute};
use crate::dwarf::Slice;

/// Returns the expression of an entry with an empty range at `svma`, the first instruction of a function.
pub(crate) fn before_entry<'a>(
    session: &DieReader<'_, 'a>,
    die: &Die<'a>,
    value: Attribute<'a>,
    svma: u64,
) -> Option<Expression<Slice<'a>>> {
    let dwarf = session.dwarf(die);
    let offset = dwarf.attr_locations_offset(&die.unit, value).ok()??;
    let mut entries = dwarf.raw_locations(&die.unit, offset).ok()?;
    let mut base = die.unit.low_pc;
    for _ in 0..MAX_ENTRIES {
        let entry = entries.next().ok()??;
        match range(session, die, entry, &mut base) {
            Some((begin, end, data)) if begin == svma && end == svma => return Some(data),
            _ => {}
        }
    }
    None
}

/// Returns begin, end and expression of a list entry, and keeps track of base addresses.
pub(crate) fn range<'a>(
    session: &DieReader<'_, 'a>,
    die: &Die<'a>,
    entry: RawLocListEntry<Slice<'a>>,
    base: &mut u64,
) -> Option<(u64, u64, Expression<Slice<'a>>)> {
    let unit = &die.unit;
    let address = |index| session.dwarf(die).address(unit, index).ok();
    match entry {
        RawLocListEntry::BaseAddress { addr } => {
            *base = addr;
            None
        }
        RawLocListEntry::BaseAddressx { addr } => {
            *base = address(addr)?;
            None
        }
        RawLocListEntry::AddressOrOffsetPair { begin, end, data }
        | RawLocListEntry::OffsetPair { begin, end, data } => {
            Some((base.wrapping_add(begin), base.wrapping_add(end), data))
        }
        RawLocListEntry::StartEnd { begin, end, data } => Some((begin, end, data)),
        RawLocListEntry::StartLength {
            begin,
            length,
            data,
        } => Some((begin, begin.wrapping_add(length), data)),
        RawLocListEntry::StartxEndx { begin, end, data } => {
            Some((address(begin)?, address(end)?, data))
        }
        RawLocListEntry::StartxLength {
            begin,
            length,
            data,
        } => {
            let begin = address(begin)?;
            Some((begin, begin.wrapping_add(length), data))
        }
        RawLocListEntry::DefaultLocation { data } => Some((0, u64::MAX, data)),
    }
}
