//! Compresses pages of sealed calls with their one codec, where that pays.

use std::fmt;
use std::io;

use parquet::basic::{Compression, ZstdLevel};

/// A page is stored compressed if that leaves at most this much of it, in percent.
const WORTH_PERCENT: usize = 85;
const LEVEL: i32 = 1;

/// A compressor that reuses its tables and its output buffer from page to page.
pub(super) struct Compressor {
    zstd: zstd::bulk::Compressor<'static>,
    out: Vec<u8>,
}

impl Compressor {
    /// Returns a compressor.
    ///
    /// # Errors
    /// When there is no memory for its tables.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            zstd: zstd::bulk::Compressor::new(LEVEL)?,
            out: Vec::new(),
        })
    }

    /// Returns Parquet's name of the codec.
    pub(super) fn codec() -> Compression {
        Compression::ZSTD(ZstdLevel::try_new(LEVEL).expect("1 is a level of zstd"))
    }

    /// Returns `bytes` compressed, at any length.
    pub(super) fn compress(&mut self, bytes: &[u8]) -> io::Result<&[u8]> {
        self.out.clear();
        self.out
            .reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        self.zstd.compress_to_buffer(bytes, &mut self.out)?;
        Ok(&self.out)
    }

    /// Returns `bytes` compressed if that saves enough to pay for decompression on every read.
    pub(super) fn compress_if_worth(&mut self, bytes: &[u8]) -> io::Result<Option<&[u8]>> {
        let compressed = self.compress(bytes)?;
        Ok(is_worth(compressed.len(), bytes.len()).then_some(compressed))
    }
}

/// Returns whether `packed` instead of `raw` bytes pays for decompression on every read.
pub(super) fn is_worth(packed: usize, raw: usize) -> bool {
    packed.saturating_mul(100) <= raw * WORTH_PERCENT
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compressor")
    }
}
