//! What a recording reports about stops of several threads is what gdb sees there. Threads reach a line in any order,
//! and their stacks have other addresses. The thread's own number tells their stops apart, and pointers into its stack
//! must point to the same offset.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use e2e::{Scratch, in_turn};
use recorder::live::*;
use replay::{State, StateMachine, Timeline};

use crate::{
    bench::{Controlled, Subject, gdb},
    captured::is_same_word,
    moment::{LEFT_BY_LIBC, Moment, is_same, is_same_place},
};

/// Rounds of each thread, which stops several times per round.
const ROUNDS: &[&str] = &["12"];
/// Rounds in which a stop that other threads' stops swallow is likely.
const MANY_ROUNDS: &[&str] = &["250"];
/// Arguments of the system call futex(2), which wakes a waiter or waits for a lock. Whether a lock is contended differs
/// from run to run, natively too.
const GIVEN_TO_FUTEX: [&str; 3] = ["rcx", "rdx", "rsi"];
/// `FUTEX_WAIT_PRIVATE` and `FUTEX_WAKE_PRIVATE` (linux/futex.h), which remain in rsi.
const FUTEX_OPERATIONS: [u64; 2] = [0x80, 0x81];
/// Callee-saved registers, or the function's argument. Tracing passes the others through thunks.
const KEPT: [&str; 8] = ["rbx", "rbp", "rsp", "r12", "r13", "r14", "r15", "rip"];

fn stopped(subject: &Subject, scratch: &Scratch, lines: &[u32], traced: bool) -> Timeline {
    let name = if traced { "traced" } else { "untraced" };
    let untraced: &[&str] = if traced { &[] } else { &["*"] };
    let mut controlled = Controlled::start_without(subject, scratch, name, untraced);
    for line in lines {
        let spec = ProbeSpec {
            location: Location::Line {
                file: "threads.c".to_owned(),
                line: *line,
                column: None,
            },
            action: Action::Break {
                all_threads: true,
                once: false,
            },
            condition: None,
            hit_count: 0,
        };
        controlled.live.add_probe(spec).expect("the place exists");
    }
    loop {
        let live = &controlled.live;
        let after = live.resume(controlled.tid, Motion::Continue, true);
        if controlled
            .next_stop(after.expect("the thread is stopped"))
            .is_none()
        {
            break;
        }
    }
    controlled.end_as_alone(subject, scratch);
    let path = scratch.join(&format!("{name}.hindsight"));
    Timeline::open(&path, scratch.path()).expect("the recording can be read")
}

/// Returns the frame of the function that each thread runs.
fn level_of_work(moment: &Moment) -> Option<usize> {
    let mut frames = moment.frames.iter();
    frames.position(|frame| frame.starts_with("work "))
}

/// Returns the place, and the number that the thread has reached.
fn key(moment: &Moment) -> Option<(String, String)> {
    let level = level_of_work(moment)?;
    let is_it = |v: &&(usize, String, String)| v.0 == level && v.1 == "seed";
    let (_, _, text) = moment.variables.iter().find(is_it)?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (moment.place.clone(), text.clone()))
}

/// Counts of comparisons.
#[derive(Debug, Default)]
struct Compared {
    stops: usize,
    registers: usize,
    variables: usize,
    frames: usize,
}

fn differences(
    ours: &Moment,
    theirs: &Moment,
    traced: bool,
    compared: &mut Compared,
) -> Vec<String> {
    let mut found = Vec::new();
    let place = &ours.place;
    let delta = ours.registers["rsp"].wrapping_sub(theirs.registers["rsp"]);
    let is_contended = |moment: &Moment| FUTEX_OPERATIONS.contains(&moment.registers["rsi"]);
    let one_was_contended = is_contended(ours) != is_contended(theirs);
    for (name, value) in &ours.registers {
        let other = theirs.registers[name];
        let name = name.as_str();
        let is_left = traced && !KEPT.contains(&name) || LEFT_BY_LIBC.contains(&name);
        if is_left || one_was_contended && GIVEN_TO_FUTEX.contains(&name) {
            continue;
        }
        compared.registers += 1;
        if !is_same_word(*value, other, delta) {
            found.push(format!("{place}: {name} is {value:x}, gdb: {other:x}"));
        }
    }
    if ours.frames.len() != theirs.frames.len() {
        let (ours, theirs) = (&ours.frames, &theirs.frames);
        found.push(format!("{place}: frames {ours:?}, gdb: {theirs:?}"));
    }
    for (own, other) in ours.frames.iter().zip(&theirs.frames) {
        compared.frames += 1;
        if !is_same_place(own, other) {
            found.push(format!("{place}: frame {own:?}, gdb: {other:?}"));
        }
    }
    let own = level_of_work(ours).expect("it is there");
    for (level, name, text) in ours.variables.iter().filter(|v| v.0 <= own) {
        let same = |v: &&(usize, String, String)| v.0 == *level && v.1 == *name;
        let other = theirs.variables.iter().find(same).map(|v| v.2.as_str());
        compared.variables += 1;
        // For lost values, gdb assumes what a callee left there.
        let is_lost = text.contains("is not saved by the functions that were called");
        // What was passed to a recorded call is known, where no code tells it.
        let is_recorded = traced && other == Some("<optimized out>");
        if !is_lost && !is_recorded && !other.is_some_and(|other| is_same(text, other)) {
            found.push(format!(
                "{place}: #{level} {name} is {text}, gdb: {other:?}"
            ));
        }
    }
    found
}

