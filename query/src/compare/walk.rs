//! Goes through one thread of two recordings side by side, within a bounded window.
//!
//! Equal rows are passed one by one. Blocks and descriptors are compared, too, until the threads do something else. At a difference,
//! the nearest rows from which both sides make the same calls again are looked for, whatever else these called. Otherwise the next
//! rows of both sides are aligned; the window grows until enough of it is in long runs that both sides have. If that is never so,
//! the rows of the largest window are aligned as well as possible, by their functions at last.
//!
//! No side comes first in this: exchanged threads have the same differences, exchanged.

use std::slice;

use super::align::{self, Step};
use super::read::{Calls, Position};
use super::rows::{Nested, Row, RowMaker};
use super::side::Side;
use super::slots;
use crate::error::Result;

/// Rows of a side that are looked at after a difference: first few, then more. And how many of them must be in runs that both
/// sides have to say that these have met again: in few rows, runs may be there by chance.
const WINDOWS: [(usize, usize); 3] = [(512, 256), (8 << 10, 2 << 10), (128 << 10, 8 << 10)];

/// Rows that are skipped on both sides together to find where they meet at once.
const NEAR: usize = 32;
/// Rows that must be equal there.
const RUN: usize = 16;

/// The rows of one thread, as they are needed.
pub struct Rows<'r> {
    side: &'r Side<'r>,
    calls: Calls<'r>,
    maker: RowMaker<'r>,
    tid: u32,
    nested: Nested,
    rows: Vec<Row>,
    /// How many of `rows` were passed.
    passed: usize,
    has_ended: bool,
}

impl<'r> Rows<'r> {
    /// Reads the rows of a thread from a place on.
    pub fn new(side: &'r Side<'r>, maker: RowMaker<'r>, tid: u32, from: Position) -> Self {
        Self {
            side,
            // Calls of a thread that is not known have no tid, so statistics say nothing about them.
            calls: side.files.calls(from, (tid != 0).then_some(tid)),
            maker,
            tid,
            nested: Nested::default(),
            rows: Vec::new(),
            passed: 0,
            has_ended: false,
        }
    }

    /// Reads until there are `count` rows, or no more.
    fn fill(&mut self, count: usize) -> Result<()> {
        while !self.has_ended && self.left().len() < count {
            if self.passed > 0 {
                self.rows.drain(..self.passed);
                self.passed = 0;
            }
            let Some(batch) = self.calls.next()? else {
                self.has_ended = true;
                break;
            };
            for at in 0..batch.rows() {
                if batch.tid(at) == self.tid {
                    self.rows
                        .extend(self.maker.row(&batch, at, &mut self.nested));
                }
            }
        }
        Ok(())
    }

    /// Returns the next row, and passes it.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn pass(&mut self) -> Result<Option<Row>> {
        self.fill(1)?;
        let row = self.left().first().copied();
        self.passed += usize::from(row.is_some());
        Ok(row)
    }

    fn left(&self) -> &[Row] {
        &self.rows[self.passed..]
    }

    fn up_to(&self, count: usize) -> &[Row] {
        let left = self.left();
        &left[..left.len().min(count)]
    }

    /// Tells whether the next `count` rows are all that are left.
    fn ends_within(&self, count: usize) -> bool {
        self.has_ended && self.left().len() <= count
    }
}

/// What is told of two threads.
pub trait Told {
    /// Both sides have these rows.
    fn same(&mut self, a: &[Row], b: &[Row]);
    /// The sides differ from these rows on. Told once for each time that they do. Exactly: up to here, blocks and
    /// descriptors had the same numbers.
    fn differ(&mut self, a: Option<&Row>, b: Option<&Row>, is_exact: bool);
    /// Tells whether what differs between these rows is no difference. Exactly: up to here, blocks and descriptors had the same
    /// numbers.
    fn is_chance(&mut self, _a: &Row, _b: &Row, _is_exact: bool) -> bool {
        false
    }
    /// Both sides have this call, and it differs.
    fn changed(&mut self, a: &Row, b: &Row);
    /// Only one side has this call.
    fn only(&mut self, row: &Row, is_a: bool);
    /// Nothing more is to be told.
    fn is_done(&self) -> bool {
        false
    }
}

/// Goes through both threads and tells how they differ.
///
/// # Errors
/// A file cannot be read.
pub fn walk(a: &mut Rows<'_>, b: &mut Rows<'_>, told: &mut dyn Told) -> Result<()> {
    let mut is_exact = true;
    loop {
        if told.is_done() {
            return Ok(());
        }
        a.fill(1)?;
        b.fill(1)?;
        let pairs = a.left().iter().zip(b.left());
        let is_same = |(own, other): &(&Row, &Row)| {
            own.is_same(other, is_exact)
                || own.is_same(other, false) && slots::are_same((a.side, own), (b.side, other))
        };
        let same = pairs.take_while(is_same).count();
        if same > 0 {
            told.same(&a.left()[..same], &b.left()[..same]);
            a.passed += same;
            b.passed += same;
            continue;
        }
        if a.left().is_empty() && b.left().is_empty() {
            return Ok(());
        }
        let fronts = (a.left().first(), b.left().first());
        if let (Some(own), Some(other)) = fronts
            && told.is_chance(own, other, is_exact)
        {
            told.same(slice::from_ref(own), slice::from_ref(other));
            a.passed += 1;
            b.passed += 1;
            continue;
        }
        told.differ(fronts.0, fronts.1, is_exact);
        // The calls that one of them made more or less were told before.
        if let (Some(own), Some(other)) = fronts
            && own.call_hash() == other.call_hash()
        {
            match own.is_same(other, false) {
                true => {
                    let (own, other) = (slots::settled(a.side, own), slots::settled(b.side, other));
                    told.changed(&own, &other);
                }
                false => {
                    is_exact = false;
                    told.changed(own, other);
                }
            }
            a.passed += 1;
            b.passed += 1;
            continue;
        }
        // One side may have allocated or opened more.
        is_exact = false;
        pass_difference(a, b, told)?;
    }
}

