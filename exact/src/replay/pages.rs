//! Which pages were written between two copies of the process, as the kernel tells it: a page that has been written since the last
//! fork(2) is no longer shared. Searches leave out what did not touch their pages.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::Replay;
use crate::error::{Context as _, Result};
use crate::log::{Entry, Space};

const PAGE: u64 = 4096;
/// Pages that are asked about at once.
const PAGES: u64 = 1 << 16;
/// More of them are not looked at: then it is not known what was written.
const MOST: u64 = 1 << 22;
/// In pagemap (Linux's Documentation/admin-guide/mm/pagemap.rst): mapped by this process alone; swapped out; in memory.
const ALONE: u64 = 1 << 56;
const SWAPPED: u64 = 1 << 62;
const PRESENT: u64 = 1 << 63;

/// Stretches of pages, by their numbers: from, and up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pages(Vec<(u64, u64)>);

impl Pages {
    fn add(&mut self, page: u64) {
        match self.0.last_mut() {
            Some((_, end)) if *end == page => *end += 1,
            _ => self.0.push((page, page + 1)),
        }
    }

    /// Whether any of these bytes lies in one of them.
    pub(super) fn touch(&self, address: u64, length: u64) -> bool {
        let (first, last) = (
            address / PAGE,
            address.saturating_add(length.max(1) - 1) / PAGE,
        );
        let after = self.0.partition_point(|(_, end)| *end <= first);
        self.0.get(after).is_some_and(|(start, _)| *start <= last)
    }

    /// These and others.
    pub(super) fn join(&mut self, others: &Pages) {
        let mut all = [self.0.as_slice(), others.0.as_slice()].concat();
        all.sort_unstable();
        self.0.clear();
        for (start, end) in all {
            match self.0.last_mut() {
                Some((_, last)) if *last >= start => *last = end.max(*last),
                _ => self.0.push((start, end)),
            }
        }
    }
}

impl Replay {
    /// The pages that were written since the last copy was made, and perhaps some more. `None`: there is too much memory to know.
    pub(super) fn written_pages(&self) -> Result<Option<Pages>> {
        let file = File::open(format!("/proc/{}/pagemap", self.process.pid))
            .context("read the pages of a process")?;
        let ranges = self.mapped()?;
        if ranges
            .iter()
            .map(|range| (range.end - range.start) / PAGE)
            .sum::<u64>()
            > MOST
        {
            return Ok(None);
        }
        let mut found = Pages::default();
        let mut flags = vec![0; PAGES as usize * 8];
        for range in ranges {
            let (mut page, end) = (range.start / PAGE, range.end / PAGE);
            while page < end {
                let count = PAGES.min(end - page);
                let part = &mut flags[..count as usize * 8];
                if file.read_exact_at(part, page * 8).is_err() {
                    return Ok(None);
                }
                for (number, flags) in (page..).zip(part.chunks_exact(8)) {
                    let flags = flags.try_into().map_or(0, u64::from_le_bytes);
                    if flags & SWAPPED != 0 || flags & (PRESENT | ALONE) == PRESENT | ALONE {
                        found.add(number);
                    }
                }
                page += count;
            }
        }
        found.join(&self.replaced_pages());
        let shared = self.shared_spans().iter();
        let shared = shared.map(|span| (span.start / PAGE, span.end.div_ceil(PAGE)));
        found.join(&Pages(shared.collect()));
        Ok(Some(found))
    }

    /// The pages that were mapped, unmapped, moved or emptied since the last copy: what was written there before is not seen any more.
    fn replaced_pages(&self) -> Pages {
        let last = self.checkpoints.up_to(self.now.count);
        let from = last.map_or(0, |last| last.moment.next);
        let mut found = Pages::default();
        let entries = (from..self.now.next).map_while(|index| self.recorded.entries.get(index));
        for entry in entries {
            let (space, others) = match &*entry {
                Entry::SystemCall { space, emptied, .. } => (space.as_slice(), emptied),
                Entry::Resumed { spaces, .. } => (&[][..], spaces),
                _ => continue,
            };
            for space in space.iter().chain(others) {
                let spans = match *space {
                    Space::Map(span) | Space::Unmap(span) | Space::Discard(span) => [span, span],
                    Space::Move { from, to } => [from, to],
                    Space::Protect(_) => continue,
                };
                let spans = spans.map(|span| (span.start / PAGE, span.end.div_ceil(PAGE)));
                found.join(&Pages(spans.to_vec()));
            }
        }
        found
    }
}
