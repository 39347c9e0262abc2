//! What stretches of the run executed, read and wrote, for questions about many instructions at once.

use std::ops::Range;
use std::sync::Arc;

pub use exact::Seek;

use super::search::{MOST_WATCHED, pieces};
use crate::error::Result;
use crate::timeline::Timeline;

/// When this much was found, it is passed on.
const MOST: usize = 1 << 18;

/// An instruction, and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sought {
    /// The number of instructions executed before it.
    pub position: u64,
    /// The thread.
    pub tid: u32,
    /// Address and machine code; `None` for what the kernel did.
    pub code: Option<(u64, Arc<[u8]>)>,
    /// The memory that it read or wrote, if that is what was sought.
    pub memory: Option<Touched>,
}

/// Memory that was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Its address.
    pub address: u64,
    /// How many bytes.
    pub size: u64,
    /// It was written.
    pub is_write: bool,
    /// The content before a write: the first bytes; empty if there was no memory.
    pub old: Vec<u8>,
    /// What was read or written: the first bytes; empty if that is not known.
    pub new: Vec<u8>,
}

impl Timeline {
    /// Returns what is sought between two positions, in order, and the position that the search reached: not the end, if the
    /// result is very large.
    ///
    /// # Errors
    /// Instructions are not recorded or cannot be run, or [`crate::Error::Interrupted`].
    pub fn sought(&self, positions: Range<u64>, seek: Seek) -> Result<(Vec<Sought>, u64)> {
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        let end = positions.end.min(every.outline()?.end);
        if positions.start >= end {
            return Ok((Vec::new(), positions.end));
        }
        every.with(move |replay| {
            let (mut found, mut codes) = (Vec::new(), Vec::new());
            let mut until = positions.start;
            replay.seek(positions.start..end, &seek, &mut |batch| {
                let known = codes.len();
                let new = batch.instructions.iter().skip(known);
                codes.extend(new.map(|known| (known.address, Arc::from(known.code.as_slice()))));
                take(batch, &codes, &mut found);
                until = batch.until;
                found.len() < MOST
            })?;
            // What happened at the last position is not complete.
            found.retain(|sought| sought.position < until);
            Ok((found, until))
        })
    }
}

/// Parts of some memory that the processor can watch at once, for [`Seek::memory`]; the memory has at most [`MOST_WATCHED`] bytes.
#[must_use]
pub fn watchable(bytes: Range<u64>) -> Vec<Range<u64>> {
    let len = bytes.end.saturating_sub(bytes.start).min(MOST_WATCHED);
    let parts = pieces(bytes.start, len).into_iter();
    parts.map(|(start, len)| start..start + len).collect()
}

fn take(batch: &exact::Batch, codes: &[(u64, Arc<[u8]>)], found: &mut Vec<Sought>) {
    let code = |number: u32| codes.get(number as usize).cloned();
    found.extend(batch.executed.iter().map(|executed| Sought {
        position: executed.position,
        tid: executed.tid.cast_unsigned(),
        code: code(executed.instruction),
        memory: None,
    }));
    found.extend(batch.accesses.iter().map(|access| Sought {
        position: access.position,
        tid: access.tid.cast_unsigned(),
        code: access.instruction.and_then(code),
        memory: Some(Touched {
            address: access.address,
            size: access.size,
            is_write: access.is_write,
            old: batch.old(access).to_vec(),
            new: batch.value(access).to_vec(),
        }),
    }));
}
