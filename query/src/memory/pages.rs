//! Mapped pages: mappings are unmapped in parts, and others are mapped over them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::blocks::{Block, End, Moment};

const PAGE: u64 = 4096;

/// What a call did with pages: it unmapped some, then mapped others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCall {
    /// The bytes that it unmapped.
    pub unmaps: Range<u64>,
    /// The bytes that it mapped.
    pub maps: Range<u64>,
}

/// A call that mapped or unmapped pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageEvent {
    /// What it did.
    pub what: PageCall,
    /// The call.
    pub by: Moment,
}

/// The mappings at one moment.
#[derive(Default)]
pub struct Pages {
    blocks: Vec<Block>,
    /// By the first byte: the end, and the block that it is a part of.
    parts: BTreeMap<u64, (u64, usize)>,
}

impl Pages {
    /// Returns the mappings that calls made, in any order.
    #[must_use]
    pub fn of(mut events: Vec<PageEvent>) -> Vec<Block> {
        events.sort_by_key(|event| event.by.at);
        let mut pages = Pages::default();
        for PageEvent { what, by } in events {
            pages.unmap(&what.unmaps, by);
            pages.map(&what.maps, by);
        }
        pages.blocks
    }

    fn map(&mut self, range: &Range<u64>, by: Moment) {
        let range = whole(range);
        if range.is_empty() {
            return;
        }
        self.unmap(&range, by);
        let size = range.end - range.start;
        self.parts
            .insert(range.start, (range.end, self.blocks.len()));
        self.blocks.push(Block {
            address: range.start,
            size: Some(size),
            live_bytes: size,
            is_pages: true,
            made: Some(by),
            freed: None,
            end: End::Live,
        });
    }

    fn unmap(&mut self, range: &Range<u64>, by: Moment) {
        let range = whole(range);
        while let Some((start, end, block)) = self.last_in(&range) {
            self.parts.remove(&start);
            if start < range.start {
                self.parts.insert(start, (range.start, block));
            }
            if end > range.end {
                self.parts.insert(range.end, (end, block));
            }
            let gone = end.min(range.end) - start.max(range.start);
            let block = &mut self.blocks[block];
            block.live_bytes -= gone;
            if block.live_bytes == 0 {
                block.freed = Some(by);
                block.end = End::Freed;
            }
        }
    }

    /// The highest part that reaches into a range.
    fn last_in(&self, range: &Range<u64>) -> Option<(u64, u64, usize)> {
        let (start, (end, block)) = self.parts.range(..range.end).next_back()?;
        (*end > range.start && !range.is_empty()).then_some((*start, *end, *block))
    }
}

/// The whole pages of a range.
fn whole(range: &Range<u64>) -> Range<u64> {
    let start = range.start / PAGE * PAGE;
    let end = range.end.div_ceil(PAGE).saturating_mul(PAGE);
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, unmaps: Range<u64>, maps: Range<u64>) -> PageEvent {
        PageEvent {
            what: PageCall { unmaps, maps },
            by: Moment {
                seq: at,
                at,
                ts_ns: at as i64,
                tid: 1,
                function: 0,
                node: 0,
            },
        }
    }

    #[test]
    fn mappings_end_in_parts() {
        let blocks = Pages::of(vec![
            event(1, 0..0, 0x10000..0x14000),
            event(2, 0x11000..0x12000, 0..0),
            event(3, 0..0, 0x20000..0x20001),
            event(5, 0x10000..0x14000, 0..0),
            event(4, 0x20000..0x21000, 0x30000..0x32000),
        ]);
        let ends: Vec<(u64, u64, Option<u64>)> = blocks
            .iter()
            .map(|b| (b.address, b.live_bytes, b.freed.map(|by| by.at)))
            .collect();
        assert_eq!(
            ends,
            [
                (0x10000, 0, Some(5)),
                (0x20000, 0, Some(4)),
                (0x30000, 0x2000, None)
            ]
        );
    }

    #[test]
    fn what_is_mapped_over_another_mapping_takes_its_place() {
        let blocks = Pages::of(vec![
            event(1, 0..0, 0x10000..0x14000),
            event(2, 0..0, 0x11000..0x12000),
        ]);
        assert_eq!(blocks[0].live_bytes, 0x3000);
        assert_eq!(blocks[1].live_bytes, 0x1000);
        assert_eq!(blocks[0].end, End::Live);
    }
}
