//! Aligns two short sequences of rows: patience diff, then the gaps that it leaves, by what is less telling.
//!
//! Patience diff (Bram Cohen, 2008; described at <https://bramcohen.livejournal.com/73318.html>): rows that occur once on
//! both sides are anchors; their longest increasing subsequence is kept, and what lies between is aligned in the same way.
//! Like the histogram diff of JGit, rows that occur equally often on both sides are anchors too. The longest increasing
//! subsequence is found by patience sorting (Mallows, 1963), in `n log n`.

use rustc_hash::FxHashMap;

use super::hash;
use super::rows::Row;

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Both sides have it.
    Same(usize, usize),
    /// Both sides have this call, with other arguments, another result or other calls inside.
    Changed(usize, usize),
    /// Only the first side has it.
    OnlyA(usize),
    /// Only the second side has it.
    OnlyB(usize),
}

/// What rows are compared by, from the most telling one. How many calls a call made is not part of it: one call less in each of
/// several equal calls would pair them with their neighbours.
const KEYS: [fn(&Row) -> u64; 3] = [
    Row::call_hash,
    |row| hash::fold(row.args.class, u64::from(row.function)),
    |row| u64::from(row.function),
];

/// Cells of the largest table of common subsequences: two sequences of 256 rows.
const MOST_CELLS: usize = 1 << 16;
/// Rows with so many occurrences are no anchors.
const MOST_OCCURRENCES: u32 = 64;

/// Aligns all rows of both sides.
pub fn align(a: &[Row], b: &[Row]) -> Vec<Step> {
    let pairs = pairs(a, b);
    let mut steps = Vec::with_capacity(a.len().max(b.len()));
    let (mut at_a, mut at_b) = (0, 0);
    for (i, j) in pairs.into_iter().chain([(a.len(), b.len())]) {
        steps.extend((at_a..i).map(Step::OnlyA));
        steps.extend((at_b..j).map(Step::OnlyB));
        if i < a.len() {
            steps.push(match a[i].hash() == b[j].hash() {
                true => Step::Same(i, j),
                false => Step::Changed(i, j),
            });
        }
        (at_a, at_b) = (i + 1, j + 1);
    }
    steps
}

/// Returns the rows that belong together, in order. Rows in a pair have the same function.
pub fn pairs(a: &[Row], b: &[Row]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for key in KEYS {
        let mut more = Vec::new();
        let (mut at_a, mut at_b) = (0, 0);
        for &(i, j) in pairs.iter().chain([&(a.len(), b.len())]) {
            let keys = |rows: &[Row]| rows.iter().map(key).collect::<Vec<u64>>();
            if at_a < i && at_b < j {
                let found = matches(&keys(&a[at_a..i]), &keys(&b[at_b..j]));
                more.extend(found.into_iter().map(|(x, y)| (at_a + x, at_b + y)));
            }
            if i < a.len() || j < b.len() {
                more.push((i, j));
            }
            (at_a, at_b) = (i + 1, j + 1);
        }
        pairs = more;
    }
    pairs
}

/// Returns the rows that are equal by their most telling key alone, in order.
pub fn equal(a: &[Row], b: &[Row]) -> Vec<(usize, usize)> {
    let keys = |rows: &[Row]| rows.iter().map(KEYS[0]).collect::<Vec<u64>>();
    matches(&keys(a), &keys(b))
}

