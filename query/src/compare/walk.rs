//! Goes through one thread of two recordings side by side, within a bounded window.
//!
//! Equal rows are passed one by one. Blocks and descriptors are compared, too, until the threads do something else. At a difference,
//! the nearest rows from which both sides make the same calls again are looked for, whatever else these called. Otherwise the next
//! rows of both sides are aligned; the window grows until both sides meet. If they never do within the largest window, its rows are
//! aligned by their functions alone.

use super::align::{self, Step};
use super::read::{Calls, Position};
use super::rows::{Nested, Row, RowMaker};
use super::side::Side;
use super::slots;
use crate::error::Result;

/// Rows of a side that are looked at after a difference: first few, then more.
const WINDOWS: [usize; 3] = [512, 8 << 10, 128 << 10];
/// Rows that must be equal to say that both sides have met again, unless the window is the largest.
const ENOUGH: usize = 8;

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
    let skips = (1..=NEAR).flat_map(|skipped| (0..=skipped).map(move |i| (i, skipped - i)));
    skips.into_iter().find(|(i, j)| meet(*i, *j))
}

/// Tells how the next rows of both sides differ, and passes them.
fn tell(a: &mut Rows<'_>, b: &mut Rows<'_>, (of_a, of_b): (usize, usize), told: &mut dyn Told) {
    let (own, other) = (&a.left()[..of_a], &b.left()[..of_b]);
    for step in align::align(own, other) {
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
        tell(a, b, until, told);
        return Ok(());
    }
    for (number, window) in WINDOWS.into_iter().enumerate() {
        a.fill(window)?;
        b.fill(window)?;
        let (own, other) = (a.up_to(window), b.up_to(window));
        let until = if a.ends_within(window) && b.ends_within(window) {
            Some((own.len(), other.len()))
        } else {
            let is_largest = number + 1 == WINDOWS.len();
            let met = align::equal(own, other);
            let met = match is_largest && met.is_empty() {
                true => align::pairs(own, other),
                false => met,
            };
            let is_enough = is_largest || met.len() >= ENOUGH;
            match met.last().filter(|_| is_enough) {
                Some((i, j)) => Some((i + 1, j + 1)),
                None => is_largest.then_some((own.len(), other.len())),
            }
        };
        if let Some(until) = until {
            tell(a, b, until, told);
            return Ok(());
        }
    }
    unreachable!("the largest window always passes rows")
}
