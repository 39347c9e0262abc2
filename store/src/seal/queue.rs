//! Holds the blocks of one thread that are not released yet, and the thread's clock, which never runs backwards.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::wire::WORD_LEN;

/// The latest moment that events can have. Releases end before a moment, and the last one must take everything.
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
    #[serde(with = "blob")]
    pub(super) bytes: Vec<u8>,
    /// Where the first record that is not yet released begins.
    pub(super) at: usize,
    /// The watermark when the block came: no record of it is older.
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

    /// Returns when the next record happened.
    pub(super) fn head_ticks(&self) -> Option<u64> {
        let block = self.blocks.front()?;
        Some(self.ticks_at(&block.bytes[block.at..], block.floor))
    }

    /// Takes the first block out; [`Self::put_back`] returns what is left of it.
    pub(super) fn take(&mut self) -> Option<Block> {
        self.blocks.pop_front()
    }

    /// Puts the unreleased rest of a taken block in front again.
    pub(super) fn put_back(&mut self, block: Block) {
        self.blocks.push_front(block);
    }

    /// Forgets the bytes of records that are released.
    pub(super) fn trim(&mut self) {
        for block in &mut self.blocks {
            block.bytes.drain(..block.at);
            block.at = 0;
        }
    }

    /// Returns when the first record of `bytes` happened: not before the thread's last one, nor before `floor`.
    /// Bytes too short for a record happened as early as that allows.
    #[inline]
    pub(super) fn ticks_at(&self, bytes: &[u8], floor: u64) -> u64 {
        let word0 = bytes
            .first_chunk::<WORD_LEN>()
            .map_or(0, |w| u64::from_le_bytes(*w));
        word0.min(LAST_TICKS).max(floor).max(self.last_ticks)
    }

    /// Sets the thread's clock to what [`Self::ticks_at`] gave.
    #[inline]
    pub(super) fn advance(&mut self, ticks: u64) {
        self.last_ticks = ticks;
    }
}

/// Writes byte vectors as MessagePack's bin instead of an array of numbers.
pub(super) mod blob {
    use std::fmt;

    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    pub(in crate::seal) fn serialize<S: Serializer>(
        bytes: &[u8],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(in crate::seal) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<u8>, D::Error> {
        from.deserialize_byte_buf(Blob)
    }

    struct Blob;

    impl Visitor<'_> for Blob {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }
    }
}