/// Patience diff of two sequences: the places of equal keys, both increasing.
pub fn matches(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    // Ranges that are not aligned yet, the first one last.
    let mut todo = vec![(0..a.len(), 0..b.len())];
    while let Some((mut own, mut other)) = todo.pop() {
        while !own.is_empty() && !other.is_empty() && a[own.start] == b[other.start] {
            found.push((own.start, other.start));
            own.start += 1;
            other.start += 1;
        }
        let mut ends = Vec::new();
        while !own.is_empty() && !other.is_empty() && a[own.end - 1] == b[other.end - 1] {
            own.end -= 1;
            other.end -= 1;
            ends.push((own.end, other.end));
        }
        found.extend(ends);
        if own.is_empty() || other.is_empty() {
            continue;
        }
        let anchors = anchors(&a[own.clone()], &b[other.clone()]);
        if anchors.is_empty() {
            let (i, j) = (own.start, other.start);
            let common = longest_common(&a[own], &b[other]);
            found.extend(common.into_iter().map(|(x, y)| (i + x, j + y)));
            continue;
        }
        let (mut at_a, mut at_b) = (own.start, other.start);
        for (i, j) in anchors {
            let (i, j) = (own.start + i, other.start + j);
            todo.push((at_a..i, at_b..j));
            found.push((i, j));
            (at_a, at_b) = (i + 1, j + 1);
        }
        todo.push((at_a..own.end, at_b..other.end));
    }
    found.sort_unstable();
    found
}

/// Returns the longest increasing sequence of rows that occur equally often on both sides.
fn anchors(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    let mut counts: FxHashMap<u64, (u32, u32)> = FxHashMap::default();
    a.iter()
        .for_each(|key| counts.entry(*key).or_default().0 += 1);
    b.iter()
        .for_each(|key| counts.entry(*key).or_default().1 += 1);
    let is_anchor = |key: &u64| {
        let (own, other) = counts[key];
        own == other && own <= MOST_OCCURRENCES
    };
    let mut seen: FxHashMap<u64, u32> = FxHashMap::default();
    let mut numbered = |key: u64| {
        let number = seen.entry(key).or_default();
        *number += 1;
        (key, *number)
    };
    let mut places: FxHashMap<(u64, u32), usize> = FxHashMap::default();
    for (at, key) in b.iter().enumerate() {
        if is_anchor(key) {
            places.insert(numbered(*key), at);
        }
    }
    seen = FxHashMap::default();
    let mut numbered = |key: u64| {
        let number = seen.entry(key).or_default();
        *number += 1;
        (key, *number)
    };
    let mut both = Vec::new();
    for (at, key) in a.iter().enumerate() {
        if is_anchor(key) {
            both.push((at, places[&numbered(*key)]));
        }
    }
    longest_increasing(&both)
}

