//! The data of pauses: states of stopped threads, their stacks, and watched places.

use std::sync::Arc;

use store::columns::{ReadState, StatesFile};
use store::seal::SealedPart;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::memory::Stack;

/// Saved stacks that are kept in memory, of at most 64 KiB each.
const STACKS: usize = 16;
/// States of stopped threads that are kept in memory, without their stacks.
const STATES: usize = 64;

/// Bytes at an address, and the event that showed them: seq, address, bytes.
pub(crate) type ShownBytes = (u64, u64, Vec<u8>);

/// The pauses of a recording.
pub(crate) struct Pauses {
    /// Where saved stacks lie, in the order of seq.
    pub stacks: Vec<Stack>,
    /// Watched places, in the order of seq.
    pub watched: Vec<ShownBytes>,
    /// Sealed files, each with its first seq.
    files: Vec<(u64, StatesFile)>,
    states: Cache<u64, ReadState>,
    /// Saved stacks as the program saw them, by the seq of the pause.
    pub stack_cache: Cache<u64, Vec<u8>>,
}

impl Pauses {
    pub(crate) fn open(parts: &[SealedPart]) -> Result<Self> {
        let (mut files, mut stacks, mut watched) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts.iter().filter(|part| part.part.states > 0) {
            let file = StatesFile::open(&part.states)?;
            file.each_shown(|shown| {
                let seq = shown.seq;
                stacks.extend(shown.stack.map(|(addr, len)| Stack { seq, addr, len }));
                let place = shown.watched;
                watched.extend(place.map(|(addr, bytes)| (seq, addr, bytes.to_vec())));
            })?;
            files.push((part.part.first_seq, file));
        }
        Ok(Self {
            stacks,
            watched,
            files,
            states: Cache::new(STATES),
            stack_cache: Cache::new(STACKS),
        })
    }

    /// Returns the state at a pause.
    ///
    /// # Errors
    /// The files cannot be read.
    pub(crate) fn state(&self, seq: u64) -> Result<Arc<ReadState>> {
        self.states.get(seq, || {
            let at = self.files.partition_point(|(first, _)| *first <= seq);
            let file = at.checked_sub(1).map(|at| &self.files[at].1);
            let state = file.map(|file| file.state(seq)).transpose()?;
            state.flatten().ok_or(Error::Missing { seq })
        })
    }
}
