//! What was captured besides with enters and leaves, by event.

use std::ops::Range;
use std::sync::Arc;

use store::columns::{CapturePage, CapturesFile};
use store::seal::SealedPart;

use crate::cache::Cache;
use crate::error::Result;
use crate::pages::{Page, Pages};
use crate::timeline::Timeline;

/// Pages that are kept: 1,024 captures each, which is 4 MiB where each has 4 KiB of stack.
const PAGES: usize = 8;

/// All captures of a recording.
pub(crate) struct Captures {
    files: Vec<CapturesFile>,
    pages: Pages,
    kept: Cache<u32, CapturePage>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    page: Arc<CapturePage>,
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

    fn page(&self, at: usize) -> Result<Arc<CapturePage>> {
        let Page { file, page, .. } = self.pages.get(at);
        let read = || Ok(self.files[file].page(page)?);
        self.kept.get(at as u32, read)
    }

    /// Returns what was captured with event `seq`, if anything was.
    pub(crate) fn at(&self, seq: u64) -> Result<Option<Capture>> {
        let Some(at) = self.pages.holding(seq) else {
            return Ok(None);
        };
        let page = self.page(at)?;
        let row = page.before(seq);
        let is_it = row < page.rows() && page.seq(row) == seq;
        Ok(is_it.then_some(Capture { page, row }))
    }

    /// Hands the captures of events before `seq` to `each`, the last one first and at most `most` of them.
    pub(crate) fn before(
        &self,
        seq: u64,
        most: usize,
        mut each: impl FnMut(Capture) -> Result<()>,
    ) -> Result<()> {
        let end = self.pages.beginning_before(seq);
        let mut left = most;
        for at in (0..end).rev() {
            let page = self.page(at)?;
            for row in (0..page.before(seq)).rev() {
                if left == 0 {
                    return Ok(());
                }
                left -= 1;
                let page = Arc::clone(&page);
                each(Capture { page, row })?;
            }
        }
        Ok(())
    }

    /// Returns the events among `range`, and their threads, with which memory was captured at an address that `wanted`
    /// accepts, in order.
    pub(crate) fn showing(
        &self,
        range: &Range<u64>,
        wanted: impl Fn(u64, u64) -> bool,
    ) -> Result<Vec<(u64, Option<u32>)>> {
        let mut found = Vec::new();
        let end = self.pages.beginning_before(range.end);
        for at in self.pages.reaching(range.start)..end {
            let page = self.page(at)?;
            for row in page.before(range.start)..page.before(range.end) {
                let seq = page.seq(row);
                if page.sections(row).any(|part| wanted(seq, part.addr)) {
                    found.push((seq, page.tid(row)));
                }
            }
        }
        Ok(found)
    }
}

impl Timeline {
    /// Returns what was captured when event `seq` was. Calls that end with the one they made last, by a jump, end with one return:
    /// what was captured then is kept with the outermost of them.
    pub(crate) fn captured_at(&self, seq: u64) -> Result<Option<Capture>> {
        let own = self.captures.at(seq)?;
        if own.is_some() || self.captures.pages.len() == 0 {
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
        self.page.seq(self.row)
    }

    /// Returns the thread.
    pub(crate) fn tid(&self) -> Option<u32> {
        self.page.tid(self.row)
    }

    /// Returns the general registers by their DWARF numbers, where they were captured.
    pub(crate) fn registers(&self) -> Option<[u64; store::wire::CAPTURE_REGISTER_WORDS]> {
        self.page.registers(self.row)
    }

    /// Returns the memory: addresses and bytes.
    pub(crate) fn sections(&self) -> impl Iterator<Item = store::wire::Section<'_>> {
        self.page.sections(self.row)
    }
}
