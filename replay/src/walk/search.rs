//! Searches through all instructions: who wrote some bytes.

use crate::error::{Error, Result};
use crate::moves::Direction;
use crate::timeline::Timeline;

use super::thread::Thread;
use super::{Activation, Instant, Walk, Walked};

/// Bytes that the processor can watch at once.
const AT_ONCE: u64 = 32;
/// Most bytes that are asked about.
pub const MOST_WATCHED: u64 = 1024;

/// The end of the addresses that a program can have (x86-64 with four levels of page tables).
const USER_SPACE: u64 = 1 << 47;

/// A write to some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrote {
    /// The moment before the instruction that wrote.
    pub before: Instant,
    /// The moment after it.
    pub after: Instant,
    /// The thread that executed it.
    pub tid: u32,
}

/// How a call was followed to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// It has returned, or an exception or longjmp has left it.
    At(Instant),
    /// It was still open at the position up to which it was followed.
    Later,
    /// The recording does not show its end.
    NotShown,
}

/// Pieces that can be watched at once.
pub(super) fn pieces(address: u64, len: u64) -> Vec<(u64, u64)> {
    let end = address.saturating_add(len).min(USER_SPACE);
    let mut found = Vec::new();
    let mut at = address;
    while at < end {
        // The last ones of a piece are aligned, so that few debug registers are needed.
        let until = ((at + AT_ONCE) & !7).min(end);
        // A range that begins in the middle of a word takes up to three parts by itself.
        let until = match at % 8 {
            0 => until,
            _ => (at.next_multiple_of(8)).min(end),
        };
        found.push((at, until - at));
        at = until;
    }
    found
}

impl Timeline {
    /// Finds the last instruction before a moment that wrote to some bytes; `None` if none has since the start.
    ///
    /// # Errors
    /// Instructions are not recorded or cannot be run, or there are too many bytes.
    pub fn last_write_before(
        &self,
        from: Instant,
        address: u64,
        len: u64,
    ) -> Result<Option<Wrote>> {
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        check_place(address, len)?;
        let position = self.position_of(from)?;
        let mut last: Option<u64> = None;
        for (address, len) in pieces(address, len) {
            let found = every.at(position, move |replay| {
                replay.last_write(address, len, position)
            })?;
            last = last.max(found);
        }
        last.map(|at| self.wrote(at)).transpose()
    }

    /// Finds the instructions between two moments that write to some bytes, or map memory there, move or drop it; in order,
    /// at most `most`. Returns their numbers.
    ///
    /// # Errors
    /// Instructions are not recorded or cannot be run, or there are too many bytes.
    pub fn writes_between(
        &self,
        (from, until): (Instant, Instant),
        (address, len): (u64, u64),
        most: usize,
    ) -> Result<Vec<u64>> {
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        check_place(address, len)?;
        let (position, end) = (self.position_of(from)?, self.position_of(until)?);
        let mut all = Vec::new();
        for (address, len) in pieces(address, len) {
            all.extend(every.at(position, move |replay| {
                replay.writes(address, len, end, most)
            })?);
        }
        all.sort_unstable();
        all.dedup();
        all.truncate(most);
        Ok(all)
    }

    /// Returns the moment at which a function that runs at another moment was entered: `entry` is its first
    /// instruction, `cfa` the stack pointer once it has returned.
    ///
    /// # Errors
    /// Instructions are not recorded or cannot be run.
    pub fn entered(
        &self,
        from: Instant,
        tid: u32,
        (entry, cfa): (u64, u64),
    ) -> Result<Option<Instant>> {
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        let position = self.position_of(from)?;
        let (tid, sp) = (tid.cast_signed(), cfa.wrapping_sub(8));
        let found = every.at(position, move |replay| {
            let thread = Thread::new(replay, tid);
            if thread.is_some_and(|thread| thread.rip() == entry && thread.rsp() == sp) {
                return Ok(Some(position));
            }
            replay.previous_stop(&[entry], &mut |replay| {
                let thread = Thread::new(replay, tid).filter(|_| replay.thread() == tid);
                thread.is_some_and(|thread| thread.rsp() == sp)
            })
        })?;
        found.map(|at| self.instant(at)).transpose()
    }

    /// Finds the end of a call that runs at a moment. It is followed up to a position: a number of instructions since the start.
    ///
    /// # Errors
    /// Instructions are not recorded or cannot be run, or the thread does not exist.
    pub fn left(&self, from: Instant, tid: u32, frame: Activation, until: u64) -> Result<CallEnd> {
        let (walk, forward) = (Walk::CallOf(frame), Direction::Forward);
        let end = self.walk_within(from, (tid, 0), (walk, forward), Some(until))?;
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        let outline = every.outline()?;
        let position = self.position_of(end.instant)?;
        let is_gap = outline.gaps.iter().any(|gap| gap.at == position);
        Ok(match end.walked {
            Walked::Done if !is_gap => CallEnd::At(end.instant),
            Walked::AtTheEdge if until < outline.end => CallEnd::Later,
            _ => CallEnd::NotShown,
        })
    }

    /// Describes the write of an instruction.
    ///
    /// # Errors
    /// Instructions are not recorded or cannot be run.
    pub fn wrote(&self, position: u64) -> Result<Wrote> {
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        Ok(Wrote {
            before: self.instant(position)?,
            after: self.instant(position + 1)?,
            tid: every.running(position)?,
        })
    }
}

pub(super) fn check_place(address: u64, len: u64) -> Result<()> {
    if address.checked_add(len).is_none_or(|end| end > USER_SPACE) {
        let what =
            format!("there is no memory at {address:#x}: what it stands for has no address here");
        return Err(Error::expression(what));
    }
    match len {
        1..=MOST_WATCHED => Ok(()),
        0 => Err(Error::expression("it has no bytes")),
        len => Err(Error::expression(
            debuginfo::Diagnostic::new(format!(
                "it has {len} bytes, and {MOST_WATCHED} at most are watched"
            ))
            .with_hint("name a part of it"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_has_no_pieces() {
        for address in [u64::MAX - 3, u64::MAX, USER_SPACE] {
            assert!(pieces(address, 4).is_empty());
            assert!(check_place(address, 4).is_err());
        }
        assert_eq!(pieces(USER_SPACE - 4, 8), [(USER_SPACE - 4, 4)]);
    }

    #[test]
    fn pieces_cover_all_bytes_and_fit_the_processor() {
        for address in 0x1000..0x1010 {
            for len in 1..100 {
                let mut at = address;
                for (start, size) in pieces(address, len) {
                    assert_eq!(start, at);
                    assert!(size > 0 && size <= AT_ONCE);
                    assert!(
                        start % 8 == 0
                            || (start + size) % 8 == 0
                            || start / 8 == (start + size) / 8
                    );
                    at += size;
                }
                assert_eq!(at, address + len);
            }
        }
    }
}
