//! How much of the slow work a run of all tests does: a third. `WHOLE=1` does all of it.

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
    let seed = std::env::var("PROPTEST_RNG_SEED").unwrap_or_else(|_| "0".to_owned());
    let seed: usize = seed.parse().expect("PROPTEST_RNG_SEED is a number");
    (!is_whole()).then_some(seed % 3)
}

/// Returns whether an entry of a list is selected.
#[must_use]
pub fn has_turn(index: usize) -> bool {
    turn().is_none_or(|turn| index % 3 == turn)
}

/// Returns the entries of a list that are selected.
pub fn in_turn<T>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    let numbered = all.into_iter().enumerate();
    numbered.filter_map(|(index, entry)| has_turn(index).then_some(entry))
}
