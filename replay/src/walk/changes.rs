//! Searches for the instructions that change some bytes. Writes of the same value are passed.

use std::collections::BTreeSet;
use std::ops::Range;

use exact::{Access, Batch, Replay, Seek};

use super::search::{MOST_WATCHED, Wrote, check_place, pieces};
use super::sought::watchable;
use crate::error::Result;
use crate::timeline::Timeline;

/// Instructions that are searched first, and most that are searched at once.
const FIRST: u64 = 1 << 16;
const FURTHEST: u64 = 1 << 28;
/// Most writes that are found at once.
const MOST: usize = 1 << 12;
/// Instructions before a write without effect that are searched first.
const SHORT: u64 = 1 << 10;
/// The process goes to so many writes to see their effect; what more of them wrote is noted in one run.
const FEW: usize = 8;

/// Some bytes, and the pieces of them that can be watched at once.
struct Place {
    address: u64,
    len: u64,
    pieces: Vec<(u64, u64)>,
}

impl Timeline {
    /// Finds the first instruction in a stretch of the run that changes some bytes, or maps memory there, moves or drops
    /// it; `None` if none does. `positions`: the numbers of the instructions that are searched.
    ///
    /// # Errors
    /// Instructions are not recorded or cannot be run, or there are too many bytes.
    pub fn first_change(
        &self,
        positions: Range<u64>,
        address: u64,
        len: u64,
    ) -> Result<Option<Wrote>> {
        self.changed(positions, (address, len), Place::first_change)
    }

    /// Finds the last such instruction.
    ///
    /// # Errors
    /// As for [`Self::first_change`].
    pub fn last_change(
        &self,
        positions: Range<u64>,
        address: u64,
        len: u64,
    ) -> Result<Option<Wrote>> {
        self.changed(positions, (address, len), Place::last_change)
    }

    fn changed(
        &self,
        positions: Range<u64>,
        (address, len): (u64, u64),
        find: fn(&Place, &mut Replay, Range<u64>) -> exact::Result<Option<u64>>,
    ) -> Result<Option<Wrote>> {
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        check_place(address, len)?;
        if positions.is_empty() {
            return Ok(None);
        }
        let place = Place {
            address,
            len,
            pieces: pieces(address, len),
        };
        let found = every.at(positions.start, move |replay| {
            find(&place, replay, positions)
        })?;
        found.map(|at| self.wrote(at)).transpose()
    }
}

impl Place {
    fn first_change(
        &self,
        replay: &mut Replay,
        positions: Range<u64>,
    ) -> exact::Result<Option<u64>> {
        let before = self.bytes(replay, positions.start)?;
        let (mut at, mut step, mut most) = (positions.start, FIRST, 1);
        while at < positions.end {
            let until = positions.end.min(at.saturating_add(step));
            let (writes, until) = self.writes(replay, at..until, most)?;
            // One is all that is needed, unless it has no effect.
            if !writes.is_empty() {
                most = (most * 16).min(MOST);
            }
            for write in self.that_may_change(replay, writes)? {
                if self.bytes(replay, write + 1)? != before {
                    return Ok(Some(write));
                }
            }
            at = until;
            step = (step * 4).min(FURTHEST);
        }
        Ok(None)
    }

    fn last_change(
        &self,
        replay: &mut Replay,
        positions: Range<u64>,
    ) -> exact::Result<Option<u64>> {
        let (begin, mut end, mut window) = (positions.start, positions.end, SHORT);
        while let Some(last) = self.last_write(replay, begin..end)? {
            if self.bytes(replay, last)? != self.bytes(replay, last + 1)? {
                return Ok(Some(last));
            }
            let from = last.saturating_sub(window).max(begin);
            let found = self.last_change_among(replay, from..last)?;
            if found.is_some() {
                return Ok(found);
            }
            end = from;
            window = (window * 4).min(FURTHEST);
        }
        Ok(None)
    }

