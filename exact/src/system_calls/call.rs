//! A finished call as the families see it: its arguments, how it ended, and what they read of the program's memory.

use super::written::{Finished, Memory, Written};

/// The kernel takes no more buffers than these in a call (`UIO_MAXIOV`).
const MOST_BUFFERS: u64 = 1024;
/// No piece that the kernel copies and counts at once is longer: a piece of TCP's has at most 512 KiB.
const MOST_AT_ONCE: u64 = 1 << 20;
const IOVEC: u64 = 16;

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Returned(u64),
    /// With an error of this number.
    Failed(i32),
    /// A signal interrupted it: the kernel repeats it, or turns the result into `EINTR`.
    Interrupted,
}

pub(super) struct Call<'a> {
    finished: &'a Finished,
    memory: &'a dyn Memory,
}

impl<'a> Call<'a> {
    pub(super) fn new(finished: &'a Finished, memory: &'a dyn Memory) -> Call<'a> {
        Call { finished, memory }
    }

    /// The number, of the type of the constants `libc::SYS_*`.
    pub(super) fn number(&self) -> i64 {
        self.finished.number as i64
    }

    pub(super) fn arg(&self, at: usize) -> u64 {
        self.finished.args[at]
    }

    /// An argument that the kernel takes as an `int`: the upper half means nothing.
    pub(super) fn int(&self, at: usize) -> i32 {
        self.finished.args[at] as i32
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self.finished.result {
            -516..=-512 => Outcome::Interrupted,
            error @ -4095..=-1 => Outcome::Failed(-error as i32),
            result => Outcome::Returned(result as u64),
        }
    }

    /// The result, unless it is an error.
    pub(super) fn returned(&self) -> Option<u64> {
        match self.outcome() {
            Outcome::Returned(result) => Some(result),
            _ => None,
        }
    }

    pub(super) fn failed_with(&self, error: i32) -> bool {
        self.outcome() == Outcome::Failed(error)
    }

    /// Whether a signal ended the call, or is about to.
    pub(super) fn was_interrupted(&self) -> bool {
        self.outcome() == Outcome::Interrupted || self.failed_with(libc::EINTR)
    }

    pub(super) fn u32_at(&self, address: u64) -> Option<u32> {
        self.array_at(address).map(u32::from_le_bytes)
    }

    pub(super) fn u64_at(&self, address: u64) -> Option<u64> {
        self.array_at(address).map(u64::from_le_bytes)
    }

    fn array_at<const LEN: usize>(&self, address: u64) -> Option<[u8; LEN]> {
        let mut bytes = [0; LEN];
        (self.memory.read(address, &mut bytes) == LEN).then_some(bytes)
    }

    /// How many of so many bytes can be read.
    pub(super) fn readable(&self, address: u64, len: u64) -> u64 {
        let mut bytes = vec![0; usize::try_from(len).expect("lengths of structures are small")];
        self.memory.read(address, &mut bytes) as u64
    }

    /// Whether what follows the filled part of a buffer can be written. Pipes and sockets that meet memory which cannot return what they
    /// counted before, and have written more than that.
    pub(super) fn is_whole(&self, rest: u64, len: u64) -> bool {
        self.memory.can_be_written(rest, len.min(MOST_AT_ONCE))
    }

    /// The parts of buffers that a call filled in order, as an array of `iovec` names them. None if they are not known for sure.
    pub(super) fn spread(&self, array: u64, count: u64, filled: u64) -> Option<Ranges> {
        let (ranges, left) = self.spread_what_fits(array, count, filled)?;
        (left == 0).then_some(ranges)
    }

    /// The same, and how much the buffers had no room for.
    pub(super) fn spread_what_fits(
        &self,
        array: u64,
        count: u64,
        filled: u64,
    ) -> Option<(Ranges, u64)> {
        let mut ranges = Ranges::default();
        if count > MOST_BUFFERS {
            return None;
        }
        let mut left = filled;
        for at in 0..count {
            let entry = array.checked_add(at * IOVEC)?;
            let (base, len) = (self.u64_at(entry)?, self.u64_at(entry.checked_add(8)?)?);
            let part = left.min(len);
            if part < len && !self.is_whole(base.saturating_add(part), len - part) {
                return None;
            }
            ranges.push(base, part);
            left -= part;
        }
        // The array is read after the call: it may be what the call wrote.
        let is_sure = !ranges.overlap(array, count * IOVEC);
        is_sure.then_some((ranges, left))
    }
}

/// Addresses and lengths of what was written.
#[derive(Default)]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Adds a range, unless it is empty or the address is none.
    pub(super) fn push(&mut self, address: u64, len: u64) {
        let len = len.min(u64::MAX - address);
        if address != 0 && len != 0 {
            self.0.push((address, len));
        }
    }

    pub(super) fn with(mut self, address: u64, len: u64) -> Ranges {
        self.push(address, len);
        self
    }

    pub(super) fn extend(&mut self, other: Ranges) {
        self.0.extend(other.0);
    }

    /// Whether one of them has a byte of this range.
    pub(super) fn overlap(&self, address: u64, len: u64) -> bool {
        let end = address.saturating_add(len);
        let mut all = self.0.iter();
        all.any(|&(start, len)| start < end && address < start + len)
    }

    pub(super) fn done(self) -> Written {
        Written::Exactly(self.0)
    }
}

/// A list, or that it is not known.
pub(super) fn known(ranges: Option<Ranges>) -> Written {
    ranges.map_or(Written::Unknown, Ranges::done)
}

/// One range.
pub(super) fn one(address: u64, len: u64) -> Written {
    Ranges::default().with(address, len).done()
}

/// No bytes.
pub(super) fn none() -> Written {
    Written::Exactly(Vec::new())
}
