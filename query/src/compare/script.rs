//! The shortest edit script of two sequences, by the greedy algorithm of Myers (An O(ND) Difference Algorithm and Its
//! Variations, Algorithmica 1, 1986).
//!
//! Its time grows with the number of edits. Where there are many, the path that has come furthest after some of them is
//! taken, and the rest is searched from its end: the time per row is bounded, and the script may be longer than necessary.

use rustc_hash::FxHashSet;

use super::anchors::common;

/// Most edits that are searched at once.
const MOST_EDITS: usize = 128;

/// Returns the places of equal rows, both increasing.
pub fn matches(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    // What only one side has is no part of it.
    let (places_a, places_b) = (places(a, b), places(b, a));
    let rows = |rows: &[u64], places: &[usize]| places.iter().map(|at| rows[*at]).collect();
    let (own, other): (Vec<u64>, Vec<u64>) = (rows(a, &places_a), rows(b, &places_b));
    let mut found = Vec::new();
    let (mut at_a, mut at_b) = (0, 0);
    while at_a < own.len() && at_b < other.len() {
        let (pairs, ends) = Piece::new(&own[at_a..], &other[at_b..]).searched();
        let place = |(i, j): (usize, usize)| (places_a[at_a + i], places_b[at_b + j]);
        found.extend(pairs.into_iter().map(place));
        (at_a, at_b) = (at_a + ends.0, at_b + ends.1);
    }
    found
}

/// Returns where the rows are that the other side has, too.
fn places(rows: &[u64], others: &[u64]) -> Vec<usize> {
    let others: FxHashSet<&u64> = others.iter().collect();
    let all = rows.iter().enumerate();
    let shared = all.filter(|(_, row)| others.contains(row));
    shared.map(|(at, _)| at).collect()
}

/// A search from the beginning of two sequences.
struct Piece<'r> {
    a: &'r [u64],
    b: &'r [u64],
    /// By number of edits: how far paths reach in `a` on each diagonal, from the lowest one, every second. Some of them have left
    /// `b`; from its end, others reach as far with fewer edits.
    reached: Vec<Vec<usize>>,
}

impl<'r> Piece<'r> {
    fn new(a: &'r [u64], b: &'r [u64]) -> Self {
        let reached = vec![vec![common(a.iter(), b.iter())]];
        Piece { a, b, reached }
    }

    /// Returns the places of equal rows, and where the search ended.
    fn searched(mut self) -> (Vec<(usize, usize)>, (usize, usize)) {
        let all = (self.a.len(), self.b.len());
        for edits in 0..=MOST_EDITS {
            let mut ends = (0..=edits).map(|at| self.end(edits, at));
            if let Some(at) = ends.position(|end| end == all) {
                return (self.path(at), all);
            }
            if edits < MOST_EDITS {
                self.edit();
            }
        }
        let ends = (0..=MOST_EDITS).map(|at| (self.end(MOST_EDITS, at), at));
        let inside = ends.filter(|((i, j), _)| *i <= all.0 && *j <= all.1);
        let furthest = inside.max_by_key(|((i, j), _)| i + j);
        furthest.map_or((Vec::new(), all), |(end, at)| (self.path(at), end))
    }

    /// Returns where the path on a diagonal ends.
    fn end(&self, edits: usize, at: usize) -> (usize, usize) {
        let i = self.reached[edits][at];
        (i, i + edits - 2 * at)
    }

    /// Lets each path go on by one edit, and by the equal rows behind it.
    fn edit(&mut self) {
        let edits = self.reached.len();
        let mut reached = Vec::with_capacity(edits + 1);
        for at in 0..=edits {
            let (mut i, _) = edited(&self.reached[edits - 1], at);
            let mut j = i + edits - 2 * at;
            while i < self.a.len() && j < self.b.len() && self.a[i] == self.b[j] {
                (i, j) = (i + 1, j + 1);
            }
            reached.push(i);
        }
        self.reached.push(reached);
    }

    /// Returns the equal rows of a path, in order.
    fn path(&self, mut at: usize) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let mut edits = self.reached.len() - 1;
        loop {
            let (i, j) = self.end(edits, at);
            let (start, from) = match edits {
                0 => (0, 0),
                _ => edited(&self.reached[edits - 1], at),
            };
            pairs.extend((1..=i - start).map(|back| (i - back, j - back)));
            if edits == 0 {
                break;
            }
            (edits, at) = (edits - 1, from);
        }
        pairs.reverse();
        pairs
    }
}

/// Returns how far one more edit leads on a diagonal, and the diagonal that it comes from: a row of `b` inserted, or one of `a` deleted.
fn edited(before: &[usize], at: usize) -> (usize, usize) {
    let inserted = before.get(at).map(|i| (*i, at));
    let below = at.checked_sub(1);
    let deleted = below.map(|below| (before[below] + 1, below));
    inserted.max(deleted).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(a: &str, b: &str) -> String {
        let keys = |text: &str| text.bytes().map(u64::from).collect::<Vec<u64>>();
        let pairs = matches(&keys(a), &keys(b));
        pairs
            .iter()
            .map(|(i, _)| a.as_bytes()[*i] as char)
            .collect()
    }

    #[test]
    fn as_many_rows_as_possible_are_equal() {
        for (a, b, most) in [
            ("", "", 0),
            ("abc", "", 0),
            ("abc", "abc", 3),
            ("abcabba", "cbabac", 4),
            ("xaxbxcx", "yaybyc", 3),
            ("fgfgfgfg", "gfgfgfgf", 7),
        ] {
            assert_eq!(told(a, b).len(), most, "{a} {b}");
            assert_eq!(told(b, a).len(), most, "{b} {a}");
        }
    }

    #[test]
    fn a_long_script_ends() {
        let turned = |len: u64, by: u64| (0..len).map(move |i| (i * by) % len).collect::<Vec<_>>();
        let (a, b) = (turned(5003, 7), turned(5003, 11));
        let pairs = matches(&a, &b);
        assert!(pairs.iter().all(|(i, j)| a[*i] == b[*j]));
        let mut next = pairs.iter().zip(pairs.iter().skip(1));
        assert!(next.all(|(one, next)| one.0 < next.0 && one.1 < next.1));
    }
}