/// The number of a line of the program.
fn line_of(text: &str) -> u32 {
    let source = include_str!("../../../fixtures/statements/threads.c");
    let line = source.lines().position(|line| line.trim() == text);
    line.expect("a line of the program") as u32 + 1
}

fn stops_of_threads_are_the_same(artifact: &str) {
    let scratch = Scratch::new(artifact);
    let subject = Subject {
        args: ROUNDS,
        ..Subject::new(artifact)
    };
    let lines = [
        "if (value & 1)",
        "odd += is_odd(seed >> 3);",
        "odd ^= seed;",
        "pthread_mutex_lock(&lock);",
    ]
    .map(line_of);
    let mut plan = String::new();
    for line in lines {
        writeln!(plan, "threads.c:{line}\t1\t").unwrap();
    }
    let plan_file = scratch.join("plan");
    std::fs::write(&plan_file, plan).expect("the folder is writable");
    let theirs = Moment::all(&gdb(&subject, &scratch, "every.py", &plan_file));
    let mut by_key: BTreeMap<(String, String), &Moment> = BTreeMap::new();
    for moment in &theirs {
        // For a line in two parts, the first one counts.
        by_key
            .entry(key(moment).expect("a number"))
            .or_insert(moment);
    }
    let mut found = Vec::new();
    for traced in [true, false] {
        let timeline = stopped(&subject, &scratch, &lines, traced);
        let mut compared = Compared::default();
        let (mut threads, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for (seq, tid) in timeline.stops() {
            let event = timeline.other(seq).unwrap().expect("a stop is an event");
            if event.aux.as_deref() != Some("breakpoint") {
                continue;
            }
            let state = State::new(&timeline, seq, tid).unwrap();
            let space = timeline.modules().space(seq);
            let ours = Moment::of(&space, &StateMachine::new(&state, &space));
            let key = key(&ours).expect("a number");
            let Some(theirs) = by_key.get(&key) else {
                found.push(format!("gdb does not stop at {key:?}"));
                continue;
            };
            if !seen.insert(key) {
                continue;
            }
            threads.insert(tid);
            compared.stops += 1;
            found.extend(differences(&ours, theirs, traced, &mut compared));
        }
        eprintln!(
            "{artifact}, traced {traced}: {compared:?}, {} threads",
            threads.len()
        );
        let missing: Vec<_> = by_key.keys().filter(|key| !seen.contains(*key)).collect();
        assert!(
            missing.is_empty(),
            "only gdb stops at {missing:?}; {found:?}"
        );
        assert_eq!(threads.len(), 4);
        assert!(compared.stops >= 60, "{compared:?}");
        assert!(compared.variables >= 3 * compared.stops, "{compared:?}");
        assert!(compared.frames >= 3 * compared.stops, "{compared:?}");
    }
    assert!(
        found.is_empty(),
        "{} differ:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn recorded_stops_of_threads_are_those_of_gdb() {
    for artifact in in_turn(["threads_O0", "threads", "threads_O2"]) {
        stops_of_threads_are_the_same(artifact);
    }
}

/// A thread that another one's stop catches at a breakpoint's address, before the trap, has not hit it yet.
#[test]
fn each_recorded_call_stops_at_the_breakpoint_in_it() {
    let scratch = Scratch::new("threads-counted");
    let subject = Subject {
        args: MANY_ROUNDS,
        ..Subject::new("threads")
    };
    for _ in 0..3 {
        let timeline = stopped(&subject, &scratch, &[line_of("if (value & 1)")], true);
        let mut hits = 0;
        for (seq, _) in timeline.stops() {
            let event = timeline.other(seq).unwrap().expect("a stop is an event");
            hits += usize::from(event.aux.as_deref() == Some("breakpoint"));
        }
        let is_it = |id| (timeline.function(id)).is_some_and(|f| f.name == "is_odd");
        let entered = (0..timeline.events()).filter_map(|seq| timeline.entered_at(seq).unwrap());
        let calls = entered.filter(|call| is_it(call.function)).count();
        assert!(calls >= 80, "{calls}");
        assert_eq!(hits, calls);
        drop(timeline);
        std::fs::remove_dir_all(scratch.join("traced.hindsight")).expect("it is ours");
    }
}
