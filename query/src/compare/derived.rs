//! Numbers that a program makes of addresses, such as hashes of pointers. Where addresses are random, they differ in each run, though
//! both runs do the same.
//!
//! A number counts as one if it is an address without its low or high bits, or with its bits turned; if it is the result of a call
//! that got one, or made one on its way, in two runs of one build; and where it is passed on. Only calls that differ in nothing else
//! are taken for the same.
//!
//! Of a program with fixed addresses, those of the heap look like any numbers. Such a number counts as an address if it lies as far
//! from that of the other run as the pointers of both do. Pointers that calls got or returned tell that first.

use std::collections::BTreeMap;

use debuginfo::short_name;
use rustc_hash::FxHashSet;
use store::columns::ReadCall;
use values::quantity::count;

use super::forms::Atom;
use super::origins::Seen;
use super::parted::name_of;
use super::places::is_randomised;
use super::read::Position;
use super::rows::Row;
use super::side::{Side, entry_of, word_of};
use crate::error::Result;
use crate::overview::told;

/// Calls that are looked at and differ in something else. After so many the recordings differ, whatever the rest is.
const MOST_OTHERS: u32 = 4096;
/// Pairs of numbers that are remembered.
const MOST_PAIRS: usize = 1 << 18;
/// Smaller numbers are too common to be known again.
const LEAST_KNOWN: u64 = 1 << 20;
/// Smaller results are no hashes, but counts and positions.
const LEAST_HASH: u64 = 1 << 32;
/// The highest numbers of a type stand for errors.
const ERRORS: u64 = 4096;
/// Below this no address is.
const FIRST_ADDRESS: u64 = 4096;
/// Calls of a thread in which a pointer to the heap is looked for.
const MOST_FIRST: u32 = 1024;
/// Functions that are named.
const MOST_NAMES: usize = 3;
/// A kernel moves what it maps by whole pages.
const IN_PAGE: u64 = 0xfff;

/// The same number in both recordings.
type Numbers = (u64, u64);

/// Finds them.
pub struct Derived<'d> {
    sides: (&'d Side<'d>, &'d Side<'d>),
    is_same_build: bool,
    pairs: FxHashSet<Numbers>,
    /// Where the last call began that had one, in the first recording.
    last: Option<u64>,
    /// How far the heap of the second run lies behind that of the first, once a pointer has told it: programs with fixed addresses.
    moved: Option<u64>,
    others: u32,
    /// By shared number of the function: how many calls had such numbers.
    found: BTreeMap<u32, u64>,
}

/// A word of both calls.
struct Pair {
    atoms: (Atom, Atom),
    words: Numbers,
    seen: (Seen, Seen),
}

/// What the arguments of both calls say.
#[derive(Default)]
struct Args {
    /// Those that are addresses of the same.
    addresses: Vec<Numbers>,
    /// Those that are made of addresses.
    made: Vec<Numbers>,
    /// A whole number is an address.
    has_number: bool,
}

impl<'d> Derived<'d> {
    /// Begins with two recordings that both have random addresses.
    pub fn new(sides: (&'d Side<'d>, &'d Side<'d>), is_same_build: bool) -> Self {
        Self {
            sides,
            is_same_build,
            pairs: FxHashSet::default(),
            last: None,
            moved: None,
            others: 0,
            found: BTreeMap::new(),
        }
    }

