//! Two sequences of lines or events side by side. After a difference, the next ones of both are held and aligned again by
//! patience diff, so that what is only in one is a single difference and not one for each that follows.

use std::collections::VecDeque;

use super::align;
use crate::error::Result;

/// Items of each side that are held to align them.
const WINDOW: usize = 2048;

/// One side, and what is held of it.
struct Held<T, N> {
    next: N,
    items: VecDeque<T>,
    has_ended: bool,
}

impl<T, N: FnMut() -> Result<Option<T>>> Held<T, N> {
    fn new(next: N) -> Self {
        Self {
            next,
            items: VecDeque::new(),
            has_ended: false,
        }
    }

    /// Holds up to `count` items, as far as there are so many.
    fn fill(&mut self, count: usize) -> Result<()> {
        while self.items.len() < count && !self.has_ended {
            match (self.next)()? {
                Some(item) => self.items.push_back(item),
                None => self.has_ended = true,
            }
        }
        Ok(())
    }
}

/// Passes to `each` the items of both sides that belong together, in order, and those that only one side has. Items for which
/// `is_same` holds have the same `key`.
///
/// # Errors
/// Those of reading.
pub fn pairs<T>(
    own: impl FnMut() -> Result<Option<T>>,
    other: impl FnMut() -> Result<Option<T>>,
    is_same: impl Fn(&T, &T) -> bool,
    key: impl Fn(&T) -> u64,
    mut each: impl FnMut(Option<T>, Option<T>),
) -> Result<()> {
    let (mut own, mut other) = (Held::new(own), Held::new(other));
    loop {
        own.fill(1)?;
        other.fill(1)?;
        match (own.items.front(), other.items.front()) {
            (None, None) => return Ok(()),
            (Some(a), Some(b)) if is_same(a, b) => {
                each(own.items.pop_front(), other.items.pop_front())
            }
            (Some(_), Some(_)) => {
                own.fill(WINDOW)?;
                other.fill(WINDOW)?;
                let keys = |items: &VecDeque<T>| items.iter().map(&key).collect::<Vec<u64>>();
                let matches = align::matches(&keys(&own.items), &keys(&other.items));
                let (mut at_a, mut at_b) = (0, 0);
                let ends = matches
                    .is_empty()
                    .then_some((own.items.len(), other.items.len()));
                for (i, j) in matches.into_iter().chain(ends) {
                    while at_a < i || at_b < j {
                        let a = (at_a < i).then(|| own.items.pop_front()).flatten();
                        let b = (at_b < j).then(|| other.items.pop_front()).flatten();
                        at_a += usize::from(a.is_some());
                        at_b += usize::from(b.is_some());
                        each(a, b);
                    }
                    if ends.is_none() {
                        each(own.items.pop_front(), other.items.pop_front());
                        (at_a, at_b) = (i + 1, j + 1);
                    }
                }
            }
            _ => each(own.items.pop_front(), other.items.pop_front()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What belongs together, `.` for none.
    fn told(a: &str, b: &str) -> Vec<String> {
        let (mut own, mut other) = (a.chars(), b.chars());
        let mut found = Vec::new();
        let mut each = |a: Option<char>, b: Option<char>| {
            if a != b {
                found.push([a.unwrap_or('.'), b.unwrap_or('.')].iter().collect());
            }
        };
        pairs(
            || Ok(own.next()),
            || Ok(other.next()),
            |a, b| a == b,
            |of| u64::from(*of),
            &mut each,
        )
        .expect("nothing is read");
        found
    }

    #[test]
    fn what_follows_a_difference_is_aligned_again() {
        assert!(told("", "").is_empty());
        assert!(told("abc", "abc").is_empty());
        assert_eq!(told("abcd", "axcd"), ["bx"]);
        assert_eq!(told("abcdef", "abXcdef"), [".X"]);
        assert_eq!(told("abcdef", "abdeZf"), ["c.", ".Z"]);
        assert_eq!(told("ab", "abc"), [".c"]);
        assert_eq!(told("xyz", "abc"), ["xa", "yb", "zc"]);
        assert_eq!(told("", "ab"), [".a", ".b"]);
    }

    #[test]
    fn differences_at_any_distance_are_found() {
        let many = |first: u64, count: u64| {
            let mut at = first..count;
            move || Ok(at.next())
        };
        let mut found = Vec::new();
        pairs(
            many(0, 10_000),
            many(1, 10_001),
            |a, b| a == b,
            |of| *of,
            |a, b| {
                if a != b {
                    found.push((a, b));
                }
            },
        )
        .expect("nothing is read");
        assert_eq!(found, [(Some(0), None), (None, Some(10_000))]);
    }
}
