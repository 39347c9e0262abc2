//! Breakpoints on single instructions, by address: for any instruction and any jump to it, each execution is one hit,
//! and the program's behaviour does not change. Method: the program is single-stepped once; with breakpoints on all
//! its instructions it must then pass the same ones.

use std::collections::{BTreeMap, BTreeSet};

use debuginfo::disassemble_function;
use e2e::Scratch;
use recorder::live::*;

use crate::bench::{Controlled, Subject, built};

const FUNCTIONS: [&str; 7] = [
    "single", "nothing", "flags", "down", "second", "inside", "main",
];
/// More hits than any instruction gets.
const NEVER: u64 = u64::MAX;

fn subject(scratch: &Scratch) -> Subject {
    Subject {
        path: built(scratch, "short.S", &[]),
        args: &[],
        sources: &["/programs/"],
    }
}

/// Returns the addresses of the functions' instructions. The last function comes last.
fn instructions(controlled: &Controlled) -> BTreeSet<u64> {
    let live = &controlled.live;
    let space = live.space();
    let machine = live.machine(controlled.tid).expect("it is stopped");
    let mut all = BTreeSet::new();
    for name in FUNCTIONS {
        let view = controlled.break_at(Location::Function(name.to_owned()), NEVER, false);
        live.remove_probe(view.id).expect("it is there");
        let lines = disassemble_function(&space, &machine, view.places[0].address);
        let lines = lines.expect("its code can be read");
        all.extend(lines.iter().map(|line| line.address));
    }
    all
}

fn main_of(controlled: &Controlled, all: &BTreeSet<u64>) -> u64 {
    let space = controlled.live.space();
    let last = all.last().expect("main has instructions");
    space.function_at(*last).expect("main").entry
}

/// Returns the instructions, and those that the program executes, in order.
fn stepped(subject: &Subject, scratch: &Scratch) -> (BTreeSet<u64>, Vec<u64>) {
    let mut controlled = Controlled::start_without(subject, scratch, "stepped", &["*"]);
    let all = instructions(&controlled);
    let own = *all.first().expect("some")..=*all.last().expect("some");
    controlled.break_at(Location::Address(main_of(&controlled, &all)), 0, true);
    let mut stop = controlled.go(Motion::Continue).expect("main is called");
    let mut passed = Vec::new();
    let mut last = stop.pc;
    loop {
        while own.contains(&stop.pc) {
            last = stop.pc;
            passed.extend(all.contains(&last).then_some(last));
            stop = controlled.go(Motion::Instruction).expect("it goes on");
        }
        let Some(behind) = all.range(last + 1..).next() else {
            break;
        };
        // It has called a function of the C library.
        controlled.break_at(Location::Address(*behind), 0, true);
        stop = controlled.go(Motion::Continue).expect("it comes back");
    }
    assert_eq!(controlled.go(Motion::Continue), None);
    assert_eq!(controlled.end(), subject.native(scratch));
    (all, passed)
}

#[test]
fn every_instruction_can_be_a_breakpoint() {
    let scratch = Scratch::new("instructions");
    let subject = subject(&scratch);
    let native = subject.native(&scratch);
    let (all, passed) = stepped(&subject, &scratch);
    assert!(all.len() > 70 && passed.len() > 1_000, "{}", passed.len());
    let mut times: BTreeMap<u64, u64> = all.iter().map(|at| (*at, 0)).collect();
    for at in &passed {
        *times.get_mut(at).expect("it is one of them") += 1;
    }
    for (untraced, compiled) in [(true, false), (true, true), (false, false), (false, true)] {
        let name = format!("untraced-{untraced}-compiled-{compiled}");
        let untraced: &[&str] = if untraced { &["*"] } else { &[] };
        let mut controlled = Controlled::start_without(&subject, &scratch, &name, untraced);
        controlled.live.compile_probes(compiled).expect("it runs");
        for at in &all {
            let view = controlled.break_at(Location::Address(*at), NEVER, false);
            let place = &view.places[0];
            assert_eq!(place.problem, None, "{at:#x}");
            if !compiled {
                assert!(
                    matches!(place.judged, Some(EvaluatedBy::ByTracer(_))),
                    "{place:?}"
                );
            }
        }
        controlled.break_at(Location::Function("_exit".to_owned()), 0, false);
        controlled
            .go(Motion::Continue)
            .expect("it ends by way of _exit");
        let hits: BTreeMap<u64, u64> = controlled
            .live
            .probes()
            .iter()
            .filter(|probe| probe.spec.hit_count == NEVER)
            .map(|probe| (probe.places[0].address, probe.hits))
            .collect();
        assert_eq!(hits, times, "{name}");
        assert_eq!(controlled.go(Motion::Continue), None);
        assert_eq!(controlled.end(), native);
    }
}

#[test]
fn every_instruction_can_be_stopped_at() {
    let scratch = Scratch::new("instructions");
    let subject = subject(&scratch);
    let native = subject.native(&scratch);
    let (all, passed) = stepped(&subject, &scratch);
    for (name, untraced) in [("untraced", &["*"][..]), ("traced", &[])] {
        let mut controlled = Controlled::start_without(&subject, &scratch, name, untraced);
        for at in &all {
            controlled.break_at(Location::Address(*at), 0, false);
        }
        for (number, at) in passed.iter().enumerate() {
            let stop = controlled.go(Motion::Continue).expect("it stops");
            assert_eq!(stop.pc, *at, "stop {number}, {name}");
        }
        assert_eq!(controlled.go(Motion::Continue), None);
        assert_eq!(controlled.end(), native);
    }
}
