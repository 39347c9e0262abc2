//! A 16-ary min-tree: finds the first number at or after an index that does not exceed a limit.
//!
//! Each level above the numbers holds the minima of sixteen entries of the level below. A search reads some sixteen
//! entries per level, however far away the answer is.

/// How many numbers share a minimum.
const WIDTH: usize = 16;

/// The numbers and their minima.
#[derive(Debug, Default)]
pub(crate) struct MinTree {
    /// The numbers, then their minima, then the minima of those.
    rows: Vec<Vec<u64>>,
}

impl MinTree {
    /// Takes the numbers.
    pub(crate) fn new(numbers: Vec<u64>) -> Self {
        let mut rows = vec![numbers];
        while let Some(below) = rows.last().filter(|row| row.len() > WIDTH) {
            let least = |some: &[u64]| some.iter().copied().min().expect("chunks have some");
            let above = below.chunks(WIDTH).map(least).collect();
            rows.push(above);
        }
        Self { rows }
    }

    /// Returns the index of the first number from index `from` on that is at most `limit`.
    pub(crate) fn next(&self, from: usize, limit: u64) -> Option<usize> {
        let (mut at, mut row) = (from, 0);
        let mut found = loop {
            let numbers = self.rows.get(row)?;
            let end = at.saturating_add(1).next_multiple_of(WIDTH);
            let end = end.min(numbers.len());
            let inside = numbers.get(at..end)?;
            match inside.iter().position(|number| *number <= limit) {
                Some(found) => break at + found,
                None => (at, row) = (end.div_ceil(WIDTH), row + 1),
            }
        };
        for row in self.rows[..row].iter().rev() {
            let first = found * WIDTH;
            let inside = row[first..].iter().position(|number| *number <= limit);
            found = first + inside.expect("its minimum is one of them");
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::MinTree;

    #[test]
    fn it_finds_what_looking_at_each_finds() {
        let mut random = StdRng::seed_from_u64(5);
        for len in [0, 1, 15, 16, 17, 255, 256, 257, 5000] {
            let numbers: Vec<u64> = (0..len).map(|_| random.random_range(0..10_000)).collect();
            let least = MinTree::new(numbers.clone());
            for _ in 0..2000 {
                let from = random.random_range(0..=len + 20);
                let limit = 10u64.pow(random.random_range(0..5)) - 1;
                let mut behind = numbers.iter().enumerate().skip(from);
                let expected = behind.find(|(_, number)| **number <= limit);
                let expected = expected.map(|(at, _)| at);
                assert_eq!(least.next(from, limit), expected, "{len} {from} {limit}");
            }
        }
    }
}
