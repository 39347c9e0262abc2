//! The pages of the sealed files of one kind, in the order of their events.

use store::columns::PageBounds;

/// A page of a file, and its first and last event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub file: usize,
    pub page: usize,
    pub first: u64,
    pub last: u64,
}

/// All pages.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    all: Vec<Page>,
    files: usize,
}

impl Pages {
    /// Adds the pages of the next file, whose events follow those of the files before.
    pub(crate) fn add(&mut self, pages: &[PageBounds]) {
        let file = self.files;
        self.files += 1;
        let pages = pages.iter().enumerate().map(|(page, bounds)| Page {
            file,
            page,
            first: bounds.range.0,
            last: bounds.range.1,
        });
        self.all.extend(pages);
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns one by its number.
    ///
    /// # Panics
    /// The number is too large.
    pub(crate) fn get(&self, at: usize) -> Page {
        self.all[at]
    }

    /// Returns the number of the first page that has events from `seq` on.
    pub(crate) fn reaching(&self, seq: u64) -> usize {
        self.all.partition_point(|page| page.last < seq)
    }

    /// Returns how many pages begin before `seq`.
    pub(crate) fn beginning_before(&self, seq: u64) -> usize {
        self.all.partition_point(|page| page.first < seq)
    }

    /// Returns the number of the page that event `seq` is in, if it is in any.
    pub(crate) fn holding(&self, seq: u64) -> Option<usize> {
        let at = self.reaching(seq);
        let page = self.all.get(at)?;
        (page.first <= seq).then_some(at)
    }
}
