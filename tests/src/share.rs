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

/// Returns whether an entry of a list is selected: a different third for each seed of property tests (`PROPTEST_RNG_SEED`),
/// which `.ci/run` draws.
///
/// # Panics
/// The seed is not a number.
#[must_use]
pub fn has_turn(index: usize) -> bool {
    let seed = std::env::var("PROPTEST_RNG_SEED").unwrap_or_else(|_| "0".to_owned());
    let seed: usize = seed.parse().expect("PROPTEST_RNG_SEED is a number");
    is_whole() || index % 3 == seed % 3
}
