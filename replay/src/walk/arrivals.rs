//! Arrivals at addresses, each shown to the caller while the program is stopped there: conditions and messages are evaluated
//! without another run.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use debuginfo::{AddressSpace, Machine};
use exact::Replay;

use super::thread::Thread;
use crate::error::Result;
use crate::timeline::Timeline;

/// The modules of the program over time.
#[derive(Clone, Debug)]
pub struct Spaces {
    /// Each with the position from which it is valid. The first one is valid from the start.
    all: Arc<Vec<(u64, Arc<AddressSpace>)>>,
}

impl Spaces {
    /// Returns the modules after this many instructions.
    ///
    /// # Panics
    /// Never: there are always some.
    #[must_use]
    pub fn at(&self, position: u64) -> &AddressSpace {
        &self.all[self.number(position)].1
    }

    /// Returns the number of the list that is valid after this many instructions.
    #[must_use]
    pub fn number(&self, position: u64) -> usize {
        let after = self.all.partition_point(|(from, _)| *from <= position);
        after.saturating_sub(1)
    }
}

/// A thread that is about to execute an instruction at one of the requested addresses.
pub struct Arrival<'r> {
    /// The number of instructions executed before it.
    pub position: u64,
    /// The thread.
    pub tid: u32,
    /// The modules.
    pub space: &'r AddressSpace,
    thread: Thread<'r>,
}

impl<'r> Arrival<'r> {
    fn new(replay: &'r Replay, spaces: &'r Spaces) -> Option<Arrival<'r>> {
        let position = replay.position();
        Some(Arrival {
            position,
            tid: replay.thread().cast_unsigned(),
            space: spaces.at(position),
            thread: Thread::new(replay, replay.thread())?,
        })
    }

    /// Returns the address of the instruction.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.thread.rip()
    }

    /// From now on, so many of the inlined calls around the address are not looked into, see [`Machine::calls_to_come`].
    pub fn look_from(&mut self, calls_to_come: usize) {
        self.thread.calls_to_come = calls_to_come;
    }

    /// Returns the thread's registers, and memory. Expressions see `hit_count` as the number of hits.
    pub fn machine(&mut self, hit_count: Option<u64>) -> &dyn Machine {
        self.thread.hit_count = hit_count;
        &self.thread
    }
}

impl Timeline {
    /// Returns the modules over the whole run.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn spaces(&self) -> Result<Spaces> {
        let mut all: Vec<(u64, Arc<AddressSpace>)> = Vec::new();
        let mut changes = self.modules.changes().iter().peekable();
        while let Some(seq) = changes.next() {
            let position = self.position(*seq)?;
            let next = changes.peek().map(|next| self.position(**next));
            // The last of several at one moment counts.
            if next.transpose()? != Some(position) {
                all.push((position, self.modules.space(*seq)));
            }
        }
        if all.is_empty() {
            all.push((0, self.modules.space(0)));
        }
        Ok(Spaces { all: Arc::new(all) })
    }

    /// Returns the number of instructions that are recorded.
    ///
    /// # Errors
    /// There are none, or the log cannot be read.
    pub fn instructions(&self) -> Result<u64> {
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        Ok(every.outline()?.end)
    }

    /// Shows `visit` each arrival of a thread at one of these addresses between two positions, in order, until it breaks.
    ///
    /// # Errors
    /// Instructions are not recorded or cannot be run, or [`crate::Error::Interrupted`].
    pub fn arrivals(
        &self,
        span: Range<u64>,
        addresses: &[u64],
        mut visit: impl FnMut(&mut Arrival<'_>) -> ControlFlow<()> + Send + 'static,
    ) -> Result<()> {
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        let (spaces, addresses) = (self.spaces()?, addresses.to_vec());
        every.at(span.start, move |replay| {
            let mut visit = move |replay: &Replay| match Arrival::new(replay, &spaces) {
                Some(mut arrival) => visit(&mut arrival).is_break(),
                None => false,
            };
            // A run looks only after its first instruction.
            let here = Thread::new(replay, replay.thread()).map(|thread| thread.rip());
            if here.is_some_and(|here| addresses.contains(&here)) && visit(replay) {
                return Ok(());
            }
            let found = replay.next_stop(&addresses, span.end, &mut visit);
            found.map(drop)
        })
    }

    /// Returns the last arrivals before a position that `accept` accepts, in order: their positions and threads, and the results of
    /// `accept`. There are at most `most`, all from one stretch of the recording; none if there is none at all. Unless there are fewer,
    /// what precedes the first of them was not examined.
    ///
    /// # Errors
    /// As for [`Self::arrivals`].
    pub fn last_arrivals<T: Send + 'static>(
        &self,
        before: u64,
        addresses: &[u64],
        most: usize,
        mut accept: impl FnMut(&mut Arrival<'_>) -> Option<T> + Send + 'static,
    ) -> Result<Vec<(u64, u32, T)>> {
        let every = self.every.as_ref().ok_or_else(|| self.no_instructions())?;
        let (spaces, addresses) = (self.spaces()?, addresses.to_vec());
        every.at(before, move |replay| {
            let mut last: VecDeque<(u64, u32, T)> = VecDeque::new();
            replay.previous_stop(&addresses, &mut |replay| {
                let Some(mut arrival) = Arrival::new(replay, &spaces) else {
                    return false;
                };
                let Some(accepted) = accept(&mut arrival) else {
                    return false;
                };
                if last.len() >= most {
                    last.pop_front();
                }
                last.push_back((arrival.position, arrival.tid, accepted));
                true
            })?;
            Ok(last.into())
        })
    }
}