    /// What follows is of other threads: these of both recordings.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn next_thread(&mut self, own: u32, other: u32) -> Result<()> {
        self.last = None;
        let is_fixed = |side: &Side<'_>| side.places().has_fixed_heap();
        if self.moved.is_none() && is_fixed(self.sides.0) && is_fixed(self.sides.1) {
            self.moved = self.moved_in(own, other)?;
        }
        Ok(())
    }

    /// Returns how far the heap has moved, as the first pointer to it tells that both threads got or returned.
    fn moved_in(&self, own: u32, other: u32) -> Result<Option<u64>> {
        let mut own = self.sides.0.rows(own, Position::default());
        let mut other = self.sides.1.rows(other, Position::default());
        for _ in 0..MOST_FIRST {
            let (Some(a), Some(b)) = (own.pass()?, other.pass()?) else {
                break;
            };
            // From here on, the calls do not belong together.
            if a.function != b.function {
                break;
            }
            let moved = self.moved_between(&a, &b);
            if moved.is_some() {
                return Ok(moved);
            }
        }
        Ok(None)
    }

    fn moved_between(&self, a: &Row, b: &Row) -> Option<u64> {
        let calls = (
            call_at(self.sides.0, a.start)?,
            call_at(self.sides.1, b.start)?,
        );
        let (_, own) = self.sides.0.compared(calls.0.function_id)?;
        let (_, other) = self.sides.1.compared(calls.1.function_id)?;
        let args = own.args.iter().zip(&other.args);
        let args = args.map(|((_, own), (_, other))| (*own, *other));
        let results = own.result.iter().copied().zip(other.result.iter().copied());
        let may_return = has_returned(&calls.0) && has_returned(&calls.1);
        let atoms = args.chain(results.filter(|_| may_return));
        let pointers =
            atoms.filter(|(own, other)| own.is_typed_pointer() && other.is_typed_pointer());
        let pairs = pairs(pointers, &calls, (entry_of(&calls.0), entry_of(&calls.1)))?;
        let mut words = pairs.iter().map(|pair| pair.words);
        let (x, y) = words.find(|words| self.are_in_heaps(*words))?;
        Some(y.wrapping_sub(x))
    }

    /// Tells whether two calls differ in nothing but such numbers; exactly: as long as blocks and descriptors have the same numbers.
    pub fn explains(&mut self, a: &Row, b: &Row, is_exact: bool) -> bool {
        if a.function != b.function || a.inside != b.inside || self.others >= MOST_OTHERS {
            return false;
        }
        let Some(made) = self.made(a, b, is_exact) else {
            self.others += 1;
            return false;
        };
        let room = MOST_PAIRS.saturating_sub(self.pairs.len());
        let known = made.into_iter().filter(|(x, y)| *x.min(y) >= LEAST_KNOWN);
        self.pairs.extend(known.take(room));
        self.last = self.last.max(Some(a.start));
        *self.found.entry(a.function).or_default() += 1;
        true
    }

    /// Tells whether the arguments of two calls of one function differ in nothing but such numbers.
    pub fn has_same_args(&self, a: &ReadCall, b: &ReadCall, is_exact: bool) -> bool {
        let calls = (a.clone(), b.clone());
        self.sides.0.targets(a) == self.sides.1.targets(b) && self.args(&calls, is_exact).is_some()
    }

    /// Says in which functions there were such numbers, those with most such calls first.
    pub fn note(&self) -> Option<String> {
        let mut found: Vec<_> = self.found.iter().collect();
        found.sort_by(|a, b| b.1.cmp(a.1));
        let calls: u64 = self.found.values().sum();
        let names = found.iter().take(MOST_NAMES);
        let names = names.filter_map(|(number, _)| name_of(self.sides.0, **number));
        let names: Vec<String> = names.map(|name| short_name(&name)).collect();
        let mut names = names.join(", ");
        if found.len() > MOST_NAMES {
            names += &format!(" and {} more", found.len() - MOST_NAMES);
        }
        let calls = (calls > 0).then(|| count(calls, "call"))?;
        Some(format!(
            "numbers made of addresses were not compared in {calls} of {names}"
        ))
    }

    /// Returns the numbers made of addresses in two calls that differ in nothing else.
    fn made(&self, a: &Row, b: &Row, is_exact: bool) -> Option<Vec<Numbers>> {
        let calls = (
            call_at(self.sides.0, a.start)?,
            call_at(self.sides.1, b.start)?,
        );
        if self.sides.0.targets(&calls.0) != self.sides.1.targets(&calls.1) {
            return None;
        }
        let args = self.args(&calls, is_exact)?;
        let mut made = args.made.clone();
        match has_returned(&calls.0) && has_returned(&calls.1) {
            true => made.extend(self.results(&calls, &args, is_exact)?),
            false if a.result.class != b.result.class => return None,
            false => {}
        }
        (!made.is_empty()).then_some(made)
    }

    fn args(&self, calls: &(ReadCall, ReadCall), is_exact: bool) -> Option<Args> {
        let (_, own) = self.sides.0.compared(calls.0.function_id)?;
        let (_, other) = self.sides.1.compared(calls.1.function_id)?;
        if own.args.len() != other.args.len() {
            return None;
        }
        let atoms = own.args.iter().zip(&other.args);
        let atoms = atoms.map(|((_, own), (_, other))| (*own, *other));
        let seen = (entry_of(&calls.0), entry_of(&calls.1));
        let pairs = pairs(atoms, calls, seen)?;
        let mut found = Args::default();
        let (alike, others): (Vec<Pair>, Vec<Pair>) = pairs
            .into_iter()
            .partition(|pair| self.is_alike(pair, is_exact));
        for pair in alike.iter().filter(|pair| pair.is_address()) {
            found.addresses.push(pair.words);
            found.has_number |= pair.whole().is_some();
        }
        for pair in &others {
            let numbers = self.made_of(pair, &found.addresses)?;
            found.made.push(numbers);
        }
        Some(found)
    }

    fn results(
        &self,
        calls: &(ReadCall, ReadCall),
        args: &Args,
        is_exact: bool,
    ) -> Option<Vec<Numbers>> {
        let (_, own) = self.sides.0.compared(calls.0.function_id)?;
        let (_, other) = self.sides.1.compared(calls.1.function_id)?;
        if own.result.len() != other.result.len() {
            return None;
        }
        let atoms = own.result.iter().copied().zip(other.result.iter().copied());
        let seen = (end_of(&calls.0), end_of(&calls.1));
        let pairs = pairs(atoms, calls, seen)?;
        let takes = !args.made.is_empty();
        let made_within = self.last.is_some_and(|last| last > calls.0.start_seq);
        let is_hash = self.sides.0.hashes(calls.0.function_id);
        let may_make = args.has_number || made_within || is_hash;
        let others = pairs.iter().filter(|pair| !self.is_alike(pair, is_exact));
        let numbers = others.map(|pair| {
            let own = self.made_of(pair, &args.addresses);
            own.or_else(|| self.depends(pair, takes, may_make))
        });
        numbers.collect()
    }

    fn is_alike(&self, pair: &Pair, is_exact: bool) -> bool {
        let (atoms, words, seen) = (pair.atoms, pair.words, pair.seen);
        let own = atoms.0.form(words.0, seen.0, self.sides.0.places());
        let other = atoms.1.form(words.1, seen.1, self.sides.1.places());
        own.is_same(other, is_exact)
    }

    /// Returns a number that is made of an address, of one of `addresses` or of any.
    fn made_of(&self, pair: &Pair, addresses: &[Numbers]) -> Option<Numbers> {
        let numbers = pair.whole()?;
        let is_made = self.pairs.contains(&numbers)
            || is_shifted(numbers)
            || pair.highest() == u64::MAX && self.is_of_heaps(numbers)
            || addresses
                .iter()
                .any(|of| is_cut(numbers, *of, pair.highest()));
        is_made.then_some(numbers)
    }

    /// Tells whether both numbers are addresses of the same in the heaps of programs with fixed addresses.
    fn is_of_heaps(&self, (x, y): Numbers) -> bool {
        self.moved == Some(y.wrapping_sub(x)) && self.are_in_heaps((x, y))
    }

    /// Tells whether both numbers may be addresses in the heaps of programs with fixed addresses, at the same place of a page.
    fn are_in_heaps(&self, (x, y): Numbers) -> bool {
        self.sides.0.places().may_be_fixed_heap(x)
            && self.sides.1.places().may_be_fixed_heap(y)
            && is_moved((x, y))
    }

    /// Returns a result that depends on such a number: the call got one, or it is large and the call got an address as a number, or
    /// called what made one. Truth values and errors say that something else happened.
    fn depends(&self, pair: &Pair, takes: bool, may_make: bool) -> Option<Numbers> {
        let (x, y) = pair.whole()?;
        let highest = pair.highest();
        let is_number =
            highest >= u64::from(u32::MAX) && x.max(y) > 1 && x.max(y) <= highest - ERRORS;
        let is_hash = x.min(y) >= LEAST_HASH;
        let depends = self.is_same_build && is_number && (takes || may_make && is_hash);
        depends.then_some((x, y))
    }
}