/// Returns a longest common subsequence, by the table of the lengths of those of all ends (Wagner and Fischer, 1974). Of sequences
/// whose table would be too large, none.
fn longest_common(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    if a.len() * b.len() > MOST_CELLS {
        return Vec::new();
    }
    let width = b.len() + 1;
    let mut lens = vec![0u16; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            lens[i * width + j] = match a[i] == b[j] {
                true => lens[(i + 1) * width + j + 1] + 1,
                false => lens[(i + 1) * width + j].max(lens[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut found = Vec::new();
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            found.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if lens[(i + 1) * width + j] >= lens[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
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
    use super::super::forms::Formed;
    use super::*;

    fn row(function: u32, args: u64, result: u64) -> Row {
        Row {
            function,
            inside: 0,
            args: Formed::of(args),
            result: Formed::of(result),
            start: 0,
            end: 1,
        }
    }

    /// Rows of functions named by letters; a capital has another result.
    fn rows(text: &str) -> Vec<Row> {
        let of = |c: char| {
            row(
                c.to_ascii_lowercase() as u32,
                0,
                u64::from(c.is_ascii_uppercase()),
            )
        };
        text.chars().map(of).collect()
    }

    fn told(a: &str, b: &str) -> String {
        let (rows_a, rows_b) = (rows(a), rows(b));
        let at = |text: &str, i: usize| text.as_bytes()[i] as char;
        let step = |step: &Step| match *step {
            Step::Same(i, _) => at(a, i).to_string(),
            Step::Changed(i, j) => format!("{}~{}", at(a, i), at(b, j)),
            Step::OnlyA(i) => format!("-{}", at(a, i)),
            Step::OnlyB(j) => format!("+{}", at(b, j)),
        };
        let steps: Vec<String> = align(&rows_a, &rows_b).iter().map(step).collect();
        steps.join(" ")
    }

    #[test]
    fn rows_are_aligned_again_after_a_difference() {
        for (a, b, expected) in [
            ("", "", ""),
            ("abc", "abc", "a b c"),
            ("abc", "", "-a -b -c"),
            ("", "ab", "+a +b"),
            ("abcd", "abxcd", "a b +x c d"),
            ("abxcd", "abcd", "a b -x c d"),
            ("abcd", "aBcd", "a b~B c d"),
            ("fffg", "ffffg", "f f f +f g"),
            ("abcde", "xbcdy", "-a +x b c d -e +y"),
            ("afaf", "AFAF", "a~A f~F a~A f~F"),
        ] {
            assert_eq!(told(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn calls_that_are_made_twice_keep_their_partners() {
        let of = |args: &[u64]| -> Vec<Row> { args.iter().map(|arg| row(1, *arg, 0)).collect() };
        let steps = align(
            &of(&[10, 11, 12, 13]),
            &of(&[10, 10, 11, 11, 12, 12, 13, 13]),
        );
        let is_changed = |step: &&Step| matches!(step, Step::Changed(..));
        assert_eq!(steps.iter().filter(is_changed).count(), 0, "{steps:?}");
        assert_eq!(steps.len(), 8, "{steps:?}");
    }

    #[test]
    fn equal_calls_with_one_call_less_inside_are_not_paired_with_their_neighbours() {
        let with = |letter: char, inside: u32| Row {
            inside,
            ..row(letter as u32, 0, 0)
        };
        let of = |text: &[(char, u32)]| -> Vec<Row> {
            text.iter()
                .map(|(letter, inside)| with(*letter, *inside))
                .collect()
        };
        // Each `g` calls `x`, which the other side does not, and `f` once or twice.
        let a = of(&[
            ('x', 0),
            ('f', 0),
            ('f', 0),
            ('g', 3),
            ('x', 0),
            ('f', 0),
            ('g', 2),
        ]);
        let b = of(&[('f', 0), ('f', 0), ('g', 2), ('f', 0), ('g', 1)]);
        use Step::{Changed, OnlyA, Same};
        let expected = [
            OnlyA(0),
            Same(1, 0),
            Same(2, 1),
            Changed(3, 2),
            OnlyA(4),
            Same(5, 3),
            Changed(6, 4),
        ];
        assert_eq!(align(&a, &b), expected);
    }

    #[test]
    fn every_row_is_told_once_and_in_order() {
        let mut seed = 1u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12345);
            (seed >> 16) as usize
        };
        for _ in 0..500 {
            let mut text = || {
                let len = next() % 40;
                (0..len)
                    .map(|_| b"abcdeABC"[next() % 8] as char)
                    .collect::<String>()
            };
            let (a, b) = (rows(&text()), rows(&text()));
            let (mut at_a, mut at_b) = (0, 0);
            for step in align(&a, &b) {
                let (i, j) = match step {
                    Step::Same(i, j) | Step::Changed(i, j) => (Some(i), Some(j)),
                    Step::OnlyA(i) => (Some(i), None),
                    Step::OnlyB(j) => (None, Some(j)),
                };
                if let (Some(i), Some(j)) = (i, j) {
                    assert_eq!(a[i].function, b[j].function);
                    assert_eq!(a[i] == b[j], matches!(step, Step::Same(..)));
                }
                for (told, at) in [(i, &mut at_a), (j, &mut at_b)] {
                    if let Some(told) = told {
                        assert_eq!(told, *at);
                        *at += 1;
                    }
                }
            }
            assert_eq!((at_a, at_b), (a.len(), b.len()));
        }
    }
}
