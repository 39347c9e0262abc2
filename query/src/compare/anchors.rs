//! What two sequences have in common for certain: units of consecutive rows that each of them has once.
//!
//! One row tells little where rows repeat, so the longest units come first. Of many units only some are looked at, chosen by
//! their hashes: so both sides choose the same. Which units belong together is found by patience sorting (Mallows, 1963), in
//! `n log n`. Each of them then grows both ways as far as the rows are equal.

use rustc_hash::FxHashMap;

/// Rows of a unit, the most telling one first.
pub const UNITS: [usize; 3] = [128, 32, 8];
/// Units of sequences with so many rows are all looked at, of twice as many every second one, and so on.
const ALL: usize = 4096;
/// Single rows with so many occurrences are no anchors.
const MOST_OCCURRENCES: u32 = 64;

/// The golden ratio, as a fraction of 2^64.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
/// What a rolling hash is multiplied by for each row (Knuth, MMIX).
const BASE: u64 = 6_364_136_223_846_793_005;

/// Consecutive rows that are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where it begins in the first sequence.
    pub a: usize,
    /// Where it begins in the second one.
    pub b: usize,
    /// How many rows it has.
    pub len: usize,
}

impl Run {
    /// Returns the places behind it.
    pub fn ends(&self) -> (usize, usize) {
        (self.a + self.len, self.b + self.len)
    }
}

/// Where a unit was seen in a sequence.
#[derive(Clone, Copy, Debug, Default)]
enum Seen {
    #[default]
    Never,
    Once(usize),
    Often,
}

impl Seen {
    fn at(&mut self, place: usize) {
        *self = match self {
            Seen::Never => Seen::Once(place),
            Seen::Once(_) | Seen::Often => Seen::Often,
        };
    }
}

/// Returns the runs around units of so many rows that both sequences have once, in order.
pub fn of_units(a: &[u64], b: &[u64], unit: usize) -> Vec<Run> {
    let skipped = (a.len().max(b.len()) / ALL).max(1).ilog2();
    let own: Vec<(u64, usize)> = units(a, unit, skipped).collect();
    let mut seen: FxHashMap<u64, (Seen, Seen)> = FxHashMap::default();
    for (hash, at) in &own {
        seen.entry(*hash).or_default().0.at(*at);
    }
    for (hash, at) in units(b, unit, skipped) {
        if let Some(seen) = seen.get_mut(&hash) {
            seen.1.at(at);
        }
    }
    let both = own.iter().filter_map(|(hash, _)| match seen[hash] {
        (Seen::Once(i), Seen::Once(j)) => Some((i, j)),
        _ => None,
    });
    let anchors = longest_increasing(&both.collect::<Vec<_>>());
    grown(a, b, &anchors, unit)
}

/// Returns the hashes of the units that are looked at, and where they begin: of all whose hash begins with so many zeros.
fn units(rows: &[u64], unit: usize, zeros: u32) -> impl Iterator<Item = (u64, usize)> {
    let mixed = |row: u64| (row ^ (row >> 32)).wrapping_mul(MIX);
    let leaving = BASE.wrapping_pow(unit as u32);
    let mut hash = 0u64;
    let hashes = rows.iter().enumerate().map(move |(at, row)| {
        hash = hash.wrapping_mul(BASE).wrapping_add(mixed(*row));
        if let Some(gone) = at.checked_sub(unit) {
            hash = hash.wrapping_sub(mixed(rows[gone]).wrapping_mul(leaving));
        }
        (hash.wrapping_mul(MIX), (at + 1).saturating_sub(unit))
    });
    let whole = hashes.skip(unit - 1);
    whole.filter(move |(hash, _)| hash.leading_zeros() >= zeros)
}

/// Lets each anchor grow both ways up to the next one. Anchors inside the run of an earlier one are part of it or against it.
fn grown(a: &[u64], b: &[u64], anchors: &[(usize, usize)], unit: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut ends = (0, 0);
    for &(i, j) in anchors {
        if i < ends.0 || j < ends.1 {
            continue;
        }
        let ahead = common(a[i..].iter(), b[j..].iter());
        // Other rows may have the same hash.
        if ahead < unit {
            continue;
        }
        let before = common(a[ends.0..i].iter().rev(), b[ends.1..j].iter().rev());
        let run = Run {
            a: i - before,
            b: j - before,
            len: before + ahead,
        };
        ends = run.ends();
        runs.push(run);
    }
    runs
}

