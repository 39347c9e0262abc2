//! How much higher one group is than another: the ratio of their values with a confidence interval (Hodges and Lehmann
//! 1963), and how often a value of one exceeds one of the other (Cliff 1993).
//!
//! J. L. Hodges and E. L. Lehmann, Estimates of Location Based on Rank Tests, Annals of Mathematical Statistics 34 (1963),
//! 598-611. N. Cliff, Dominance Statistics, Psychological Bulletin 114 (1993), 494-509.

use serde::Serialize;

use super::rank;

/// What the interval should cover.
const COVERED: f64 = 0.95;

/// How much higher the second group is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// The median of the ratios of all pairs of values; 1: the same.
    pub ratio: f64,
    /// The interval's lower end, inclusive.
    pub low: f64,
    /// The interval's upper end, inclusive.
    pub high: f64,
    /// The probability with which such an interval covers the true ratio: 0.95 or more, and less where the groups are too
    /// small for that.
    pub covered: f64,
    /// Cliff's delta, from -1 (each value is below all of the first group) to 1.
    pub delta: f64,
}

/// Compares values above zero; `None` if a group is empty or a value is not above zero.
pub fn shift(first: &[f64], second: &[f64]) -> Option<Shift> {
    if first.is_empty() || second.is_empty() || first.iter().chain(second).any(|v| *v <= 0.0) {
        return None;
    }
    let pairs = first.iter().flat_map(|a| second.iter().map(move |b| b / a));
    let mut ratios: Vec<f64> = pairs.collect();
    ratios.sort_by(f64::total_cmp);
    let (cut, covered) = cut(first.len(), second.len());
    let count = |is: fn(&f64) -> bool| ratios.iter().filter(|ratio| is(ratio)).count() as f64;
    Some(Shift {
        ratio: middle(&ratios),
        low: ratios[cut],
        high: ratios[ratios.len() - 1 - cut],
        covered,
        delta: (count(|r| *r > 1.0) - count(|r| *r < 1.0)) / ratios.len() as f64,
    })
}

/// How many of the lowest and of the highest ratios lie outside of the interval, and what it covers.
fn cut(first: usize, second: usize) -> (usize, f64) {
    let outside = rank::at_most(first, second);
    let covered = |cut: usize| 1.0 - 2.0 * outside[cut];
    let fits = (0..first * second / 2).take_while(|&cut| covered(cut) >= COVERED);
    let cut = fits.last().unwrap_or(0);
    (cut, covered(cut).max(0.0))
}

/// The median.
pub fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        _ if sorted.is_empty() => 0.0,
        1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(first: &[f64], second: &[f64]) -> Shift {
        shift(first, second).expect("there are values")
    }

    #[test]
    fn twice_as_slow_is_a_ratio_of_two() {
        let first = [10.0, 10.1, 10.2, 10.3, 10.4];
        let second = first.map(|value| value * 2.0);
        let found = seen(&first, &second);
        assert!((found.ratio - 2.0).abs() < 0.01, "{found:?}");
        assert!(found.low > 1.9 && found.high < 2.1, "{found:?}");
        assert!(found.covered >= 0.95 && found.delta == 1.0, "{found:?}");
    }

    #[test]
    fn few_values_cover_less_and_say_so() {
        let found = seen(&[1.0, 1.1, 1.2], &[1.0, 1.15, 1.3]);
        assert!((found.covered - 0.9).abs() < 1e-9, "{found:?}");
        assert_eq!(found.low, 1.0 / 1.2);
        assert_eq!(found.high, 1.3 / 1.0);
    }

    #[test]
    fn the_cut_is_that_of_the_published_table() {
        // Critical values of U, two-sided 5 %: the interval leaves out as many as the largest significant U.
        for (n, critical) in [(4, 0), (5, 2), (6, 5), (8, 13), (10, 23)] {
            assert_eq!(cut(n, n).0, critical, "{n} recordings a side");
        }
    }

    #[test]
    fn nothing_is_said_of_no_values() {
        assert_eq!(shift(&[], &[1.0]), None);
        assert_eq!(shift(&[0.0], &[1.0]), None);
    }
}
