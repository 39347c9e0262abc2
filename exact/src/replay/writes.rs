//! Searching for writes to some memory: stretches that did not write to its pages are left out, and of the others, where the processor can
//! watch it, only the instructions that wrote are looked at closely.

use std::ops::Range;

use super::Replay;
use super::search::{REGISTERS, pieces};
use super::seek::{Batch, Found};
use super::step::made;
use crate::error::Result;
use crate::log::Entry;

/// Going to a write takes as long as looking at so many instructions closely.
const INSTRUCTIONS_OF_A_WRITE: u64 = 1 << 15;

impl Replay {
    /// Reports the writes to any of this memory; the process is somewhere in between afterwards.
    pub(super) fn seek_writes(
        &mut self,
        positions: Range<u64>,
        memory: &[Range<u64>],
        found: &mut Found,
        report: &mut dyn FnMut(&Batch) -> bool,
    ) -> Result<()> {
        let touched = |range: &Range<u64>| (range.start, range.end.saturating_sub(range.start));
        let mut at = positions.start;
        while at < positions.end {
            self.goto(at)?;
            let next = self
                .checkpoints
                .after(self.now.count)
                .min(at.saturating_add(self.checkpoints.every))
                .min(positions.end);
            let untouched = memory.iter().map(touched).all(|(address, length)| {
                self.checkpoints
                    .untouched_until(self.now.count, address, length)
                    .is_some_and(|until| until <= positions.end)
            });
            let goes_on = if untouched {
                nothing_until(next, found, report)
            } else {
                self.seek_stretch(at..next, memory, found, report)?
            };
            if !goes_on {
                return Ok(());
            }
            at = next;
        }
        self.goto(positions.end)
    }

    fn seek_stretch(
        &mut self,
        stretch: Range<u64>,
        memory: &[Range<u64>],
        found: &mut Found,
        report: &mut dyn FnMut(&Batch) -> bool,
    ) -> Result<bool> {
        let [one] = memory else {
            return self.seek_part(stretch, found, report);
        };
        let length = one.end.saturating_sub(one.start);
        if length == 0 || pieces(one.start, length.min(64)).len() > REGISTERS {
            return self.seek_part(stretch, found, report);
        }
        let mut hits = self.kernel_makes(&stretch, one);
        // What happens at the first position itself is met on the way to it.
        self.goto(stretch.start.saturating_sub(1))?;
        hits.extend(self.writes(one.start, length, stretch.end, usize::MAX)?);
        hits.retain(|hit| stretch.contains(hit));
        hits.sort_unstable();
        hits.dedup();
        let alone = hits.len() as u64 * INSTRUCTIONS_OF_A_WRITE;
        if alone > stretch.end - stretch.start {
            return self.seek_part(stretch, found, report);
        }
        // A repeated instruction that the processor has interrupted may count as the one before it.
        let mut next = stretch.start;
        for hit in hits {
            let end = (hit + 2).min(stretch.end);
            if end > next && !self.seek_part(hit.max(next)..end, found, report)? {
                return Ok(false);
            }
            next = end.max(next);
        }
        Ok(nothing_until(stretch.end, found, report))
    }

    /// Where calls map, move or empty some of this memory.
    fn kernel_makes(&self, stretch: &Range<u64>, memory: &Range<u64>) -> Vec<u64> {
        let first = self
            .recorded
            .entries
            .partition_point(|entry| entry.at() < stretch.start);
        let entries = self.recorded.entries[first..].iter();
        let makes = entries
            .take_while(|entry| entry.at() < stretch.end)
            .filter_map(|entry| match &**entry {
                Entry::SystemCall {
                    at,
                    space: Some(space),
                    ..
                } => made(*space)
                    .filter(|span| span.start < memory.end && memory.start < span.end)
                    .map(|_| *at),
                _ => None,
            });
        makes.collect()
    }
}

/// Reports that there is nothing up to a position.
fn nothing_until(position: u64, found: &mut Found, report: &mut dyn FnMut(&Batch) -> bool) -> bool {
    let batch = found.take(position);
    let goes_on = report(&batch);
    found.resume(batch);
    goes_on
}