/// Counts how many rows are equal.
pub fn common<'r>(
    own: impl Iterator<Item = &'r u64>,
    other: impl Iterator<Item = &'r u64>,
) -> usize {
    own.zip(other)
        .take_while(|(own, other)| own == other)
        .count()
}

/// Returns single rows that both sequences have equally often, each as a run: the first belongs to the first, and so on. `None` if
/// they have no row in common.
pub fn of_rows(a: &[u64], b: &[u64]) -> Option<Vec<Run>> {
    let mut counts: FxHashMap<u64, (u32, u32)> = FxHashMap::default();
    a.iter()
        .for_each(|key| counts.entry(*key).or_default().0 += 1);
    let mut has_common = false;
    for key in b {
        if let Some(count) = counts.get_mut(key) {
            count.1 += 1;
            has_common = true;
        }
    }
    if !has_common {
        return None;
    }
    counts.retain(|_, (own, other)| own == other && *own <= MOST_OCCURRENCES);
    let places: FxHashMap<(u64, u32), usize> = numbered(b, &counts).collect();
    let both = numbered(a, &counts).map(|(row, i)| (i, places[&row]));
    let pairs = longest_increasing(&both.collect::<Vec<_>>());
    let run = |(a, b)| Run { a, b, len: 1 };
    Some(pairs.into_iter().map(run).collect())
}

/// Returns the rows that are counted, each with its number among those that are equal, and where they are.
fn numbered<'r>(
    rows: &'r [u64],
    counts: &'r FxHashMap<u64, (u32, u32)>,
) -> impl Iterator<Item = ((u64, u32), usize)> + 'r {
    let mut seen: FxHashMap<u64, u32> = FxHashMap::default();
    let counted = rows.iter().enumerate();
    let counted = counted.filter(|(_, key)| counts.contains_key(key));
    counted.map(move |(at, key)| {
        let number = seen.entry(*key).or_default();
        *number += 1;
        ((*key, *number), at)
    })
}

/// Patience sorting: returns a longest subsequence whose second numbers increase.
fn longest_increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The last pair of the best sequence of each length.
    let mut tops: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (at, pair) in pairs.iter().enumerate() {
        let pile = tops.partition_point(|top| pairs[*top].1 < pair.1);
        before[at] = pile.checked_sub(1).map(|below| tops[below]);
        match tops.get_mut(pile) {
            Some(top) => *top = at,
            None => tops.push(at),
        }
    }
    let mut found = Vec::with_capacity(tops.len());
    let mut next = tops.last().copied();
    while let Some(at) = next {
        found.push(pairs[at]);
        next = before[at];
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers below `below`, always the same ones.
    fn numbers(count: usize, below: u64) -> Vec<u64> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(BASE).wrapping_add(1);
            (state >> 33) % below
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn units_are_found_wherever_they_are() {
        let rows = numbers(2000, 1 << 20);
        let mut moved = numbers(300, 7);
        moved.extend(&rows[500..]);
        for unit in UNITS {
            let runs = of_units(&rows, &moved, unit);
            let expected = [Run {
                a: 500,
                b: 300,
                len: 1500,
            }];
            assert_eq!(runs, expected, "{unit}");
        }
    }

    #[test]
    fn what_one_side_has_twice_is_no_anchor() {
        let rows = numbers(64, 1 << 20);
        let twice = [&rows[..], &rows[..]].concat();
        for unit in UNITS {
            assert_eq!(of_units(&rows, &twice, unit), [], "{unit}");
        }
        let lens = |a: &[u64], b: &[u64]| of_rows(a, b).map(|runs| runs.len());
        assert_eq!(lens(&[1, 2, 2, 3], &[2, 3, 2]), Some(2));
        assert_eq!(lens(&[1, 1, 2], &[1, 3]), Some(0));
        assert_eq!(lens(&[1, 2], &[3, 4]), None);
    }
}