    /// Looks at all writes in a stretch.
    fn last_change_among(
        &self,
        replay: &mut Replay,
        positions: Range<u64>,
    ) -> exact::Result<Option<u64>> {
        let mut known = self.bytes(replay, positions.start)?;
        let (mut at, mut last) = (positions.start, None);
        while at < positions.end {
            let (writes, until) = self.writes(replay, at..positions.end, MOST)?;
            for write in self.that_may_change(replay, writes)? {
                let now = self.bytes(replay, write + 1)?;
                if now != known {
                    known = now;
                    last = Some(write);
                }
            }
            at = until;
        }
        Ok(last)
    }

    fn last_write(&self, replay: &mut Replay, positions: Range<u64>) -> exact::Result<Option<u64>> {
        let mut last: Option<u64> = None;
        for (address, len) in &self.pieces {
            last = last.max(replay.last_change(*address, *len, positions.clone())?);
        }
        Ok(last)
    }

    /// The writes in a stretch, in order, and the position up to which these are all: not the end, if there are more than `most`.
    fn writes(
        &self,
        replay: &mut Replay,
        positions: Range<u64>,
        most: usize,
    ) -> exact::Result<(Vec<u64>, u64)> {
        let Range { start, end } = positions;
        let (mut all, mut until) = (Vec::new(), end);
        for (address, len) in &self.pieces {
            replay.goto(start)?;
            let found = replay.writes(*address, *len, until, most)?;
            if found.len() >= most
                && let Some(last) = found.last()
            {
                until = until.min(last + 1).max(start + 1);
            }
            all.extend(found);
        }
        all.retain(|write| *write < until);
        all.sort_unstable();
        all.dedup();
        Ok((all, until))
    }

    /// Leaves out the writes that are known to have stored what was there. Adds those that were not: the processor may have
    /// counted a repeated instruction as the one before it.
    fn that_may_change(
        &self,
        replay: &mut Replay,
        mut writes: Vec<u64>,
    ) -> exact::Result<Vec<u64>> {
        let (Some(first), Some(last)) = (writes.first().copied(), writes.last().copied()) else {
            return Ok(writes);
        };
        if writes.len() > FEW {
            let (silent, effective) = self.judged(replay, first..last + 1)?;
            writes.retain(|write| !silent.contains(write));
            writes.extend(effective);
            writes.sort_unstable();
            writes.dedup();
        }
        Ok(writes)
    }

    /// The instructions whose writes all stored what was there, and those with others. A system call that drops memory is in
    /// neither.
    fn judged(
        &self,
        replay: &mut Replay,
        positions: Range<u64>,
    ) -> exact::Result<(BTreeSet<u64>, BTreeSet<u64>)> {
        let seek = Seek {
            writes: true,
            memory: Some(watchable(self.address..self.address + self.len)),
            value_bytes: 2 * MOST_WATCHED as usize,
            ..Seek::default()
        };
        let (mut silent, mut effective) = (BTreeSet::new(), BTreeSet::new());
        replay.seek(positions, &seek, &mut |batch| {
            for access in batch.accesses.iter().filter(|access| access.is_write) {
                match self.is_silent(batch, access) {
                    true => silent.insert(access.position),
                    false => effective.insert(access.position),
                };
            }
            true
        })?;
        silent.retain(|position| !effective.contains(position));
        Ok((silent, effective))
    }

    /// Returns whether a write is known to have left these bytes as they were.
    fn is_silent(&self, batch: &Batch, access: &Access) -> bool {
        let start = self.address.saturating_sub(access.address) as usize;
        let end = access
            .size
            .min((self.address + self.len).saturating_sub(access.address))
            as usize;
        let old = batch.old(access).get(start..end);
        old.is_some() && old == batch.value(access).get(start..end)
    }

    /// The bytes after this many instructions; `None` if there is no memory.
    fn bytes(&self, replay: &mut Replay, position: u64) -> exact::Result<Option<Vec<u8>>> {
        replay.goto(position)?;
        let mut bytes = vec![0; self.len as usize];
        Ok((replay.read(self.address, &mut bytes) == bytes.len()).then_some(bytes))
    }
}
