//! Aligns two sequences of rows: patience diff with units of several rows, then the gaps that it leaves, by what is less telling.
//!
//! Patience diff (Bram Cohen, 2008; described at <https://bramcohen.livejournal.com/73318.html>): what occurs once on both sides
//! is an anchor; the longest increasing subsequence of anchors is kept, and what lies between is aligned in the same way. Calls
//! repeat much, so units of 128, 32 and 8 consecutive rows are anchors before single rows are (`anchors.rs`). Like the histogram
//! diff of JGit, single rows that occur equally often on both sides are anchors too. Gaps without any have the shortest edit script
//! (`script.rs`).

use std::ops::Range;

use super::anchors::{self, Run, UNITS, common};
use super::rows::Row;
use super::{hash, script};

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

/// Returns all rows of both sides, where these belong together.
pub fn steps(a: &[Row], b: &[Row], pairs: &[(usize, usize)]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(a.len().max(b.len()));
    let (mut at_a, mut at_b) = (0, 0);
    for (i, j) in pairs.iter().copied().chain([(a.len(), b.len())]) {
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

/// Returns where both sides agree again: behind the last run that both have, if runs make up at least `enough` rows. Runs are
/// units of several rows that each side has once, and what is equal around them.
pub fn met(a: &[Row], b: &[Row], enough: usize) -> Option<(usize, usize)> {
    let keys = |rows: &[Row]| rows.iter().map(KEYS[0]).collect::<Vec<u64>>();
    let (a, b) = (keys(a), keys(b));
    match a <= b {
        true => ordered_met(&a, &b, enough),
        false => ordered_met(&b, &a, enough).map(|(j, i)| (i, j)),
    }
}

fn ordered_met(a: &[u64], b: &[u64], enough: usize) -> Option<(usize, usize)> {
    UNITS.iter().find_map(|unit| {
        let runs = anchors::of_units(a, b, *unit);
        let equal: usize = runs.iter().map(|run| run.len).sum();
        let last = runs.last().filter(|_| equal >= enough);
        last.map(Run::ends)
    })
}

/// Aligns two sequences: returns the places of equal keys, both increasing. Exchanged sequences have the same, exchanged.
pub fn matches(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    // Where several alignments are as good, the sides must not decide.
    match a <= b {
        true => ordered_matches(a, b),
        false => {
            let found = ordered_matches(b, a).into_iter();
            found.map(|(j, i)| (i, j)).collect()
        }
    }
}

fn ordered_matches(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    // Ranges that are not aligned yet.
    let mut todo = vec![(0..a.len(), 0..b.len())];
    while let Some(gap) = todo.pop() {
        let (own, other) = trimmed(a, b, gap, &mut found);
        if own.is_empty() || other.is_empty() {
            continue;
        }
        let (in_a, in_b) = (&a[own.clone()], &b[other.clone()]);
        let Some(runs) = runs(in_a, in_b) else {
            continue;
        };
        if runs.is_empty() {
            let pairs = script::matches(in_a, in_b).into_iter();
            found.extend(pairs.map(|(i, j)| (own.start + i, other.start + j)));
            continue;
        }
        let (mut at_a, mut at_b) = (own.start, other.start);
        for run in runs {
            let (i, j) = (own.start + run.a, other.start + run.b);
            todo.push((at_a..i, at_b..j));
            found.extend((0..run.len).map(|at| (i + at, j + at)));
            (at_a, at_b) = (i + run.len, j + run.len);
        }
        todo.push((at_a..own.end, at_b..other.end));
    }
    found.sort_unstable();
    found
}

/// Takes what is equal from the beginnings and the ends of a gap, and returns the rest.
fn trimmed(
    a: &[u64],
    b: &[u64],
    (mut own, mut other): (Range<usize>, Range<usize>),
    found: &mut Vec<(usize, usize)>,
) -> (Range<usize>, Range<usize>) {
    let begin = common(a[own.clone()].iter(), b[other.clone()].iter());
    found.extend((0..begin).map(|at| (own.start + at, other.start + at)));
    (own.start, other.start) = (own.start + begin, other.start + begin);
    let end = common(a[own.clone()].iter().rev(), b[other.clone()].iter().rev());
    (own.end, other.end) = (own.end - end, other.end - end);
    found.extend((0..end).map(|at| (own.end + at, other.end + at)));
    (own, other)
}

/// Returns the most telling anchors of two sequences, in order. `None` if they have no row in common.
fn runs(a: &[u64], b: &[u64]) -> Option<Vec<Run>> {
    let mut of_units = UNITS.iter().map(|unit| anchors::of_units(a, b, *unit));
    let found = of_units.find(|runs| !runs.is_empty());
    found.or_else(|| anchors::of_rows(a, b))
}

#[cfg(test)]
mod tests {
    use super::super::forms::Formed;
    use super::*;

    fn align(a: &[Row], b: &[Row]) -> Vec<Step> {
        steps(a, b, &pairs(a, b))
    }

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
