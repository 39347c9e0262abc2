//! The registers and memory that were captured with enters and leaves, by event.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use store::columns::{CapturePage, CapturesFile};
use store::seal::SealedPart;

use crate::cache::Cache;
use crate::error::Result;
use crate::pages::{Page, Pages};
use crate::timeline::Timeline;

/// Most pages that are kept: 1,024 captures each, or 4 MiB where each has 4 KiB of stack.
const PAGES: usize = 8;
/// Pages that are read along with one, if the page before it was requested too.
const PAGES_AHEAD: usize = 3;

/// All captures of a recording.
pub(crate) struct Captures {
    files: Vec<CapturesFile>,
    pages: Pages,
    kept: Cache<u32, Shown>,
}

/// A page, and the addresses of the memory that it shows.
#[derive(Debug)]
struct Shown {
    page: CapturePage,
    /// Row, first address and end address, row by row.
    places: Vec<(u32, u64, u64)>,
    /// The union of all these addresses, as ascending ranges that do not touch; made on demand.
    all: OnceLock<Vec<Range<u64>>>,
}

impl Shown {
    fn new(page: CapturePage) -> Self {
        let mut places = Vec::new();
        for row in 0..page.rows() {
            places.extend(page.sections(row).map(|section| {
                let end = section.addr.saturating_add(section.bytes.len() as u64);
                (row as u32, section.addr, end)
            }));
        }
        Self {
            page,
            places,
            all: OnceLock::new(),
        }
    }

    /// Returns whether any row shows some of `range`.
    fn shows(&self, range: &Range<u64>) -> bool {
        let places = || self.places.iter().map(|(_, begin, end)| *begin..*end);
        let all = self.all.get_or_init(|| united(places().collect()));
        let at = all.partition_point(|part| part.end <= range.start);
        all.get(at).is_some_and(|part| part.start < range.end)
    }
}

/// The same addresses, merged into as few ranges as possible, ascending.
fn united(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => all.push(range),
        }
    }
    all
}

/// What was captured with an event.
#[derive(Clone, Debug)]
pub struct Capture {
    shown: Arc<Shown>,
    row: usize,
}

impl Captures {
    /// Opens the files of captures.
    pub(crate) fn open(parts: &[SealedPart]) -> Result<Self> {
        let (mut files, mut pages) = (Vec::new(), Pages::default());
        for part in parts.iter().filter(|part| part.part.captures > 0) {
            let file = CapturesFile::open(&part.captures)?;
            pages.add(file.pages());
            files.push(file);
        }
        Ok(Self {
            files,
            pages,
            kept: Cache::new(PAGES),
        })
    }

    /// Returns whether anything was captured.
    pub(crate) fn is_any(&self) -> bool {
        self.pages.len() > 0
    }

    fn page(&self, at: usize) -> Result<Arc<Shown>> {
        let Page { file, page, .. } = self.pages.get(at);
        let read = || {
            // A reader that moves forward will want the next pages.
            let goes_on = at > 0 && self.kept.holds(&(at as u32 - 1));
            let more = if goes_on { PAGES_AHEAD } else { 0 };
            let mut read = self.files[file].page(page, more)?.into_iter();
            let wanted = read.next().map(Shown::new);
            for (next, page) in (at as u32 + 1..).zip(read) {
                self.kept.put(next, Shown::new(page));
            }
            Ok(wanted.expect("the page is the first one"))
        };
        self.kept.get(at as u32, read)
    }

    /// Returns what was captured with event `seq`, if anything was.
    pub(crate) fn at(&self, seq: u64) -> Result<Option<Capture>> {
        let Some(at) = self.pages.holding(seq) else {
            return Ok(None);
        };
        let shown = self.page(at)?;
        let page = &shown.page;
        let row = page.before(seq);
        let is_it = row < page.rows() && page.seq(row) == seq;
        Ok(is_it.then_some(Capture { shown, row }))
    }

