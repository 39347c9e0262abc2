//! Warns, once, before the recording has filled the disk.

use std::{
    collections::VecDeque,
    path::Path,
    time::{Duration, Instant},
};

use debuginfo::Diagnostic;
use store::storage::free_bytes;

use super::Session;
use crate::{Observer, Result};

/// How often the free room is looked at.
const EVERY: Duration = Duration::from_secs(1);
/// The time over which the rate is measured: bursts are shorter.
const OVER: Duration = Duration::from_secs(5);
/// The disk is nearly full if it will be within this time.
const SOON: Duration = Duration::from_secs(60);
/// It also is with less room than this, of which much was used since the recording began.
const LITTLE: u64 = 1 << 30;
const MUCH: u64 = 1 << 28;

/// The free room over time.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// How much was free when the recording began.
    first: Option<u64>,
    /// The last looks, the oldest first.
    looks: VecDeque<(Instant, u64)>,
    is_told: bool,
}

impl Room {
    /// Takes a look at the free room. Returns the warning, the first time that there is a reason for one.
    fn look(&mut self, now: Instant, free: u64) -> Option<Diagnostic> {
        let first = *self.first.get_or_insert(free);
        // One look that is old enough is kept.
        while self.looks.get(1).is_some_and(|(at, _)| now - *at >= OVER) {
            self.looks.pop_front();
        }
        let over = self.looks.front().filter(|(at, _)| now - *at >= OVER);
        let rate = over.map_or(0, |(at, then)| {
            let used = then.saturating_sub(free) as f64;
            (used / (now - *at).as_secs_f64()) as u64
        });
        self.looks.push_back((now, free));
        let left = (rate > 0).then(|| Duration::from_secs(free / rate));
        let left = left.filter(|left| *left < SOON);
        let is_little = free < LITTLE && first.saturating_sub(free) >= MUCH;
        if self.is_told || left.is_none() && !is_little {
            return None;
        }
        self.is_told = true;
        let left = left.map_or_else(String::new, |left| {
            let (rate, left) = (megabytes(rate), left.as_secs());
            format!(" and fills up in about {left} s at {rate} MB/s")
        });
        let message = format!(
            "the recording's disk has {} MB free{left}. When it is full, recording stops, and the program continues unrecorded",
            megabytes(free)
        );
        let hint = "record fewer functions with -f or -x, limit the size with --max-size, or delete recordings with hindsight rm";
        Some(Diagnostic::new(message).with_hint(hint))
    }

    fn is_due(&self, now: Instant) -> bool {
        !self.is_told && self.looks.back().is_none_or(|(at, _)| now - *at >= EVERY)
    }
}

fn megabytes(bytes: u64) -> u64 {
    bytes / 1_000_000
}

impl Session {
    /// Warns once when the disk will soon be full.
    pub(super) fn look_at_room(&mut self, observer: &dyn Observer) -> Result<()> {
        let now = Instant::now();
        if !self.so_far.room.is_due(now) {
            return Ok(());
        }
        let folder: &Path = self.writing.open.recording().dir();
        let Ok(free) = free_bytes(folder) else {
            return Ok(());
        };
        match self.so_far.room.look(now, free) {
            Some(warning) => self.warn(&warning, observer),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    /// Looks once a second at a disk with this room, in MB; returns when it warns, and how.
    fn warned(free: impl Fn(u64) -> u64) -> Option<(u64, String)> {
        let (mut room, begin) = (Room::default(), Instant::now());
        let mut warnings = (0..200).filter_map(|second| {
            let warning = room.look(begin + Duration::from_secs(second), free(second) * MB)?;
            Some((second, warning.one_line()))
        });
        let first = warnings.next();
        assert_eq!(warnings.next(), None, "it warns once");
        first
    }

    #[test]
    fn a_disk_that_is_full_within_a_minute_is_warned_of() {
        let (second, text) = warned(|second| 20_000 - 180 * second.min(111)).unwrap();
        // 60 s at this rate are 10,800 MB.
        assert_eq!(second, 52, "{text}");
        assert!(text.contains("10640 MB free"), "{text}");
        assert!(
            text.contains("free and fills up in about 59 s at 180 MB/s. When"),
            "{text}"
        );
    }

    #[test]
    fn a_short_burst_is_no_reason() {
        assert_eq!(warned(|second| 20_000 - 900 * second.min(1)), None);
    }

    #[test]
    fn little_room_is_a_reason_if_the_recording_uses_it() {
        assert_eq!(warned(|second| 1_400 - second.min(150)), None);
        let (second, text) = warned(|second| 1_400 - 2 * second).unwrap();
        assert_eq!(second, 164, "{text}");
        assert!(text.contains("has 1072 MB free. When"), "{text}");
    }
}
