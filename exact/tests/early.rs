//! Goal: going to moments far apart changes no answer. Method: copies of the process are made on the way to random moments; then the
//! writes to a variable that long stretches do not touch are searched, and single steps back are compared with a replay of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use exact::{Options, Replay, record};
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

/// Records the program; returns the address of its variable.
fn recorded(folder: &Path) -> u64 {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/early.c");
    let program = folder.join("early");
    let status = Command::new("gcc")
        .args(["-O1", "-g", "-o"])
        .arg(&program)
        .arg(&source)
        .status();
    assert!(status.expect("the compiler is installed").success());
    let options = Options {
        output: Some(folder.join("output")),
        input: Some(PathBuf::from("/dev/null")),
        ..Options::default()
    };
    let command = [OsString::from(&program)];
    let summary = record(&program, &command, folder, options).expect("it can be recorded");
    assert_eq!((summary.lost, summary.code), (None, Some(0)));
    let output = fs::read_to_string(folder.join("output")).expect("the output is there");
    let address = output.trim().trim_start_matches("0x");
    u64::from_str_radix(address, 16).expect("an address")
}

#[test]
fn moves_on_the_way_change_no_answer() {
    let folder = TempDir::new().expect("a folder");
    let early = recorded(folder.path());
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
    recorded(folder.path());
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
