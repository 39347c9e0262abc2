//! Goal: no DWARF expression makes its evaluator panic, loop endlessly or use disproportionate memory. Method: expressions
//! with every operator, wrapped in a module, are changed at random from a fixed seed. `VALUES_FUZZ_ROUNDS` makes the search
//! longer, `VALUES_FUZZ_CORPUS` names a folder that the good ones are written to, for the fuzz target to begin with.

// Only the generator of numbers is used here.
#[allow(dead_code)]
#[path = "../../debuginfo/tests/common/mutate.rs"]
mod mutate;

use std::path::Path;

use debuginfo::fuzzing::location;
use mutate::{Random, mutate};
use values::fuzzing::show;

/// Where the frame is, and where the variables are.
const SEEDS: [(&[u8], &[u8]); 20] = [
    (&[0x9c], &[0x91, 0x70]),       // call_frame_cfa; fbreg -16
    (&[0x56], &[0x91, 0x00]),       // reg6; fbreg 0
    (&[0x76, 0x00], &[0x76, 0x68]), // breg6 0; breg6 -24
    (&[0x9c], &[0x50]),             // reg0
    (&[0x9c], &[0x90, 0x11]),       // regx xmm0
    (&[0x9c], &[0x03, 0, 0x10, 0, 0x50, 0, 0, 0, 0]), // addr
    (&[0x9c], &[0x31, 0x32, 0x1e, 0x33, 0x22, 0x9f]), // lit1 lit2 mul lit3 plus stack_value
    (&[0x9c], &[0x55, 0x93, 2, 0x54, 0x93, 2]), // reg5 piece 2, reg4 piece 2
    (&[0x9c], &[0x93, 4]),          // piece of nothing
    (&[0x9c], &[0x55, 0x9d, 8, 4, 0x54, 0x9d, 24, 0]), // bit_piece
    (&[0x9c], &[0x9e, 4, 1, 2, 3, 4]), // implicit_value
    (&[0x9c], &[0xa3, 1, 0x55, 0x9f]), // entry_value of reg5
    (&[0x9c], &[0xf3, 1, 0x54, 0x9f]), // GNU_entry_value
    (&[0x9c], &[0xa0, 18, 0, 0, 0, 0]), // implicit_pointer
    (&[0x9c], &[0x70, 0x00, 0x06, 0x23, 0x08, 0x94, 2]), // breg0 deref plus_uconst deref_size
    (
        &[0x9c],
        &[
            0x30, 0x12, 0x31, 0x22, 0x12, 0x0a, 0x10, 0x27, 0x2d, 0x28, 0xf4, 0xff,
        ],
    ), // a loop: bra backwards
    (&[0x9c], &[0x2f, 0xfd, 0xff]), // skip to itself
    (&[0x9c], &[0x99, 18, 0, 0, 0]), // call4
    (&[0x9c], &[0x0c, 8, 0, 0, 0, 0xe0]), // thread-local
    (&[0x91, 0x00], &[0x91, 0x00]), // a frame that asks for itself
];

fn input(frame: &[u8], place: &[u8]) -> Vec<u8> {
    [&[frame.len() as u8], frame, place].concat()
}

/// More of them on request, for a longer search.
fn rounds_per_seed() -> usize {
    let asked = std::env::var("VALUES_FUZZ_ROUNDS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(400)
}

#[test]
fn no_expression_makes_the_evaluator_panic() {
    let corpus = std::env::var("VALUES_FUZZ_CORPUS").ok();
    let mut random = Random::new(7);
    for (number, (frame, place)) in SEEDS.iter().enumerate() {
        let seed = input(frame, place);
        if let Some(corpus) = &corpus {
            let name = Path::new(corpus).join(format!("location_{number}"));
            std::fs::write(name, &seed).expect("the folder for the corpus exists");
        }
        location(&seed, &show);
        for _ in 0..rounds_per_seed() {
            let mut changed = seed.clone();
            // A piece of another one is inserted, so that operators get each other's operands.
            let (_, other) = SEEDS[random.below(SEEDS.len())];
            let at = 1 + random.below(changed.len());
            changed.splice(at..at, other.iter().copied());
            let whole = [(0, changed.len())];
            mutate(&mut changed, &whole, &mut random);
            let outcome = std::panic::catch_unwind(|| location(&changed, &show));
            assert!(outcome.is_ok(), "{changed:02x?}");
        }
    }
}

/// Every operator alone, with too few operands on the stack and too few bytes after it.
#[test]
fn no_operator_alone_makes_the_evaluator_panic() {
    for operator in 0..=0xff {
        for operands in [&[][..], &[0], &[0xff; 12]] {
            let place = [&[operator], operands].concat();
            location(&input(&[0x9c], &place), &show);
            location(&input(&place, &[0x91, 0]), &show);
        }
    }
}
