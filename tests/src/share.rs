//! How much of the slow work a run of all tests does: a third, or less. `WHOLE=1` does all of it. And what tests share.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Returns whether the tests use all samples.
fn is_whole() -> bool {
    std::env::var_os("WHOLE").is_some()
}

/// Returns the number of samples to take out of `whole`.
#[must_use]
pub fn share(whole: usize) -> usize {
    match is_whole() {
        true => whole,
        false => whole.div_ceil(3),
    }
}

/// Returns which third of a list is selected, from 0; `None` if all of it is. It follows from the seed of property tests
/// (`PROPTEST_RNG_SEED`), which `.ci/run` draws.
///
/// # Panics
/// The seed is not a number.
#[must_use]
pub fn turn() -> Option<usize> {
    turn_among(3)
}

/// As [`turn`], of so many parts.
///
/// # Panics
/// The seed is not a number.
#[must_use]
pub fn turn_among(parts: usize) -> Option<usize> {
    let seed = std::env::var("PROPTEST_RNG_SEED").unwrap_or_else(|_| "0".to_owned());
    let seed: usize = seed.parse().expect("PROPTEST_RNG_SEED is a number");
    (!is_whole()).then_some(seed % parts)
}

/// Returns whether an entry of a list is selected, of which a run takes a third.
#[must_use]
pub fn has_turn(index: usize) -> bool {
    has_turn_among(3, index)
}

/// Returns whether an entry of a list is selected, of which a run takes one of so many parts.
///
/// # Panics
/// There is no part.
#[must_use]
pub fn has_turn_among(parts: usize, index: usize) -> bool {
    turn_among(parts).is_none_or(|turn| index % parts == turn)
}

/// Returns the entries of a list that are selected: a third, and one at least. It prints which those are.
pub fn in_turn<T>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    in_turn_among(3, all)
}

/// As [`in_turn`], with one of so many parts instead of a third.
pub fn in_turn_among<T>(parts: usize, all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    let all: Vec<T> = all.into_iter().collect();
    let parts = parts.min(all.len()).max(1);
    let (first, step) = turn_among(parts).map_or((0, 1), |turn| (turn, parts));
    let len = all.len();
    eprintln!("this run takes one of {step} of {len} samples, from number {first} on");
    all.into_iter().skip(first).step_by(step)
}

/// Something that tests of one program share while any of them needs it: then it is made once. The last one drops it.
pub struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    /// Returns it, and makes it if no test has it.
    pub fn get(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.upgrade().unwrap_or_else(|| {
            let made = Arc::new(make());
            *kept = Arc::downgrade(&made);
            made
        })
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self::new()
    }
}
