//! Measures the rate of the time stamp counter.
//!
//! The counter is the records' clock. It is the same on all processors of a machine with the CPU flags
//! `constant_tsc nonstop_tsc`.

use std::{
    thread,
    time::{Duration, Instant},
};

use store::manifest::ClockCalibration;

/// The shortest interval that gives the rate to about one part in a million.
const SHORTEST: Duration = Duration::from_millis(60);

/// A first reading, to compare with a later one.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    ticks: u64,
    at: Instant,
}

/// Reads the time stamp counter.
pub fn ticks() -> u64 {
    // SAFETY: the instruction has no preconditions on x86-64.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Returns the CPU time of the calling thread (clock_gettime(2)).
pub fn thread_time() -> Duration {
    time_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the monotonic clock, in ns (clock_gettime(2)).
pub fn monotonic_ns() -> u64 {
    u64::try_from(time_of(libc::CLOCK_MONOTONIC).as_nanos()).unwrap_or(u64::MAX)
}

fn time_of(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a timespec that the call may write to. It cannot fail: the clocks exist since Linux 2.6.12.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Calibration {
    /// Takes the first reading.
    pub fn begin() -> Self {
        let (ticks, at) = reading();
        Self { ticks, at }
    }

    /// Takes the second reading. Waits first if the first reading is too recent. Sets the recording's time 0 to now.
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

/// Returns the tightest of a few pairs of both clocks: a pair is only as accurate as the time between its readings is
/// short.
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
