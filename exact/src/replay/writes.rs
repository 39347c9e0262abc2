//! Searching for writes to some memory: stretches that did not write to its pages are left out, and of the others, where the processor can
//! watch it, only the instructions that wrote are looked at closely.

use std::ops::Range;

use super::Replay;
use super::search::{REGISTERS, pieces};
use super::seek::{Batch, Found};
use crate::error::Result;

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
        let mut begun = None;
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
                begun = None;
                nothing_until(next, found, report)
            } else {
                self.seek_stretch(at..next, memory, &mut begun, found, report)?
            };
            if !goes_on {
                return Ok(());
            }
            at = next;
        }
        self.goto(positions.end)
    }

    /// `begun`: the writes at the first position itself, if they are known; afterwards those at the end.
    fn seek_stretch(
        &mut self,
        stretch: Range<u64>,
        memory: &[Range<u64>],
        begun: &mut Option<Vec<u64>>,
        found: &mut Found,
        report: &mut dyn FnMut(&Batch) -> bool,
    ) -> Result<bool> {
        let can_be_watched = |range: &Range<u64>| {
            let length = range.end.saturating_sub(range.start);
            length > 0 && pieces(range.start, length.min(64)).len() <= REGISTERS
        };
        if !memory.iter().all(can_be_watched) {
            *begun = None;
            return self.seek_part(stretch, found, report);
        }
        let most = (stretch.end - stretch.start) / INSTRUCTIONS_OF_A_WRITE;
        let Some(hits) = self.hits(&stretch, memory, begun, most as usize)? else {
            return self.seek_part(stretch, found, report);
        };
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

    /// Where a stretch writes to any of this memory, in order; `None`: perhaps in more places than `most`.
    fn hits(
        &mut self,
        stretch: &Range<u64>,
        memory: &[Range<u64>],
        begun: &mut Option<Vec<u64>>,
        most: usize,
    ) -> Result<Option<Vec<u64>>> {
        // What happens at the first position itself is met on the way to it.
        let from = match begun {
            Some(_) => stretch.start,
            None => stretch.start.saturating_sub(1),
        };
        let mut hits = begun.take().unwrap_or_default();
        for range in memory {
            self.goto(from)?;
            let length = range.end - range.start;
            hits.extend(self.writes(range.start, length, stretch.end, most + 1)?);
            if hits.len() > most {
                return Ok(None);
            }
        }
        hits.sort_unstable();
        hits.dedup();
        let after = hits.partition_point(|hit| *hit < stretch.end);
        *begun = Some(hits.split_off(after));
        // One of the first instruction may count as one of the instruction before it.
        hits.retain(|hit| hit.saturating_add(1) >= stretch.start);
        Ok(Some(hits))
    }
}

/// Reports that there is nothing up to a position.
fn nothing_until(position: u64, found: &mut Found, report: &mut dyn FnMut(&Batch) -> bool) -> bool {
    let batch = found.take(position);
    let goes_on = report(&batch);
    found.resume(batch);
    goes_on
}
