//! gdb and Hindsight stop at the same hits of the same lines: registers, frames and variables are the same.

use std::{cell::OnceCell, collections::BTreeSet, fmt::Write};

use e2e::{Scratch, in_turn, share};
use recorder::live::*;

use crate::{
    bench::{Controlled, Random, Subject, gdb},
    moment::{Moment, vectors},
    places,
    statements::{Counted, count},
};

/// Maximum hit number of a line to wait for: gdb handles some thousand per second.
const MOST_HITS: u64 = 60;

/// A line, and the number of the hit.
#[derive(Clone, Debug)]
pub struct Stop {
    pub file: String,
    pub line: u32,
    pub hit: u64,
    pub addresses: Vec<u64>,
}

/// Chooses random hits, of lines that share no address.
pub fn choose(subject: &Subject, scratch: &Scratch, seed: u64, wanted: usize) -> Vec<Stop> {
    choose_among(subject, scratch, seed, wanted, |_| true)
}

/// As [`choose`], for certain lines.
pub fn choose_among(
    subject: &Subject,
    scratch: &Scratch,
    seed: u64,
    wanted: usize,
    is_fit: impl Fn(&Counted) -> bool,
) -> Vec<Stop> {
    let mut random = Random(seed + other_seed());
    let mut lines = count(subject, scratch);
    lines.retain(|line| Subject::does_the_same(&line.file) && is_fit(line));
    let mut taken: BTreeSet<u64> = BTreeSet::new();
    let mut stops = Vec::new();
    while stops.len() < wanted && !lines.is_empty() {
        let line = random.take(&mut lines);
        if line.addresses.iter().any(|at| taken.contains(at)) {
            continue;
        }
        taken.extend(line.addresses.iter().copied());
        stops.push(Stop {
            hit: 1 + random.below(line.hits.min(MOST_HITS) as usize) as u64,
            file: line.file,
            line: line.line,
            addresses: line.addresses,
        });
    }
    stops
}

/// Returns the seed to test other places than usual: `SEED=7 cargo test ... live_truth`.
pub fn other_seed() -> u64 {
    let seed = std::env::var("SEED").ok();
    seed.map_or(0, |seed| seed.parse().expect("SEED is a number"))
}

pub fn place(file: &str, line: u32) -> String {
    format!("{}:{line}", file.rsplit('/').next().unwrap_or(file))
}

