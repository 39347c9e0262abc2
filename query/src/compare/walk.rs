//! Goes through one thread of two recordings side by side, within a bounded window.
//!
//! Equal rows are passed one by one. At a difference, the next rows of both sides are aligned; the window grows until both
//! sides meet again. If they never do within the largest window, its rows are aligned by their functions alone.

use super::align::{self, Step};
use super::read::{CallFiles, Calls, Position};
use super::rows::{Nested, Row, RowMaker};
use crate::error::Result;

/// Rows of a side that are looked at after a difference: first few, then more.
const WINDOWS: [usize; 3] = [512, 8 << 10, 128 << 10];
/// Rows that must be equal to say that both sides have met again, unless the window is the largest.
const ENOUGH: usize = 8;

/// The rows of one thread, as they are needed.
pub struct Rows<'r> {
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
    pub fn new(files: &'r CallFiles, maker: RowMaker<'r>, tid: u32, from: Position) -> Self {
        Self {
            // Calls of a thread that is not known have no tid, so statistics say nothing about them.
            calls: files.calls(from, (tid != 0).then_some(tid)),
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
    /// The sides differ from these rows on. Told once for each time that they do.
    fn differ(&mut self, a: Option<&Row>, b: Option<&Row>);
    /// Both sides have this call, and it differs.
    fn changed(&mut self, a: &Row, b: &Row);
    /// Only one side has this call.
    fn only(&mut self, row: &Row, is_a: bool);
}

/// Goes through both threads and tells how they differ.
///
/// # Errors
/// A file cannot be read.
pub fn walk(a: &mut Rows<'_>, b: &mut Rows<'_>, told: &mut dyn Told) -> Result<()> {
    loop {
        a.fill(1)?;
        b.fill(1)?;
        let pairs = a.left().iter().zip(b.left());
        let same = pairs.take_while(|(a, b)| a.hash() == b.hash()).count();
        if same > 0 {
            told.same(&a.left()[..same], &b.left()[..same]);
            a.passed += same;
            b.passed += same;
            continue;
        }
        if a.left().is_empty() && b.left().is_empty() {
            return Ok(());
        }
        told.differ(a.left().first(), b.left().first());
        pass_difference(a, b, told)?;
    }
}

fn pass_difference(a: &mut Rows<'_>, b: &mut Rows<'_>, told: &mut dyn Told) -> Result<()> {
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
        if let Some((of_a, of_b)) = until {
            let (own, other) = (&own[..of_a], &other[..of_b]);
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
            return Ok(());
        }
    }
    unreachable!("the largest window always passes rows")
}
