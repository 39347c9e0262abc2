//! Goal: going to moments far apart changes no answer. Method: copies of the process are made on the way to random moments; then the
//! writes to a variable that long stretches do not touch are searched, and single steps back are compared with a replay of its own.

mod recorded;

use exact::Replay;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

use recorded::recorded;

const SOURCE: &str = include_str!("programs/early.c");

#[test]
fn moves_on_the_way_change_no_answer() {
    let folder = TempDir::new().expect("a folder");
    let [early] = recorded(SOURCE, folder.path());
    let open = || Replay::open(folder.path()).expect("the recording can be opened");
    let mut replay = open();
    let end = replay.end();
    assert!(end > 120_000_000, "{end} instructions");
    let writes = open().writes(early, 4, end, usize::MAX).expect("a search");
    let [first, last] = writes[..] else {
        panic!("{writes:?}")
    };
    assert!(first < 1_000_000 && last > 100_000_000, "{writes:?}");
    // The way to each of them passes places where copies are kept.
    for (moment, wanted) in [
        (30_000_000, first),
        (end - 1, last),
        (last, first),
        (70_000_000, first),
        (end, last),
    ] {
        replay.goto(moment).expect("a position");
        let found = replay.last_write(early, 4, moment).expect("a search");
        assert_eq!(found, Some(wanted), "before {moment}");
    }
}

#[test]
fn steps_back_show_what_a_run_up_to_there_shows() {
    let folder = TempDir::new().expect("a folder");
    let [_] = recorded(SOURCE, folder.path());
    let mut replay = Replay::open(folder.path()).expect("the recording can be opened");
    let mut alone = Replay::open(folder.path()).expect("the recording can be opened");
    let mut random = rand::rngs::StdRng::seed_from_u64(9);
    let moments: Vec<u64> = (0..12)
        .map(|_| random.random_range(0..replay.end() - 3))
        .collect();
    let steps = |moment: u64| [moment + 2, moment + 1, moment];
    let mut shown = Vec::new();
    for moment in &moments {
        for step in steps(*moment) {
            replay.goto(step).expect("a position");
            shown.push((step, replay.registers().expect("registers")));
        }
    }
    // Forwards only, so that no copy is gone back to.
    shown.sort_by_key(|(at, _)| *at);
    for (at, registers) in shown {
        alone.goto(at).expect("a position");
        let wanted = alone.registers().expect("registers");
        assert_eq!(
            (
                registers.rip,
                registers.rax,
                registers.rdx,
                registers.eflags
            ),
            (wanted.rip, wanted.rax, wanted.rdx, wanted.eflags),
            "at {at}"
        );
    }
}
