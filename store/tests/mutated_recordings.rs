//! Goal: no bytes make a reader panic. Method: the entry of the fuzz target is given good inputs, changed at random
//! from a fixed seed, a bounded number of times.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use store::fuzzing;
use tempfile::TempDir;

/// More of them on request, for a longer search.
fn rounds_per_seed() -> usize {
    let asked = std::env::var("STORE_FUZZ_ROUNDS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(400)
}

/// Changes, cuts, doubles or moves a few bytes.
fn mutate(bytes: &mut Vec<u8>, random: &mut StdRng) {
    for _ in 0..random.random_range(1..6) {
        if bytes.len() < 2 {
            return;
        }
        let at = random.random_range(1..bytes.len());
        let end = random.random_range(at..bytes.len()).min(at + 64);
        match random.random_range(0..7) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.random_range(0..5)],
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..end)),
            5 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => bytes[at..end].rotate_left((end - at) / 2),
        }
    }
}

/// For thousands of short-lived small folders, memory spares the disk, if the system offers it.
fn in_memory() -> Option<TempDir> {
    tempfile::tempdir_in("/dev/shm").ok()
}

#[test]
fn no_mutated_input_makes_a_reader_panic() {
    let dir = in_memory().unwrap_or_else(|| tempfile::tempdir().unwrap());
    let mut random = StdRng::seed_from_u64(20);
    let seeds = fuzzing::seeds(dir.path()).unwrap();
    assert_eq!(seeds.len(), usize::from(fuzzing::WAYS));
    for seed in seeds {
        fuzzing::entry(&seed, dir.path()).unwrap();
        for round in 0..rounds_per_seed() {
            let mut input = seed.clone();
            mutate(&mut input, &mut random);
            let outcome = std::panic::catch_unwind(|| fuzzing::entry(&input, dir.path()));
            assert!(outcome.is_ok(), "way {} round {round}: {input:?}", seed[0]);
        }
    }
}
