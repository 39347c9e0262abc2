//! Calls as rows that can be compared: which function, a hash of its arguments, and one of how it ended.
//!
//! A thread's rows are in the order in which its calls ended, so a call comes after those inside it. The number of direct
//! calls inside is part of the row: together with the order it tells the whole tree.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::forms::{Form, Formed, Word};
use super::hash;
use super::hashing::Hashing;
use super::origins::Seen;
use super::places::Places;
use super::read::Batch;
use super::targets::Targets;

/// A call, as it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The number that both recordings have for its function.
    pub function: u32,
    /// How many calls it made directly, of functions that both recordings have.
    pub inside: u32,
    /// A hash of its arguments.
    pub args: Formed,
    /// A hash of its result, or of the way in which it ended without one.
    pub result: Formed,
    /// Its enter event.
    pub start: u64,
    /// Its leave event, or its enter event where only that is recorded; `u64::MAX` if it had not ended.
    pub end: u64,
}

impl Row {
    /// Hashes everything that any two runs have alike.
    #[inline]
    pub fn hash(&self) -> u64 {
        self.hashed(self.args.class, self.result.class)
    }

    /// Hashes which blocks and descriptors there are, too.
    #[inline]
    pub fn exact_hash(&self) -> u64 {
        self.hashed(self.args.exact, self.result.exact)
    }

    /// Hashes the function, its arguments and its result, as any two runs have them, but not how many calls it made.
    #[inline]
    pub fn call_hash(&self) -> u64 {
        let of_function = hash::fold(self.args.class, u64::from(self.function));
        hash::fold(of_function, self.result.class)
    }

    #[inline]
    fn hashed(&self, args: u64, result: u64) -> u64 {
        let of_function = hash::fold(
            args,
            u64::from(self.function) << 32 | u64::from(self.inside),
        );
        hash::fold(of_function, result)
    }

    /// Tells whether another row is the same, exactly or by what any two runs have alike.
    #[inline]
    pub fn is_same(&self, other: &Row, is_exact: bool) -> bool {
        match is_exact {
            true => self.exact_hash() == other.exact_hash(),
            false => self.hash() == other.hash(),
        }
    }
}

const UNWOUND: u64 = 0x75_6e77_6f75_6e64;
const UNFINISHED: u64 = 0x6f70_656e;

/// What makes rows of one recording's calls.
pub struct RowMaker<'r> {
    /// By function id: the shared number.
    pub numbers: &'r [Option<u32>],
    /// By function id: what is compared.
    pub forms: &'r [Form],
    /// Words that may be addresses.
    pub pointers: &'r [Word],
    /// What addresses point into.
    pub places: &'r Places,
    /// What arguments point to.
    pub targets: &'r Targets<'r>,
    /// Pointers to the stack are compared by their distance from the stack pointer.
    pub has_slots: bool,
    /// Where threads worked on hash tables with random keys: no call there is compared.
    pub hashing: &'r Hashing,
}

/// The calls of one thread that were seen at each depth, since the last one around them ended.
#[derive(Clone, Debug, Default)]
pub struct Nested(Vec<u32>);

impl Nested {
    /// Takes a call that ended at `depth`, and returns how many calls it made directly. What is not compared passes its
    /// own on to the call around it.
    #[inline]
    fn ended(&mut self, depth: usize, is_compared: bool) -> u32 {
        if self.0.len() < depth + 2 {
            self.0.resize(depth + 2, 0);
        }
        let inside = std::mem::take(&mut self.0[depth + 1]);
        self.0[depth] = self.0[depth].wrapping_add(if is_compared { 1 } else { inside });
        inside
    }
}

impl RowMaker<'_> {
    /// Has the processor read what these rows will need to know of blocks. Here one address does not wait for another; between
    /// the hashes of two rows each would.
    pub fn prepare(&self, batch: &Batch, rows: Range<usize>) {
        if !self.places.has_blocks() {
            return;
        }
        let mut read = 0;
        for word in self.pointers {
            for row in rows.clone() {
                if let Some(address) = batch.word(row, *word) {
                    read ^= self.places.touch(address);
                }
            }
        }
        std::hint::black_box(read);
    }

    /// Returns a call as a row; `None` if its function is not compared.
    #[inline]
    pub fn row(&self, batch: &Batch, at: usize, nested: &mut Nested) -> Option<Row> {
        let id = batch.function(at) as usize;
        let number = self.numbers.get(id).copied().flatten();
        let number = number.filter(|_| !self.hashing.covers(batch.tid(at), batch.start(at)));
        let inside = nested.ended(batch.depth(at), number.is_some());
        let function = number?;
        let form = &self.forms[id];
        let word = |word| batch.word(at, word);
        let (start, end) = (batch.start(at), batch.end(at));
        let tid = batch.tid(at);
        // A result that points to the stack points to what the call got, or to nothing.
        let seen = |at, sp| Seen { tid, start, at, sp };
        let result = match end {
            Some(_) if batch.unwound(at) => Formed::of(UNWOUND),
            Some(end) if !batch.open_at_end(at) => {
                form.result_hash(word, seen(end, 0), self.places)
            }
            _ => Formed::of(UNFINISHED),
        };
        Some(Row {
            function,
            inside,
            args: {
                let sp = self.has_slots.then(|| word(Word::Sp)).flatten();
                let seen = seen(start, sp.unwrap_or(0));
                let args = form.args_hash(word, seen, self.places);
                self.targets.with(args, id, word, start, self.places)
            },
            result,
            start,
            end: batch.place(at),
        })
    }
}

/// A state for each thread; the thread of the last call is found at once.
#[derive(Debug)]
pub struct ByThread<T> {
    all: Vec<(u32, T)>,
    index: FxHashMap<u32, usize>,
    last: usize,
}

impl<T> Default for ByThread<T> {
    fn default() -> Self {
        ByThread {
            all: Vec::new(),
            index: FxHashMap::default(),
            last: 0,
        }
    }
}

impl<T: Default> ByThread<T> {
    /// Returns the state of a thread.
    #[inline]
    pub fn of(&mut self, tid: u32) -> &mut T {
        if self.all.get(self.last).is_none_or(|(last, _)| *last != tid) {
            let all = &mut self.all;
            self.last = *self.index.entry(tid).or_insert_with(|| {
                all.push((tid, T::default()));
                all.len() - 1
            });
        }
        &mut self.all[self.last].1
    }

    /// Returns all states.
    pub fn into_all(self) -> Vec<(u32, T)> {
        self.all
    }
}
