//! Converts ticks of the target's clock to nanoseconds, with integers only, so that every reader gets the same number.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Lowest and highest plausible tick rate, in ticks per second. Keeps the arithmetic below within its types.
const RATE_RANGE_HZ: std::ops::RangeInclusive<f64> = 1e7..=1e11;

/// The most ticks of one recording: nine months at 3 GHz. Later ones count as this.
pub const MAX_TICKS: u64 = (1 << 56) - 1;

/// The binary point of the factor from ticks to nanoseconds.
const SHIFT: u32 = 56;

/// The calibration of the target's clock, in the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockCalibration {
    /// Ticks per second.
    pub tsc_hz: f64,
    /// The counter when the recording began; records carry later values.
    pub tsc_base: u64,
}

/// The conversion from ticks to nanoseconds for one recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    tsc_base: u64,
    ns_per_tick_fixed: u64,
}

impl Clock {
    /// Returns the conversion for a calibrated clock.
    ///
    /// # Errors
    /// [`Error::BadClock`] when the rate is not within 10 MHz to 100 GHz.
    pub fn new(calibration: ClockCalibration) -> Result<Self> {
        let tsc_hz = calibration.tsc_hz;
        if !RATE_RANGE_HZ.contains(&tsc_hz) {
            return Err(Error::BadClock { tsc_hz });
        }
        let rate_mhz = (tsc_hz * 1e3).round() as u128; // millihertz: exact integers from here on
        let fixed = ((1_000_000_000_000u128 << SHIFT) + rate_mhz / 2) / rate_mhz;
        let ns_per_tick_fixed =
            u64::try_from(fixed).expect("at 10 MHz the factor is 100 << 56, below 2^63");
        Ok(Self {
            tsc_base: calibration.tsc_base,
            ns_per_tick_fixed,
        })
    }

    /// Returns nanoseconds since the recording began, rounded down, for `ticks` of the counter: 0 before the
    /// recording began, and no more than [`MAX_TICKS`] after.
    #[inline]
    pub fn ns_from_ticks(self, ticks: u64) -> i64 {
        let since = ticks.saturating_sub(self.tsc_base).min(MAX_TICKS);
        let product = u128::from(since) * u128::from(self.ns_per_tick_fixed);
        (product >> SHIFT) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(tsc_hz: f64) -> Clock {
        Clock::new(ClockCalibration {
            tsc_hz,
            tsc_base: 0,
        })
        .unwrap()
    }

    #[test]
    fn one_second_of_ticks_is_a_billion_ns() {
        for hz in [1e7, 1e9, 2_100_000_000.0, 2_899_886_211.0, 1e11] {
            let ns = clock(hz).ns_from_ticks(hz as u64);
            assert!((999_999_999..=1_000_000_000).contains(&ns), "{hz}: {ns}");
        }
    }

    #[test]
    fn a_gigahertz_clock_is_exact_up_to_the_last_tick() {
        let clock = clock(1e9);
        for ticks in [0, 1, 12_345, MAX_TICKS] {
            assert_eq!(clock.ns_from_ticks(ticks), ticks as i64);
        }
    }

    #[test]
    fn a_year_of_ticks_is_off_by_less_than_two_ns() {
        let hz: u128 = 2_899_886_211;
        let ticks: u128 = hz * 365 * 86_400 / 2;
        let exact = (ticks * 1_000_000_000 / hz) as i64;
        let ns = clock(hz as f64).ns_from_ticks(ticks as u64);
        assert!((exact - ns).abs() < 2, "{exact} {ns}");
    }

    #[test]
    fn time_never_runs_backwards() {
        let clock = clock(2_899_886_211.0);
        let ns: Vec<i64> = (0..10_000).map(|t| clock.ns_from_ticks(t)).collect();
        assert!(ns.is_sorted());
    }

    #[test]
    fn impossible_rates_are_refused() {
        for tsc_hz in [0.0, -1.0, 9e6, 2e11, f64::NAN, f64::INFINITY] {
            let made = Clock::new(ClockCalibration {
                tsc_hz,
                tsc_base: 0,
            });
            assert!(matches!(made, Err(Error::BadClock { .. })), "{tsc_hz}");
        }
    }
}
