//! Chooses a free place in a process that is near enough to given code for 32-bit distances.

use std::ops::Range;

/// Maximum distance in bytes between code and what it refers to: 2 GiB, less a margin for the lengths of instructions
/// and operands.
pub const REACH: u64 = (1 << 31) - (1 << 16);

/// Lower bound for regions: the kernel's default `vm.mmap_min_addr`.
pub const LOWEST_ADDRESS: u64 = 0x10000;

const PAGE: u64 = 4096;
const END_OF_USER_SPACE: u64 = 0x7fff_ffff_f000;

/// Clearances to other mappings, tried in this order. The heap grows up and the stack grows down into space that the
/// list of mappings shows as free.
const CLEARANCES: [u64; 3] = [16 << 20, 1 << 20, 0];

/// Returns a page-aligned address for a region of `len` bytes. Every byte of the region is within [`REACH`] of every
/// byte of `anchor`, and the region overlaps neither `anchor` nor any of `mapped` (any order). Returns `None` if there
/// is no such place.
///
/// The nearest place below the anchor is preferred: nothing grows into it below an executable. Otherwise the farthest
/// place above is used, which leaves the heap the most room.
pub fn place_near(mapped: &[Range<u64>], anchor: &Range<u64>, len: u64) -> Option<u64> {
    let len = len.max(1).checked_next_multiple_of(PAGE)?;
    let lowest = anchor.end.saturating_sub(REACH).max(LOWEST_ADDRESS);
    let end = anchor.start.saturating_add(REACH).min(END_OF_USER_SPACE);
    let gaps = free_gaps(mapped, anchor);
    CLEARANCES.iter().find_map(|&clearance| {
        let fits = |gap: &Range<u64>| highest_fit(gap, lowest..end, clearance, len);
        let below = gaps.iter().rev().filter(|gap| gap.end <= anchor.start);
        let above = gaps.iter().rev().filter(|gap| gap.start >= anchor.end);
        below.chain(above).find_map(fits)
    })
}

/// Returns the free ranges of user space, lowest first.
fn free_gaps(mapped: &[Range<u64>], anchor: &Range<u64>) -> Vec<Range<u64>> {
    let mut taken: Vec<&Range<u64>> = mapped.iter().chain([anchor]).collect();
    taken.sort_by_key(|range| range.start);
    let mut gaps = Vec::with_capacity(taken.len() + 1);
    let mut free_from = 0;
    for range in taken {
        if range.start > free_from {
            gaps.push(free_from..range.start);
        }
        free_from = free_from.max(range.end);
    }
    if free_from < END_OF_USER_SPACE {
        gaps.push(free_from..END_OF_USER_SPACE);
    }
    gaps
}

fn highest_fit(gap: &Range<u64>, window: Range<u64>, clearance: u64, len: u64) -> Option<u64> {
    let lowest = gap.start.saturating_add(clearance).max(window.start);
    let end = gap.end.checked_sub(clearance)?.min(window.end);
    let place = end.checked_sub(len)? & !(PAGE - 1);
    (place >= lowest).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    #[test]
    fn place_below_a_position_independent_executable_is_preferred() {
        let exe = 0x5555_5555_4000..0x5555_5556_0000;
        let heap = 0x5555_5556_1000..0x5555_5558_2000;
        let place = place_near(&[exe.clone(), heap], &exe, MIB).unwrap();
        assert_eq!(place, 0x5555_5555_4000 - 17 * MIB);
    }

    #[test]
    fn large_region_for_a_low_executable_goes_far_above_the_heap() {
        let exe = 0x40_0000..0x50_0000;
        let heap = 0x60_0000..0x100_0000;
        let place = place_near(&[heap, exe.clone()], &exe, 64 * MIB).unwrap();
        assert_eq!(place, 0x40_0000 + REACH - 64 * MIB);
    }

    #[test]
    fn small_region_for_a_low_executable_fits_below_without_clearance() {
        let exe = 0x40_0000..0x50_0000;
        let place = place_near(&[exe.clone(), 0x50_0000..4 * GIB], &exe, 8192).unwrap();
        assert_eq!(place, 0x40_0000 - MIB - 8192);
    }

    #[test]
    fn nothing_fits_when_all_within_reach_is_taken() {
        let anchor = 16 * GIB..16 * GIB + MIB;
        let others = [0..16 * GIB, 16 * GIB + MIB..32 * GIB];
        assert_eq!(place_near(&others, &anchor, 4096), None);
    }

    #[test]
    fn nothing_fits_an_anchor_longer_than_the_reach() {
        let anchor = 16 * GIB..18 * GIB;
        assert_eq!(place_near(&[], &anchor, 4096), None);
    }

    #[test]
    fn lengths_that_overflow_are_refused() {
        assert_eq!(place_near(&[], &(4 * GIB..4 * GIB + 1), u64::MAX), None);
    }

    proptest! {
        #[test]
        fn place_is_free_aligned_and_near(
            starts in prop::collection::vec((0u64..6 * GIB, 1u64..GIB), 0..12),
            anchor_start in 0u64..6 * GIB,
            anchor_len in 1u64..GIB,
            len in 1u64..512 * MIB,
        ) {
            let page = |x: u64| x & !(PAGE - 1);
            let mapped: Vec<_> = starts.iter().map(|&(s, l)| page(s)..page(s) + page(l) + PAGE).collect();
            let anchor = page(anchor_start)..page(anchor_start) + page(anchor_len) + PAGE;
            let placed = place_near(&mapped, &anchor, len);
            if let Some(at) = placed {
                prop_assert_eq!(at % PAGE, 0);
                prop_assert!(at >= LOWEST_ADDRESS);
                for taken in mapped.iter().chain([&anchor]) {
                    prop_assert!(at + len <= taken.start || at >= taken.end);
                }
                prop_assert!(anchor.end.saturating_sub(at) <= REACH);
                prop_assert!((at + len).saturating_sub(anchor.start) <= REACH);
            } else {
                // Nothing is free within reach: try every page boundary from which a search could start.
                let mut edges: Vec<u64> = mapped.iter().map(|m| m.end).chain([anchor.end, LOWEST_ADDRESS]).collect();
                edges.push(anchor.end.saturating_sub(REACH).next_multiple_of(PAGE).max(LOWEST_ADDRESS));
                let rounded = len.next_multiple_of(PAGE);
                for at in edges {
                    let free = mapped.iter().chain([&anchor]).all(|t| at + rounded <= t.start || at >= t.end);
                    let near = at >= LOWEST_ADDRESS && anchor.end.saturating_sub(at) <= REACH
                        && (at + rounded).saturating_sub(anchor.start) <= REACH;
                    prop_assert!(!(free && near), "{:#x} was missed", at);
                }
            }
        }
    }
}
