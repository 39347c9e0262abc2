//! A breakpoint on every statement: each hit is counted and judged, none stops, and the program does what it always does.

use std::time::Instant;

use e2e::Scratch;
use recorder::live::*;

use crate::bench::{Controlled, Random, Subject};

/// More hits than any line gets.
const NEVER: u64 = u64::MAX;

/// A line with a breakpoint that was hit.
pub struct Counted {
    pub file: String,
    pub line: u32,
    pub hits: u64,
    pub addresses: Vec<u64>,
}

/// Runs the subject with a breakpoint on every line; returns how often each was hit.
pub fn count(subject: &Subject, scratch: &Scratch) -> Vec<Counted> {
    let native = subject.native(scratch);
    let mut controlled = Controlled::start(subject, scratch, "counted");
    let begin = Instant::now();
    let lines = subject.lines(&controlled.live.space());
    let listed = begin.elapsed();
    let begin = Instant::now();
    let mut unset = Vec::new();
    let mut thousand = None;
    for (number, (file, line)) in lines.iter().enumerate() {
        let location = Location::Line {
            file: file.to_string(),
            line: *line,
            column: None,
        };
        let view = controlled.break_at(location, NEVER, false);
        let problems = view.places.iter().filter(|place| place.problem.is_some());
        unset.extend(problems.cloned());
        if number == 999 {
            thousand = Some(begin.elapsed());
        }
    }
    let set = begin.elapsed();
    assert_eq!(unset, [], "places that cannot be breakpoints");
    controlled.break_at(Location::Function("_exit".to_owned()), 0, false);
    let begin = Instant::now();
    let last = controlled.go(Motion::Continue);
    let ran = begin.elapsed();
    assert!(last.is_some(), "it ends by way of _exit");
    let probes = controlled.live.probes();
    let hits: u64 = probes.iter().map(|probe| probe.hits).sum();
    let reached = probes.iter().filter(|probe| probe.hits > 0).count();
    eprintln!(
        "{}: {} lines listed in {listed:?}, set in {set:?} (the first 1000 in {thousand:?}); {reached} hit, {hits} hits in {ran:?}: {:.0}/s",
        subject.path.display(),
        lines.len(),
        hits as f64 / ran.as_secs_f64(),
    );
    let after = controlled.live.newest_stop();
    controlled
        .live
        .resume(controlled.tid, Motion::Continue, true)
        .expect("it is stopped");
    assert_eq!(controlled.next_stop(after), None);
    assert_eq!(controlled.end(), native);
    let mut counted = Vec::new();
    for probe in probes {
        if let Location::Line { file, line, .. } = probe.spec.location
            && probe.hits > 0
        {
            counted.push(Counted {
                file,
                line,
                hits: probe.hits,
                addresses: probe.places.iter().map(|place| place.address).collect(),
            });
        }
    }
    // What is chosen from them does not depend on where the sources lie.
    let name = |file: &str| file.rsplit('/').next().map(str::to_owned);
    counted.sort_by_key(|counted| (name(&counted.file), counted.line));
    counted
}

fn every_statement(artifact: &str, at_least: usize) {
    let scratch = Scratch::new(artifact);
    let counted = count(&Subject::new(artifact), &scratch);
    assert!(
        counted.len() >= at_least,
        "only {} lines were hit",
        counted.len()
    );
}

#[test]
fn every_statement_of_sqlite_can_be_a_breakpoint() {
    every_statement("sqlite_O0", 5_000);
}

#[test]
fn every_statement_of_optimised_sqlite_can_be_a_breakpoint() {
    every_statement("sqlite_O2", 5_000);
}

#[test]
fn every_statement_of_lua_can_be_a_breakpoint() {
    every_statement("lua_O0", 2_000);
}

#[test]
fn every_statement_of_optimised_lua_can_be_a_breakpoint() {
    every_statement("lua_O2", 2_000);
}

#[test]
fn every_statement_of_a_rust_program_can_be_a_breakpoint() {
    every_statement("orders_O0", 40);
    every_statement("orders_O2", 25);
}

#[test]
fn breakpoints_come_and_go_while_threads_run_over_them() {
    let scratch = Scratch::new("threads");
    let subject = Subject::new("threads");
    let native = subject.native(&scratch);
    let mut controlled = Controlled::start(&subject, &scratch, "threads");
    // Every hit is to come to the tracer.
    controlled.live.compile_probes(false).expect("it is there");
    let lines = subject.lines(&controlled.live.space());
    let location = |at: usize| Location::Line {
        file: lines[at].0.to_string(),
        line: lines[at].1,
        column: None,
    };
    let mut set: Vec<(usize, ProbeId)> = Vec::new();
    for at in 0..lines.len() {
        let id = controlled.break_at(location(at), NEVER, false).id;
        // Two lines may have all their places in common: that is one breakpoint.
        if set.iter().all(|(_, other)| *other != id) {
            set.push((at, id));
        }
    }
    let end = controlled.break_at(Location::Function("_exit".to_owned()), 0, false);
    let after = controlled
        .live
        .resume(controlled.tid, Motion::Continue, true)
        .expect("it is stopped at its entry");
    let mut random = Random(7);
    let (mut changes, mut unset) = (0, Vec::new());
    let mut judged = 0;
    while controlled.live.newest_stop() == after {
        assert!(
            !matches!(controlled.live.status(), Status::Ended(_)),
            "{:?} {changes}",
            controlled.live.status()
        );
        if set.is_empty() || !unset.is_empty() && random.below(2) == 0 {
            let at = random.take(&mut unset);
            let view = controlled.break_at(location(at), NEVER, false);
            let problem = view.places.iter().find_map(|place| place.problem.clone());
            if let Some(problem) = problem {
                let ended = controlled
                    .live
                    .wait(u64::MAX, std::time::Duration::from_secs(5));
                panic!(
                    "line {} cannot be set again: {problem}; {ended:?}",
                    lines[at].1
                );
            }
            set.push((at, view.id));
        } else {
            let (at, id) = random.take(&mut set);
            judged += controlled.live.remove_probe(id).expect("it is there").hits;
            unset.push(at);
        }
        changes += 1;
    }
    let stop = controlled
        .next_stop(after)
        .expect("it stops before it ends");
    assert!(
        matches!(stop.reason, Reason::Breakpoint { probe, .. } if probe == end.id),
        "{stop:?}"
    );
    eprintln!("{changes} changes, {judged} hits of what was removed");
    assert!(changes > 1_000, "only {changes} changes happened meanwhile");
    assert!(judged > 1_000, "only {judged} hits");
    controlled
        .live
        .resume(controlled.tid, Motion::Continue, true)
        .expect("it is stopped");
    assert_eq!(controlled.end(), native);
}
