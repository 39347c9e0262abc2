//! The rank-sum test (Wilcoxon 1945; Mann and Whitney 1947), exact, also with ties: how likely is it that recordings of the
//! same program differ as much as these?
//!
//! F. Wilcoxon, Individual Comparisons by Ranking Methods, Biometrics Bulletin 1 (1945), 80-83. The distribution is counted
//! over all ways to divide the values into two groups (Streitberg and Roehmel 1986), so no normal approximation is needed.

use std::cmp::Ordering;

/// Returns the probability that the values of `above` would rank at least as high among all values as they do, if both
/// groups were drawn from the same distribution. From 0 (exclusive) to 1; 1 if a group is empty.
pub fn one_sided(below: &[f64], above: &[f64]) -> f64 {
    let ranks = doubled_ranks(below, above);
    let (rest, of_above) = ranks.split_at(below.len());
    if rest.is_empty() || of_above.is_empty() {
        return 1.0;
    }
    let seen: usize = of_above.iter().sum();
    let ways = ways(&ranks, of_above.len());
    let all: f64 = ways.iter().sum();
    let at_least: f64 = ways.iter().skip(seen).sum();
    at_least / all
}

/// Returns the smallest probability that [`one_sided`] can return for groups of these sizes without ties.
pub fn smallest(below: usize, above: usize) -> f64 {
    let pairs = (1..=above).map(|at| at as f64 / (below + at) as f64);
    pairs.product()
}

/// Returns for each number of pairs, from 0 on, the probability that at most this many of all pairs have the higher value
/// in the first group, if both groups were drawn from the same distribution and no values are equal.
pub fn at_most(first: usize, second: usize) -> Vec<f64> {
    let ranks: Vec<usize> = (1..=first + second).collect();
    let ways = ways(&ranks, first);
    let all: f64 = ways.iter().sum();
    let lowest = first * (first + 1) / 2;
    let so_far = ways.iter().skip(lowest).scan(0.0, |sum, ways| {
        *sum += ways / all;
        Some(*sum)
    });
    so_far.take(first * second + 1).collect()
}

/// Corrects probabilities of several tests, each with its weight (Holm 1979): the chance that any of those at or below a level is a
/// false alarm is at most that level. A test with more weight gets a larger part of the level.
///
/// S. Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6 (1979), 65-70.
pub fn corrected(tests: &[(f64, f64)]) -> Vec<f64> {
    let weighed = |at: usize| tests[at].0 / tests[at].1;
    let mut order: Vec<usize> = (0..tests.len()).collect();
    order.sort_by(|&a, &b| weighed(a).total_cmp(&weighed(b)));
    let mut corrected = vec![1.0; tests.len()];
    let mut highest = 0.0_f64;
    let mut left: f64 = tests.iter().map(|(_, weight)| weight).sum();
    for at in order {
        highest = highest.max((weighed(at) * left).min(1.0));
        corrected[at] = highest;
        left -= tests[at].1;
    }
    corrected
}

/// Ranks from 1, times two: equal values share the mean of their ranks, which may be a half. First those of `below`,
/// then those of `above`.
fn doubled_ranks(below: &[f64], above: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = below.iter().chain(above).copied().collect();
    let rank = |value: &f64| {
        let count = |wanted: Ordering| all.iter().filter(|v| v.total_cmp(value) == wanted).count();
        2 * count(Ordering::Less) + count(Ordering::Equal) + 1
    };
    all.iter().map(rank).collect()
}

/// In how many ways `chosen` of the ranks have each sum.
fn ways(ranks: &[usize], chosen: usize) -> Vec<f64> {
    let sums = ranks.iter().sum::<usize>() + 1;
    let mut by_count = vec![vec![0.0; sums]; chosen + 1];
    by_count[0][0] = 1.0;
    for rank in ranks {
        for count in (1..=chosen).rev() {
            for sum in (*rank..sums).rev() {
                by_count[count][sum] += by_count[count - 1][sum - rank];
            }
        }
    }
    by_count.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn probabilities_are_those_of_the_published_tables() {
        // Complete separation: one of all divisions.
        assert_close(one_sided(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 1.0 / 20.0);
        assert_close(smallest(3, 3), 1.0 / 20.0);
        assert_close(smallest(5, 5), 1.0 / 252.0);
        // The ranks of b are 3, 6, 8, 9 and 10. Their sum is four below the highest: 1 + 1 + 2 + 3 + 5 divisions reach it.
        let a = [1.2, 3.4, 2.2, 5.0, 4.1];
        let b = [2.9, 4.4, 6.1, 5.5, 7.0];
        assert_close(one_sided(&a, &b), 12.0 / 252.0);
        assert_close(one_sided(&b, &a), 245.0 / 252.0);
    }

    #[test]
    fn what_is_the_same_is_never_significant() {
        assert_close(one_sided(&[1.0; 6], &[1.0; 6]), 1.0);
        assert_close(one_sided(&[], &[1.0]), 1.0);
    }

    #[test]
    fn ties_count_half() {
        // By hand: of the ranks 1, 2.5, 2.5, 4 two have a sum of 6.5 or more in two of six ways.
        assert_close(one_sided(&[1.0, 2.0], &[2.0, 3.0]), 2.0 / 6.0);
    }

    #[test]
    fn many_tests_are_corrected() {
        let found = corrected(&[(0.01, 1.0), (0.04, 1.0), (0.03, 1.0), (0.5, 1.0)]);
        for (found, expected) in found.iter().zip([0.04, 0.09, 0.09, 0.5]) {
            assert_close(*found, expected);
        }
        // By hand: 0.01 / 3 * 6, then 0.004 * 3 is less, then 0.02 * 2 and 0.5.
        let found = corrected(&[(0.01, 3.0), (0.5, 1.0), (0.02, 1.0), (0.004, 1.0)]);
        for (found, expected) in found.iter().zip([0.02, 0.5, 0.04, 0.02]) {
            assert_close(*found, expected);
        }
    }
}