    /// Returns, latest first, those of the last `most` captures before event `seq` that show some of `ranges`.
    pub(crate) fn before(
        &self,
        seq: u64,
        most: usize,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Capture>> {
        let end = self.pages.beginning_before(seq);
        let (mut found, mut left) = (Vec::new(), most);
        for at in (0..end).rev() {
            if left == 0 {
                break;
            }
            let shown = self.page(at)?;
            let end = shown.page.before(seq);
            let first = end.saturating_sub(left);
            left -= end - first;
            if !ranges.iter().any(|range| shown.shows(range)) {
                continue;
            }
            let places = &shown.places;
            let before = |row: usize| places.partition_point(|place| (place.0 as usize) < row);
            let mut last = None;
            for (row, begin, end) in places[before(first)..before(end)].iter().rev() {
                // The reader of the bytes checks the content again.
                let shows = |range: &Range<u64>| *begin < range.end && range.start < *end;
                if last != Some(*row) && ranges.iter().any(shows) {
                    last = Some(*row);
                    let (shown, row) = (Arc::clone(&shown), *row as usize);
                    found.push(Capture { shown, row });
                }
            }
        }
        Ok(found)
    }

    /// Returns the events among `range` with a capture that `wanted` accepts, and their threads, in
    /// order. `wanted` gets the event and the addresses of the memory.
    pub(crate) fn showing(
        &self,
        range: &Range<u64>,
        wanted: impl Fn(u64, &mut dyn Iterator<Item = u64>) -> bool,
    ) -> Result<Vec<(u64, Option<u32>)>> {
        let mut found = Vec::new();
        let end = self.pages.beginning_before(range.end);
        for at in self.pages.reaching(range.start)..end {
            let page = &self.page(at)?.page;
            for row in page.before(range.start)..page.before(range.end) {
                let seq = page.seq(row);
                if wanted(seq, &mut page.sections(row).map(|part| part.addr)) {
                    found.push((seq, page.tid(row)));
                }
            }
        }
        Ok(found)
    }
}

impl Timeline {
    /// Returns what was captured with event `seq` itself, if anything was.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn captured_with(&self, seq: u64) -> Result<Option<Capture>> {
        self.captures.at(seq)
    }

    /// Returns the capture at the moment of event `seq`. Calls that end by a tail call all end with one return:
    /// its capture is stored with the outermost of them.
    pub(crate) fn captured_at(&self, seq: u64) -> Result<Option<Capture>> {
        let own = self.captures.at(seq)?;
        if own.is_some() || !self.captures.is_any() {
            return Ok(own);
        }
        let mut left = self.calls.left_at(seq)?;
        while let Some(call) = left.filter(|call| call.tail && call.returned()) {
            let Some(outer) = self.calls.parent(&call)? else {
                break;
            };
            let is_same = outer.slot == call.slot && outer.returned();
            let Some(end) = outer.end.filter(|end| is_same && call.end == Some(end - 1)) else {
                break;
            };
            if let Some(found) = self.captures.at(end)? {
                return Ok(Some(found));
            }
            left = Some(outer);
        }
        Ok(None)
    }
}

impl Capture {
    /// Returns the event.
    pub(crate) fn seq(&self) -> u64 {
        self.shown.page.seq(self.row)
    }

    /// Returns the thread.
    pub(crate) fn tid(&self) -> Option<u32> {
        self.shown.page.tid(self.row)
    }

    /// Returns the general registers by their DWARF numbers, where they were captured.
    pub(crate) fn registers(&self) -> Option<[u64; store::wire::CAPTURE_REGISTER_WORDS]> {
        self.shown.page.registers(self.row)
    }

    /// Returns the thread pointer, where it was captured.
    pub(crate) fn thread_pointer(&self) -> Option<u64> {
        self.shown.page.thread_pointer(self.row)
    }

    /// Returns the memory: addresses and bytes.
    pub fn sections(&self) -> impl Iterator<Item = store::wire::Section<'_>> {
        self.shown.page.sections(self.row)
    }
}

#[cfg(test)]
mod tests {
    use super::united;

    #[test]
    fn ranges_that_touch_become_one() {
        let ranges = vec![8..16, 40..48, 4..10, 16..20, 60..60, 41..42, 48..50];
        assert_eq!(united(ranges), [4..20, 40..50]);
        assert_eq!(united(Vec::new()), []);
    }
}
