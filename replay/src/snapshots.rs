//! Memory as snapshots show it, and how long the program stays stopped after one.
//!
//! A snapshot is taken while no thread runs, so its content is known at its event. After a snapshot for the pause of a
//! thread the content stays known until an event in which the program takes part: a thread that resumes makes one.
//! After other snapshots the program resumes at once, and no event marks it.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use store::Recording;
use store::control::SnapshotReason;
use store::memory::{Memory, PAGE_LEN, Region, Seen as Page};

use crate::error::{Error, Result};
use crate::event::Kind;
use crate::marks::{Mark, Marks};
use crate::others::Others;

/// Most events after a snapshot that are examined: stops of the threads, and the user's actions meanwhile.
const MOST_EVENTS: u64 = 10_000;

/// The snapshots of a recording.
pub(crate) struct Snapshots {
    memory: Mutex<Memory>,
    /// In order.
    taken: Vec<Taken>,
}

/// A snapshot that an event names.
#[derive(Clone, Copy, Debug)]
struct Taken {
    seq: u64,
    id: u32,
    /// The latest snapshot of a pause up to this one: the program was stopped after it until a thread resumed.
    pause: Option<u64>,
    /// All threads were held until the stop that follows it.
    is_held: bool,
    /// No code of the program had run.
    is_first: bool,
}

/// A snapshot, seen from a later event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    pub seq: u64,
    pub id: u32,
    /// The program has been stopped since.
    pub is_still: bool,
    /// No code of the program had run: the present blocks of its heap did not exist.
    pub is_first: bool,
}

/// The kernel's name of the memory that malloc(3) begins with.
const HEAP: &str = "[heap]";

impl Snapshots {
    /// Opens the snapshots that events name.
    pub(crate) fn open(recording: &Recording, marks: &Marks, others: &Others) -> Result<Self> {
        let memory = Memory::open(recording)?;
        let (mut taken, mut pause) = (Vec::new(), None);
        let marks = marks.all(Kind::Snapshot);
        let events = others.events(marks)?;
        let missing = |mark: &Mark| Error::Missing { seq: mark.seq };
        for (at, mark) in marks.iter().enumerate() {
            let event = events.get(at).filter(|event| event.seq == mark.seq);
            let seq = mark.seq;
            let event = event.ok_or_else(|| missing(mark))?;
            let id = event.value.ok_or_else(|| missing(mark))? as u32;
            memory.must_have(id)?;
            let reason = event.aux.as_deref();
            let is_held = reason == Some(SnapshotReason::Held.name());
            if reason == Some(SnapshotReason::Pause.name()) {
                pause = Some(seq);
            } else if is_held {
                pause = None;
            }
            taken.push(Taken {
                seq,
                id,
                pause,
                is_held,
                is_first: reason == Some(SnapshotReason::Start.name()),
            });
        }
        Ok(Self {
            memory: Mutex::new(memory),
            taken,
        })
    }

    /// Returns the last snapshot at or before event `now`.
    pub(crate) fn last(&self, now: u64, others: &Others) -> Result<Option<Last>> {
        let until = self.taken.partition_point(|taken| taken.seq <= now);
        // A snapshot at a regular time in between does not end the pause.
        let taken = until.checked_sub(1).map(|at| self.taken[at]);
        let Some(Taken {
            seq,
            id,
            pause,
            is_held,
            is_first,
        }) = taken
        else {
            return Ok(None);
        };
        let is_still = match pause {
            _ if seq == now => true,
            // The others ran on after the stop.
            _ if is_held => {
                let next = if seq + 1 == now {
                    others.head(now)?
                } else {
                    None
                };
                next.is_some_and(|head| head.kind == Kind::Pause)
            }
            Some(pause) => is_still(pause, now, others)?,
            None => false,
        };
        Ok(Some(Last {
            seq,
            id,
            is_still,
            is_first,
        }))
    }

    /// Returns whether event `seq` is a snapshot.
    pub(crate) fn is_at(&self, seq: u64) -> bool {
        self.taken
            .binary_search_by_key(&seq, |taken| taken.seq)
            .is_ok()
    }

    /// Returns whether a snapshot covers the byte at `address`.
    pub(crate) fn covers(&self, last: &Last, address: u64) -> bool {
        self.region(last, address).is_some()
    }

    /// Returns the mapping around `address` that a snapshot has copied.
    pub(crate) fn region(&self, last: &Last, address: u64) -> Option<Range<u64>> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let region = region_at(memory.regions(last.id), address)?;
        Some(region.addr..region.addr.saturating_add(region.len))
    }

    /// Returns whether the memory at `address` is newer than the snapshot: a heap block that was allocated since.
    pub(crate) fn is_older(&self, last: &Last, address: u64) -> bool {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let region = || region_at(memory.regions(last.id), address);
        last.is_first && !last.is_still && region().is_some_and(|region| region.name == HEAP)
    }

    /// Returns the part of `range` that a snapshot shows: addresses and bytes, in pieces that lie within a page each.
    pub(crate) fn pieces(&self, last: &Last, range: &Range<u64>) -> Result<Vec<(u64, Vec<u8>)>> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pieces = Vec::new();
        if range.is_empty() {
            return Ok(pieces);
        }
        let first = range.start / PAGE_LEN * PAGE_LEN;
        for page in (first..range.end).step_by(PAGE_LEN as usize) {
            let part = range.start.max(page)..range.end.min(page.saturating_add(PAGE_LEN));
            let (start, len) = (part.start, part.end - part.start);
            match memory.part(last.id, part)? {
                Page::Bytes(bytes) => pieces.push((start, bytes)),
                Page::Zeroes => pieces.push((start, vec![0; len as usize])),
                Page::Uncovered => {}
            }
        }
        Ok(pieces)
    }
}

fn region_at(regions: &[Region], address: u64) -> Option<&Region> {
    let behind = regions.partition_point(|region| region.addr <= address);
    let region = behind.checked_sub(1).map(|at| &regions[at]);
    region.filter(|region| address - region.addr < region.len)
}

/// Returns whether the program took no part in any event after `pause` and up to `now`.
fn is_still(pause: u64, now: u64, others: &Others) -> Result<bool> {
    if now - pause > MOST_EVENTS {
        return Ok(false);
    }
    for seq in pause + 1..=now {
        let head = others.head(seq)?;
        if !head.is_some_and(|head| head.kind.leaves_program_still()) {
            return Ok(false);
        }
    }
    Ok(true)
}