impl Pair {
    /// Returns both words as whole numbers, if they may be some.
    fn whole(&self) -> Option<Numbers> {
        let own = self.atoms.0.whole(self.words.0)?;
        let other = self.atoms.1.whole(self.words.1)?;
        Some((own, other))
    }

    /// Returns the highest number that both can be.
    fn highest(&self) -> u64 {
        self.atoms.0.highest().min(self.atoms.1.highest())
    }

    /// Tells whether the words are two addresses of the same.
    fn is_address(&self) -> bool {
        let (x, y) = self.words;
        match self.whole() {
            Some((x, y)) => x != y && is_randomised(x) && is_randomised(y),
            None => x != y && self.atoms.0.is_pointer() && x.min(y) >= FIRST_ADDRESS,
        }
    }
}

/// Returns the words of both calls; `None` if only one has one of them.
fn pairs(
    atoms: impl Iterator<Item = (Atom, Atom)>,
    calls: &(ReadCall, ReadCall),
    seen: (Seen, Seen),
) -> Option<Vec<Pair>> {
    let mut found = Vec::new();
    for atoms in atoms {
        let words = (
            word_of(&calls.0, atoms.0.word),
            word_of(&calls.1, atoms.1.word),
        );
        match words {
            (Some(own), Some(other)) => found.push(Pair {
                atoms,
                words: (own, other),
                seen,
            }),
            (None, None) => {}
            _ => return None,
        }
    }
    Some(found)
}

