//! Holds the blocks of one thread that are not yet released, and the thread's clock, which never runs backwards.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::wire::Records;

/// The latest time of an event. Releases end before a time, and the last one must release everything.
pub(super) const LAST_TICKS: u64 = u64::MAX - 1;

/// Blocks of one thread in log order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue {
    blocks: VecDeque<Block>,
    last_ticks: u64,
}

/// Records of one frame.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Block {
    #[serde(with = "serde_bytes")]
    pub(super) bytes: Vec<u8>,
    /// Where the first record that is not yet released begins.
    pub(super) at: usize,
    /// The watermark when the block came: a lower bound for its records.
    pub(super) floor: u64,
}

impl Queue {
    /// Returns whether no record waits.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Appends a block with at least one byte.
    pub(super) fn push(&mut self, block: Block) {
        debug_assert!(!block.bytes.is_empty());
        self.blocks.push_back(block);
    }

    /// Returns the time of the next record.
    pub(super) fn head_ticks(&self) -> Option<u64> {
        let block = self.blocks.front()?;
        let record = Records::new(&block.bytes[block.at..]).next();
        let ticks = record
            .and_then(|record| record.ok())
            .map(|record| record.ticks);
        Some(self.clamp(ticks, block.floor))
    }

    /// Removes the first block; [`Self::put_back`] returns the rest of it.
    pub(super) fn take(&mut self) -> Option<Block> {
        self.blocks.pop_front()
    }

    /// Puts the unreleased rest of a removed block back in front.
    pub(super) fn put_back(&mut self, block: Block) {
        self.blocks.push_front(block);
    }

    /// Frees the bytes of released records.
    pub(super) fn trim(&mut self) {
        for block in &mut self.blocks {
            block.bytes.drain(..block.at);
            block.at = 0;
        }
    }

    /// Returns the time of a record with `ticks`: not before the thread's last one, nor before `floor`. An unreadable
    /// record has no ticks and counts as early as that allows.
    #[inline]
    pub(super) fn clamp(&self, ticks: Option<u64>, floor: u64) -> u64 {
        let ticks = ticks.map_or(0, |ticks| ticks.min(LAST_TICKS));
        ticks.max(floor).max(self.last_ticks)
    }

    /// Sets the thread's clock to the result of [`Self::clamp`].
    #[inline]
    pub(super) fn advance(&mut self, ticks: u64) {
        self.last_ticks = ticks;
    }
}
