//! Decides whether direct I/O or the page cache is faster now.

use std::time::{Duration, Instant};

/// A way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Past the page cache.
    Direct,
    /// Through it.
    Buffered,
}

/// Shorter writes say little about speed and go through the cache.
const LEAST_BYTES: usize = 1 << 20;
/// Writes after which the slower way gets another try.
const TRY_AGAIN_AFTER: u32 = 128;
/// Seconds per byte, 1 GB/s: copying into the cache is not faster than that, so a direct way that is needs no
/// comparison. The copying would take a core for milliseconds from the thread that fills the buffers.
const FAST: f64 = 1e-9;
/// A write through the cache keeps a core busy that others need; past the cache, the core is free. So the cache must be
/// this much faster.
const CACHE_COST: f64 = 2.0;
/// Weight of the latest measurement.
const LATEST: f64 = 0.25;

/// The recent speed of both ways.
#[derive(Debug, Default)]
pub struct Speeds {
    /// Seconds per byte; `None`: not measured yet.
    direct: Option<f64>,
    buffered: Option<f64>,
    since_try: u32,
    no_direct: bool,
}

impl Speeds {
    /// Returns the way for `len` bytes.
    pub fn choose(&mut self, len: usize) -> Way {
        if self.no_direct || len < LEAST_BYTES {
            return Way::Buffered;
        }
        if self.direct.is_some_and(|direct| direct < FAST) {
            return Way::Direct;
        }
        let (Some(direct), Some(buffered)) = (self.direct, self.buffered) else {
            return if self.direct.is_none() {
                Way::Direct
            } else {
                Way::Buffered
            };
        };
        let (better, worse) = if direct <= buffered * CACHE_COST {
            (Way::Direct, Way::Buffered)
        } else {
            (Way::Buffered, Way::Direct)
        };
        self.since_try += 1;
        if self.since_try < TRY_AGAIN_AFTER {
            return better;
        }
        self.since_try = 0;
        worse
    }

    /// Runs `write`, which writes `len` bytes in one of the ways, and measures it.
    pub fn time<T>(&mut self, way: Way, len: usize, write: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = write();
        if len >= LEAST_BYTES {
            self.learn(way, len, began.elapsed());
        }
        result
    }

    /// Uses the way through the cache from now on.
    pub fn give_up(&mut self) {
        self.no_direct = true;
    }

    fn learn(&mut self, way: Way, len: usize, took: Duration) {
        let latest = took.as_secs_f64() / len as f64;
        let known = match way {
            Way::Direct => &mut self.direct,
            Way::Buffered => &mut self.buffered,
        };
        *known = Some(known.map_or(latest, |known| known + (latest - known) * LATEST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 4 << 20;

    fn learn(speeds: &mut Speeds, way: Way, ms: u64) {
        speeds.learn(way, LEN, Duration::from_millis(ms));
    }

    #[test]
    fn both_ways_are_tried_and_the_better_one_is_taken() {
        let mut speeds = Speeds::default();
        assert_eq!(speeds.choose(LEN), Way::Direct);
        learn(&mut speeds, Way::Direct, 5);
        assert_eq!(speeds.choose(LEN), Way::Buffered);
        learn(&mut speeds, Way::Buffered, 8);
        assert_eq!(speeds.choose(LEN), Way::Direct);
        for _ in 0..20 {
            learn(&mut speeds, Way::Direct, 20); // the disk has become slow
        }
        assert_eq!(speeds.choose(LEN), Way::Buffered);
    }

    #[test]
    fn a_fast_disk_is_not_compared() {
        let mut speeds = Speeds::default();
        learn(&mut speeds, Way::Direct, 2);
        for _ in 0..1000 {
            assert_eq!(speeds.choose(LEN), Way::Direct);
        }
    }

    #[test]
    fn the_slower_way_gets_another_try() {
        let mut speeds = Speeds::default();
        learn(&mut speeds, Way::Direct, 9);
        learn(&mut speeds, Way::Buffered, 1);
        let tries = (0..1000)
            .filter(|_| speeds.choose(LEN) == Way::Direct)
            .count();
        assert_eq!(tries, 1000 / TRY_AGAIN_AFTER as usize);
    }

    #[test]
    fn short_writes_and_file_systems_without_it_use_the_cache() {
        let mut speeds = Speeds::default();
        assert_eq!(speeds.choose(LEAST_BYTES - 1), Way::Buffered);
        speeds.give_up();
        assert_eq!(speeds.choose(LEN), Way::Buffered);
    }
}