/// Returns a call; `None` if it cannot be read: then nothing is known of it.
fn call_at(side: &Side<'_>, start: u64) -> Option<ReadCall> {
    let timeline = side.source.timeline()?;
    let head = told(timeline.entered_at(start)).ok()??;
    told(timeline.call(&head)).ok()
}

fn has_returned(call: &ReadCall) -> bool {
    call.end_seq.is_some() && !call.unwound && !call.open_at_end
}

fn end_of(call: &ReadCall) -> Seen {
    Seen {
        at: call.end_seq.unwrap_or(call.start_seq),
        ..entry_of(call)
    }
}

/// Tells whether both numbers are addresses without their three or four lowest bits, which are zero in most, or with these in
/// front. Hashes of pointers are.
fn is_shifted((x, y): Numbers) -> bool {
    [3, 4].into_iter().any(|bits| {
        let (x, y) = (x.rotate_left(bits), y.rotate_left(bits));
        is_randomised(x) && is_randomised(y) && (x ^ y) & IN_PAGE == 0
    })
}

/// Tells whether both numbers are the same place of two pages. Where a page begins, so do sizes.
fn is_moved((x, y): Numbers) -> bool {
    x != y && (x ^ y) & IN_PAGE == 0 && x & IN_PAGE != 0
}

/// Tells whether both numbers are the same part of an address, in a type with this highest number.
fn is_cut((x, y): Numbers, (own, other): Numbers, highest: u64) -> bool {
    let parts = |address: u64, bits: u32| {
        let shifted = address >> bits;
        [
            shifted,
            address.rotate_right(bits),
            shifted & u64::from(u32::MAX),
        ]
    };
    let is_part = |bits: u32| {
        let mut pairs = parts(own, bits).into_iter().zip(parts(other, bits));
        pairs.any(|(own, other)| (own & highest, other & highest) == (x, y))
    };
    highest >= u64::from(u32::MAX) && (0..=16).any(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u64 = 0x55ee_74ca_2440;
    const B: u64 = 0x564e_38af_0440;

    #[test]
    fn shifted_addresses_are_known() {
        for (x, y, expected) in [
            (A >> 4, B >> 4, true),
            (A >> 3, B >> 3, true),
            ((A + 8).rotate_right(4), (B + 8).rotate_right(4), true),
            // Another place in the page.
            (A >> 4, (B >> 4) + 1, false),
            (A >> 4, B >> 3, false),
            (4096, 8192, false),
            (5_000_000_000, 6_000_000_000, false),
        ] {
            assert_eq!(is_shifted((x, y)), expected, "{x:#x} {y:#x}");
        }
    }

    #[test]
    fn addresses_in_moved_pages_are_known() {
        for (x, y, expected) in [
            (0x1eb3_5eb4, 0x2f82_2eb4, true),
            (0x1eb3_5eb4, 0x2f82_2eb0, false),
            (0x1eb3_5eb4, 0x1eb3_5eb4, false),
            // Sizes.
            (0x80_0000, 0x100_0000, false),
            (5_000_000, 6_000_000, false),
        ] {
            assert_eq!(is_moved((x, y)), expected, "{x:#x} {y:#x}");
        }
    }

    #[test]
    fn parts_of_an_address_are_known() {
        let (all, half) = (u64::MAX, u64::from(u32::MAX));
        let low = |address: u64| address & u64::from(u32::MAX);
        for (x, y, highest, expected) in [
            (A >> 12, B >> 12, all, true),
            (A.rotate_right(4), B.rotate_right(4), all, true),
            (low(A), low(B), half, true),
            (low(A), low(B), all, true),
            (low(A >> 3), low(B >> 3), half, true),
            (A >> 3, B >> 4, all, false),
            (A & 0xff, B & 0xff, 0xff, false),
            (A + 1, B + 1, all, false),
        ] {
            assert_eq!(is_cut((x, y), (A, B), highest), expected, "{x:#x} {y:#x}");
        }
    }
}
