//! Which code of the program has translations, and where these are.

use rustc_hash::FxHashMap;

const PAGE: u64 = 4096;

#[derive(Default)]
pub(super) struct Blocks {
    /// From an address of the program to its translation.
    bodies: FxHashMap<u64, u64>,
    /// The blocks of each page of the program that has any: their first addresses, and those behind them.
    pages: FxHashMap<u64, Vec<(u64, u64)>>,
    /// Pages that have a new block since they were asked for.
    fresh: Vec<u64>,
}

impl Blocks {
    /// The translation of the code at `pc`.
    pub(super) fn get(&self, pc: u64) -> Option<u64> {
        self.bodies.get(&pc).copied()
    }

    pub(super) fn count(&self) -> usize {
        self.bodies.len()
    }

    /// The code from `pc` up to `end` has a translation.
    pub(super) fn add(&mut self, pc: u64, end: u64, body: u64) {
        self.bodies.insert(pc, body);
        for page in pc / PAGE..=(end - 1) / PAGE {
            self.pages.entry(page).or_default().push((pc, end));
            self.fresh.push(page);
        }
    }

    /// Those of a page.
    pub(super) fn of(&self, page: u64) -> &[(u64, u64)] {
        self.pages.get(&page).map_or(&[], Vec::as_slice)
    }

    pub(super) fn clear(&mut self) {
        self.bodies.clear();
        self.pages.clear();
    }

    pub(super) fn take_fresh(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.fresh)
    }

    /// The pages in a range that have any.
    pub(super) fn pages_in(&self, start: u64, end: u64) -> Vec<u64> {
        let range = start / PAGE..end.div_ceil(PAGE);
        if range.end - range.start > self.pages.len() as u64 {
            let pages = self.pages.keys().copied();
            return pages.filter(|page| range.contains(page)).collect();
        }
        range.filter(|page| self.pages.contains_key(page)).collect()
    }

    /// Takes out the blocks of pages in a range: their addresses and translations.
    pub(super) fn take(&mut self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        for page in self.pages_in(start, end) {
            for (pc, _) in self.pages.remove(&page).unwrap_or_default() {
                taken.extend(self.bodies.remove(&pc).map(|body| (pc, body)));
            }
        }
        taken
    }
}
