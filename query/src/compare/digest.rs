//! The first pass over a recording: per thread one hash for every few thousand rows, and what each function did.
//!
//! Threads whose hashes are equal are equal. Of the others, the hashes tell where the first difference is, at most a few
//! thousand rows before it. So two recordings are compared without their rows being in memory.

use super::hash;
use super::read::{CallFiles, Position};
use super::rows::{ByThread, Nested, RowMaker};
use crate::error::Result;

/// Rows of a thread that share a hash.
const CHUNK_ROWS: u64 = 4096;

/// Rows for which the caches are prepared together. They have room for what these need.
const PREPARED_ROWS: usize = 1024;

/// The rows of one thread.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    /// How many there are.
    pub rows: u64,
    /// The hash of each chunk, the place of its first row and the event that ended it. The last one may be short.
    chunks: Vec<(u64, Position, u64)>,
    /// The outermost call that began first: its enter event and the id of its function.
    pub outermost: Option<(u64, u32)>,
    /// The compared call that began first: its enter event and the number that both recordings have for its function.
    pub first: Option<(u64, u32)>,
    nested: Nested,
}

/// What the calls of one function did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many there were.
    pub calls: u64,
    /// Their time with all that they made, in ns. Calls inside another one of the same function are part of that one.
    pub total_ns: u64,
    /// Their time without the recorded calls that they made, in ns.
    pub self_ns: u64,
}

/// What the first pass found.
#[derive(Debug, Default)]
pub struct Pass {
    /// The threads, by their numbers, in the order of their first ends.
    pub threads: Vec<(u32, Digest)>,
    /// By function id.
    pub tallies: Vec<Tally>,
}

/// Reads a recording once, but for the total times of its functions.
///
/// # Errors
/// A file cannot be read.
pub fn pass(files: &CallFiles, maker: &RowMaker<'_>) -> Result<Pass> {
    let mut threads: ByThread<Digest> = ByThread::default();
    let mut tallies = vec![Tally::default(); maker.numbers.len()];
    let mut calls = files.calls(Position::default(), None);
    while let Some(batch) = calls.next()? {
        for at in 0..batch.rows() {
            if at.is_multiple_of(PREPARED_ROWS) {
                let until = batch.rows().min(at + PREPARED_ROWS);
                maker.prepare(&batch, at..until);
            }
            let id = batch.function(at);
            if let Some(tally) = tallies.get_mut(id as usize) {
                tally.calls += 1;
                tally.self_ns = tally.self_ns.saturating_add(batch.own_ns(at));
            }
            let digest = threads.of(batch.tid(at));
            if batch.depth(at) == 0 {
                let own = (batch.start(at), id);
                digest.outermost = Some(digest.outermost.map_or(own, |first| first.min(own)));
            }
            if let Some(row) = maker.row(&batch, at, &mut digest.nested) {
                let own = (row.start, row.function);
                digest.first = Some(digest.first.map_or(own, |first| first.min(own)));
                digest.add(row.exact_hash(), || (batch.position(at), row.end));
            }
        }
    }
    Ok(Pass {
        threads: threads.into_all(),
        tallies,
    })
}

impl Digest {
    #[inline]
    fn add(&mut self, row: u64, place: impl FnOnce() -> (Position, u64)) {
        if self.rows.is_multiple_of(CHUNK_ROWS) {
            let (position, end) = place();
            self.chunks.push((0, position, end));
        }
        self.rows += 1;
        if let Some((chunk, ..)) = self.chunks.last_mut() {
            *chunk = hash::fold(*chunk, row);
        }
    }

    /// Returns where a thread first differs from another one: the number of rows before that are surely equal, and where
    /// both go on. `None` if they are equal.
    pub fn first_difference(&self, other: &Digest) -> Option<(u64, Position, Position)> {
        let equal = self.equal_chunks(other)?;
        let (own, others) = (self.position(equal), other.position(equal));
        Some((equal as u64 * CHUNK_ROWS, own, others))
    }

    /// Returns how many chunks are surely equal before the first difference; `None` if all are.
    fn equal_chunks(&self, other: &Digest) -> Option<usize> {
        let mut pairs = self.chunks.iter().zip(&other.chunks);
        match pairs.position(|(own, other)| own.0 != other.0) {
            Some(equal) => Some(equal),
            None if self.rows == other.rows => None,
            None => Some(self.chunks.len().min(other.chunks.len()).saturating_sub(1)),
        }
    }

    fn position(&self, chunk: usize) -> Position {
        let chunk = self.chunks.get(chunk);
        chunk.map_or_else(Position::end, |chunk| chunk.1)
    }

    /// Returns the last places up to which both threads are equal and from which on this one has the call that event
    /// `end` ended.
    pub fn equal_up_to(&self, other: &Digest, end: u64) -> (Position, Position) {
        let holding = self.chunks.partition_point(|chunk| chunk.2 <= end);
        let holding = holding.saturating_sub(1);
        let chunk = match self.equal_chunks(other) {
            Some(equal) => holding.min(equal),
            None => holding,
        };
        (self.position(chunk), other.position(chunk))
    }
}