/// Finds the nearest rows from which on both sides are equal for a while. Most differences are of few rows; where rows
/// repeat, patience diff may take one for another.
fn nearest(own: &[Row], other: &[Row], are_whole: bool) -> Option<(usize, usize)> {
    let meet = |i: usize, j: usize| {
        let (Some(own), Some(other)) = (own.get(i..), other.get(j..)) else {
            return false;
        };
        let len = RUN.min(own.len()).min(other.len());
        let is_long = len == RUN || are_whole && len > 0 && own.len() == other.len();
        let mut pairs = own.iter().zip(other).take(len);
        is_long && pairs.all(|(own, other)| own.call_hash() == other.call_hash())
    };
    // Of two places that are as near, one is taken whichever side comes first.
    let hash = |rows: &[Row]| rows.first().map(Row::call_hash);
    let is_turned = hash(own) > hash(other);
    let skip = |skipped: usize, less: usize| match is_turned {
        true => (skipped - less, less),
        false => (less, skipped - less),
    };
    let skips = (1..=NEAR).flat_map(|skipped| (0..=skipped).map(move |less| skip(skipped, less)));
    skips.into_iter().find(|(i, j)| meet(*i, *j))
}

/// Aligns the next rows of both sides, tells how they differ, and passes them.
fn tell_aligned(a: &mut Rows<'_>, b: &mut Rows<'_>, until: (usize, usize), told: &mut dyn Told) {
    let pairs = align::pairs(a.up_to(until.0), b.up_to(until.1));
    tell(a, b, &pairs, until, told);
}

/// Tells how the next rows of both sides differ, and passes them.
fn tell(
    a: &mut Rows<'_>,
    b: &mut Rows<'_>,
    pairs: &[(usize, usize)],
    (of_a, of_b): (usize, usize),
    told: &mut dyn Told,
) {
    let (own, other) = (&a.left()[..of_a], &b.left()[..of_b]);
    for step in align::steps(own, other, pairs) {
        match step {
            Step::Same(i, j) => told.same(&own[i..=i], &other[j..=j]),
            Step::Changed(i, j) => told.changed(&own[i], &other[j]),
            Step::OnlyA(i) => told.only(&own[i], true),
            Step::OnlyB(j) => told.only(&other[j], false),
        }
    }
    a.passed += of_a;
    b.passed += of_b;
}

fn pass_difference(a: &mut Rows<'_>, b: &mut Rows<'_>, told: &mut dyn Told) -> Result<()> {
    a.fill(NEAR + RUN)?;
    b.fill(NEAR + RUN)?;
    let are_whole = a.has_ended && b.has_ended;
    if let Some(until) = nearest(a.left(), b.left(), are_whole) {
        tell_aligned(a, b, until, told);
        return Ok(());
    }
    for (window, enough) in WINDOWS {
        a.fill(window)?;
        b.fill(window)?;
        let until = match a.ends_within(window) && b.ends_within(window) {
            true => Some((a.left().len(), b.left().len())),
            false => met(a.up_to(window), b.up_to(window), enough),
        };
        if let Some(until) = until {
            tell_aligned(a, b, until, told);
            return Ok(());
        }
    }
    let (window, _) = WINDOWS[WINDOWS.len() - 1];
    let (pairs, until) = best(a.up_to(window), b.up_to(window));
    tell(a, b, &pairs, until, told);
    Ok(())
}

/// Returns where both sides have met again, if enough rows say so.
fn met(own: &[Row], other: &[Row], enough: usize) -> Option<(usize, usize)> {
    let shorter = own.len().min(other.len());
    match shorter {
        0 => Some((own.len(), other.len())),
        _ => align::met(own, other, enough.min(shorter.div_ceil(2))),
    }
}

/// Aligns rows of sides that do not meet as well as possible, up to the last ones that are equal, or have the same function.
fn best(own: &[Row], other: &[Row]) -> (Vec<(usize, usize)>, (usize, usize)) {
    // Each search must pass many rows, so that all of them take linear time.
    let is_far = |(i, j): (usize, usize)| 2 * i.max(j) > own.len().max(other.len());
    let is_equal = |(i, j): (usize, usize)| own[i].call_hash() == other[j].call_hash();
    let mut pairs = align::pairs(own, other);
    let far = pairs.partition_point(|pair| !is_far(*pair));
    let equal = pairs[far..].iter().rposition(|pair| is_equal(*pair));
    pairs.truncate(equal.map_or(pairs.len(), |last| far + last + 1));
    let last = pairs.last().filter(|pair| is_far(**pair));
    let until = last.map_or((own.len(), other.len()), |(i, j)| (i + 1, j + 1));
    (pairs, until)
}
