//! Measures how fast the time stamp counter ticks.
//!
//! The counter is the records' clock: the same on all processors of a machine that says `constant_tsc nonstop_tsc`.

use std::{
    thread,
    time::{Duration, Instant},
};

use store::manifest::ClockCalibration;

/// The shortest distance of two readings that gives the rate to about one part in a million.
const SHORTEST: Duration = Duration::from_millis(60);

/// A first reading, to be compared with a later one.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    ticks: u64,
    at: Instant,
}

/// Returns what the time stamp counter shows.
pub fn ticks() -> u64 {
    // SAFETY: the instruction has no preconditions on x86-64.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Returns how long the calling thread has had a processor (clock_gettime(2)).
pub fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a timespec that the call may write to. The clock exists since Linux 2.6.12, so that it cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Calibration {
    /// Takes the first reading.
    pub fn begin() -> Self {
        let (ticks, at) = reading();
        Self { ticks, at }
    }

    /// Takes the second reading, after a wait if the first was just taken. The recording's time 0 is now.
    pub fn finish(self) -> ClockCalibration {
        if let Some(missing) = SHORTEST.checked_sub(self.at.elapsed()) {
            thread::sleep(missing);
        }
        let (ticks, at) = reading();
        let seconds = at.duration_since(self.at).as_secs_f64();
        ClockCalibration {
            tsc_hz: (ticks - self.ticks) as f64 / seconds,
            tsc_base: ticks,
        }
    }
}

/// The closest pair of both clocks out of a few: a pair is only as good as the time between its halves.
fn reading() -> (u64, Instant) {
    let pairs = (0..8).map(|_| {
        let before = ticks();
        let at = Instant::now();
        let after = ticks();
        (after - before, before + (after - before) / 2, at)
    });
    let (_, ticks, at) = pairs.min_by_key(|pair| pair.0).expect("eight pairs");
    (ticks, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_measurements_agree() {
        let first = Calibration::begin().finish();
        let second = Calibration::begin().finish();
        let ratio = first.tsc_hz / second.tsc_hz;
        assert!((0.999..1.001).contains(&ratio), "{first:?} {second:?}");
        assert!(second.tsc_base > first.tsc_base);
    }
}
