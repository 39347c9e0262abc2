//! Where the program's code changes. What runs before such a change and what runs behind it is the same code, but for the range that
//! changes: other translations stay when the process goes from one side of it to the other. They stay as well where their code is not
//! there yet, because a library is mapped later, for example: the program executes none of it before.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::Replay;
use super::recorded::Recorded;
use crate::error::Result;
use crate::tracee::Tracee;
use crate::translate::{Code, Window};

const PAGE: u64 = 4096;
/// Where more changes than these lie in between, all translations are made anew.
const MOST: usize = 4096;
/// The same every so many times: each time that code is translated anew, jumps to it get longer.
const MOST_PARTS: u32 = 64;

/// All changes that are known.
#[derive(Default)]
pub(super) struct Changes {
    /// Pages from which code was executed.
    code: FxHashSet<u64>,
    /// How many entries were ever applied.
    applied: usize,
    /// In order, by the number of the entry.
    made: Vec<(usize, Range<u64>)>,
    /// How often translations were made anew in part.
    parts: u32,
    /// The last entry up to now that has changed code: the translations are of what was there since.
    pub(super) translated: usize,
    /// Pages that a function which is called cannot write, because their code was translated.
    pub(super) guarded: Option<FxHashSet<u64>>,
}

impl Changes {
    /// The program executes code of these pages.
    pub(super) fn executed(&mut self, pages: &[u64]) {
        self.code.extend(pages);
    }

    /// Entries up to this one were applied.
    pub(super) fn applied(&mut self, entry: usize) {
        self.applied = self.applied.max(entry);
    }

    /// Whether all entries before this one were applied for the first time, or just are, and none from it on. Then what is translated,
    /// executed or not, comes behind all changes up to here, and all others will be seen.
    fn are_all_ahead(&self, next: usize) -> bool {
        next >= self.applied
    }

    /// Whether an entry, which is applied, changes code in a range. The first time, it does if any of that was executed. Later it does
    /// if it did the first time: what was executed since comes behind it.
    fn is_one(&self, entry: usize, range: &Range<u64>) -> bool {
        match entry <= self.applied {
            true => self.of(entry).any(|made| made == range),
            false => self.has_code(range),
        }
    }

    /// An entry changes code in a range.
    fn add(&mut self, entry: usize, range: &Range<u64>) {
        if entry > self.applied {
            self.made.push((entry, range.clone()));
        }
    }

    fn of(&self, entry: usize) -> impl Iterator<Item = &Range<u64>> {
        let first = self.made.partition_point(|(of, _)| *of < entry);
        let made = self.made[first..].iter();
        made.take_while(move |(of, _)| *of == entry)
            .map(|(_, range)| range)
    }

    fn has_code(&self, range: &Range<u64>) -> bool {
        let (first, end) = (range.start / PAGE, range.end.div_ceil(PAGE));
        if end - first > self.code.len() as u64 {
            return self.code.iter().any(|page| (first..end).contains(page));
        }
        (first..end).any(|page| self.code.contains(&page))
    }

    /// What changes from one change to another, whichever comes first. `None`: too much.
    fn between(&mut self, one: usize, other: usize) -> Option<Vec<Range<u64>>> {
        let behind = |entry: usize| self.made.partition_point(|(of, _)| *of <= entry);
        let (from, to) = (behind(one.min(other)), behind(one.max(other)));
        self.parts = (self.parts + 1) % MOST_PARTS;
        if to - from > MOST || self.parts == 0 {
            return None;
        }
        let made = self.made[from..to].iter();
        Some(made.map(|(_, range)| range.clone()).collect())
    }
}

impl Replay {
    /// The entry that is applied may change code in a range.
    pub(super) fn code_may_change(&mut self, range: Range<u64>) -> Result<()> {
        match !range.is_empty() && self.changes.is_one(self.now.next, &range) {
            true => self.code_is_another(&range),
            false => Ok(()),
        }
    }

    /// The entry that is applied changes code in a range. The thread must go on by [`Self::enter`].
    pub(super) fn code_is_another(&mut self, range: &Range<u64>) -> Result<()> {
        self.changes.add(self.now.next, range);
        self.changes.translated = self.now.next;
        self.translator.forget_range(range.start, range.end);
        self.process.flush(&mut self.translator)
    }