fn stops_are_the_same(artifact: &str, seed: u64, whole: usize) {
    let scratch = Scratch::new(artifact);
    let subject = Subject::new(artifact);
    let stops = choose(&subject, &scratch, seed, share(whole));
    let mut plan = String::new();
    for stop in &stops {
        writeln!(plan, "{}\t{}", places::planned(stop), stop.hit).unwrap();
    }
    let plan_file = scratch.join("plan");
    std::fs::write(&plan_file, plan).expect("the folder is writable");
    let output = gdb(&subject, &scratch, "stops.py", &plan_file);
    let theirs = Moment::all(&output);
    let mut differences = places::wrong(&subject, &output);
    for traced in [true, false] {
        differences.extend(compare(&subject, &scratch, &stops, &output, traced));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(theirs.len(), stops.len());
}

/// Compares stops with gdb's. While functions are traced, variables without a value yet and registers that calls
/// clobber are not compared: thunks and callees leave other values there than callees alone.
fn compare(
    subject: &Subject,
    scratch: &Scratch,
    stops: &[Stop],
    output: &str,
    traced: bool,
) -> Vec<String> {
    let theirs = Moment::all(output);
    let mut controlled = match traced {
        true => Controlled::start(subject, scratch, "traced"),
        false => Controlled::start_without(subject, scratch, "untraced", &["*"]),
    };
    for stop in stops {
        let location = Location::Line {
            file: stop.file.clone(),
            line: stop.line,
            column: None,
        };
        controlled.break_at(location, stop.hit, true);
    }
    let machine = controlled.live.machine(controlled.tid);
    let at_entry = vectors(&machine.expect("it is stopped"));
    let mut differences = Vec::new();
    let again = OnceCell::new();
    let gdb_again = || Moment::all(&gdb(subject, scratch, "stops.py", &scratch.join("plan")));
    let mut compared = 0;
    let (mut left, mut vectors) = ([0, 0], [0, 0]);
    while let Some(stop) = controlled.go(Motion::Continue) {
        let space = controlled.live.space();
        let machine = controlled.live.machine(stop.tid).expect("it is stopped");
        let mut ours = Moment::of(&space, &machine);
        let Some(theirs) = theirs.get(compared) else {
            differences.push(format!("{}: gdb does not stop there", ours.place));
            break;
        };
        compared += 1;
        match subject.pads_vectors() {
            true => ours.vectors.clear(),
            false => ours.forget_vectors(&at_entry, theirs, output),
        }
        let [same, other] = ours.vectors_left(theirs);
        if other > 0 {
            let at = &ours.place;
            let apart = ours.vectors_apart(theirs);
            eprintln!("{at}: vector registers {apart:x?} are not the same");
        }
        vectors = [vectors[0] + same, vectors[1] + other];
        let [same, other] = ours.left(theirs);
        left = [left[0] + same, left[1] + other];
        let mut found = ours.differences(theirs, !traced);
        if !found.is_empty() {
            let mut same = theirs.clone();
            if let Some(again) = again.get_or_init(gdb_again).get(compared - 1) {
                ours.forget_chance(theirs, again);
                same.forget_chance(theirs, again);
            }
            if subject.is_optimised() {
                let unfilled = same.unfilled();
                ours.forget(&unfilled);
                same.forget(&unfilled);
            }
            eprintln!("{}: looked at once more: {found:?}", ours.place);
            found = ours.differences(&same, !traced);
        }
        differences.extend(found);
    }
    eprintln!(
        "{}: {compared} of {} stops compared; left by libc: {left:?}, vectors: {vectors:?}",
        subject.path.display(),
        stops.len()
    );
    // The runtime's replacement of a libc function leaves other values, such as that of `sigaction`, which Rust's
    // start-up code calls.
    if !traced && 2 * left[0] < 5 * left[1] {
        differences.push(format!(
            "of registers that libc uses, {left:?} are the same and not"
        ));
    }
    if !traced && vectors[0] < 20 * vectors[1] {
        differences.push(format!(
            "of vector registers, {vectors:?} are the same and not"
        ));
    }
    if compared != stops.len() {
        let all = stops.len();
        differences.push(format!("only {compared} of {all} stops are the same"));
    }
    differences
}

#[test]
fn stops_in_programs_are_those_of_gdb() {
    for (artifact, seed, whole) in in_turn([
        ("sqlite_O0", 1, 50),
        ("sqlite_O2", 2, 40),
        ("lua_O0", 3, 35),
        ("lua_O2", 5, 60),
        ("orders_O0", 1, 50),
        ("orders_O2", 1, 35),
    ]) {
        stops_are_the_same(artifact, seed, whole);
    }
}

/// Returns the number of stops per build: more with `WHOLE=1 STOPS=84 cargo test ... live_truth levels`.
fn of_each() -> usize {
    let wanted = std::env::var("STOPS").ok();
    wanted.map_or(12, |wanted| wanted.parse().expect("STOPS is a number"))
}

/// Four levels of gcc, of clang and of rustc.
const LEVELS: [&str; 12] = [
    "lua_O0",
    "lua_O1",
    "lua_O2",
    "lua_O3",
    "lua_clang_O0",
    "lua_clang_O1",
    "lua_clang_O2",
    "lua_clang_O3",
    "orders_O0",
    "orders_O1",
    "orders_O2",
    "orders_O3",
];

#[test]
fn stops_at_four_levels_of_each_compiler_are_those_of_gdb() {
    for artifact in in_turn(LEVELS) {
        stops_are_the_same(artifact, 7, of_each());
    }
}