    /// The translations that are used are of the code behind the change `of`: has them be of the code as it is now.
    pub(super) fn renew_translations(&mut self, of: usize) -> Result<()> {
        let now = self.changes.translated;
        if of != now {
            match self.changes.between(of, now) {
                Some(ranges) => ranges
                    .iter()
                    .for_each(|range| self.translator.forget_range(range.start, range.end)),
                None => self.translator.forget(),
            }
        }
        self.process.flush(&mut self.translator)
    }
}

/// The program's code, for a translation at the moment that the process has come to.
pub(super) struct Steady<'a> {
    window: Window<'a>,
    /// `None`: it may change without notice, all of it.
    recorded: Option<&'a Recorded>,
}

impl<'a> Steady<'a> {
    pub(super) fn new(
        recorded: &'a Recorded,
        changes: &Changes,
        next: usize,
        process: &'a Tracee,
    ) -> Steady<'a> {
        let is_known = changes.guarded.is_none() && changes.are_all_ahead(next);
        Steady {
            window: Window::new(process),
            recorded: is_known.then_some(recorded),
        }
    }
}

impl Code for Steady<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.window.read(address, into)
    }

    fn may_be_ahead(&self, address: u64) -> bool {
        let page = address & !(PAGE - 1);
        self.recorded
            .is_some_and(|recorded| !recorded.has_own_code(page, page + PAGE))
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the process goes between moments with different code, and executes at each the code of that moment; what it has
    //! translated stays otherwise. Method: a program writes the same function twice, and calls it, and a library is loaded at its start.

    use tempfile::TempDir;

    use super::*;
    use crate::replay::tested::recorded;

    const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
volatile int result;
static void write_code(unsigned char *page, unsigned char number) {
  unsigned char code[] = {0xb8, number, 0, 0, 0, 0xc3}; // mov eax, number; ret
  memcpy(page, code, sizeof code);
}
int main(void) {
  unsigned char *page = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  printf("%p\n", (void *)&result);
  for (int i = 1; i <= 3; i++) {
    write_code(page, i);
    for (int j = 0; j < 1000; j++) result = ((int (*)(void))page)();
  }
}
"#;

    fn value(replay: &Replay, at: u64) -> i32 {
        let mut bytes = [0; 4];
        assert_eq!(replay.read(at, &mut bytes), 4);
        i32::from_le_bytes(bytes)
    }

    #[test]
    fn code_is_that_of_its_moment_in_any_order() {
        let folder = TempDir::new().unwrap();
        let result = recorded(SOURCE, folder.path());
        let mut replay = Replay::open(folder.path()).unwrap();
        let end = replay.end();
        replay.checkpoints.every = end / 16;
        replay.checkpoints.entry = 0;
        replay.goto(end).unwrap();
        let moments: Vec<u64> = (1..64).map(|part| end * part / 64).collect();
        let mut seen = Vec::new();
        for moment in &moments {
            replay.goto(*moment).unwrap();
            seen.push(value(&replay, result));
        }
        assert!([1, 2, 3].iter().all(|number| seen.contains(number)));
        assert!(seen.is_sorted(), "{seen:?}");
        // Each second one comes from the other end.
        let ways = (0..moments.len()).map(|number| match number % 2 {
            0 => number,
            _ => moments.len() - number,
        });
        for number in ways.cycle().take(3 * moments.len()) {
            replay.goto(moments[number]).unwrap();
            assert_eq!(value(&replay, result), seen[number], "{number}");
        }
    }

    #[test]
    fn what_is_mapped_at_the_start_changes_no_code() {
        let folder = TempDir::new().unwrap();
        recorded(SOURCE, folder.path());
        let mut replay = Replay::open(folder.path()).unwrap();
        let end = replay.end();
        replay.goto(end).unwrap();
        let (blocks, made) = (replay.translator.size().0, replay.changes.made.len());
        assert!(made >= 2, "{made}");
        // Nothing but the function that is written is forgotten, wherever the process goes.
        for moment in [1000, end, 1000] {
            replay.goto(moment).unwrap();
            let left = replay.translator.size().0;
            assert!(left + 8 >= blocks, "{left} of {blocks}");
        }
        assert_eq!(replay.changes.made.len(), made);
    }
}
