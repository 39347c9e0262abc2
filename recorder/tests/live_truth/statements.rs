//! A breakpoint on every statement: each hit is counted and evaluated, none stops, and the program's behaviour does not
//! change. Either the program counts hits itself, through jumps to our code, or each hit is a trap for the tracer. Both
//! counts are the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use e2e::{Scratch, in_turn};
use recorder::live::*;

use crate::bench::{Controlled, Random, Subject};

/// More hits than any line gets.
const NEVER: u64 = u64::MAX;

/// A line with a breakpoint that was hit.
#[derive(Clone)]
pub struct Counted {
    pub file: String,
    pub line: u32,
    pub hits: u64,
    pub addresses: Vec<u64>,
}

/// A program and its arguments.
type Started = (PathBuf, &'static [&'static str]);

/// Runs the subject with a breakpoint on every line. Returns the number of hits of each. Many tests ask: the program runs for the
/// first of them.
pub fn count(subject: &Subject, scratch: &Scratch) -> Vec<Counted> {
    type Once = Arc<OnceLock<Vec<Counted>>>;
    static COUNTED: Mutex<BTreeMap<Started, Once>> = Mutex::new(BTreeMap::new());
    let mut counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    let once = counted.entry((subject.path.clone(), subject.args));
    let once = once.or_default().clone();
    drop(counted);
    once.get_or_init(|| count_by(subject, scratch, true))
        .clone()
}

/// As [`count`], in a run of its own. The program counts hits itself if it can, or the tracer counts all.
fn count_by(subject: &Subject, scratch: &Scratch, compiled: bool) -> Vec<Counted> {
    let native = subject.native(scratch);
    let name = if compiled { "counted" } else { "trapped" };
    let mut controlled = Controlled::start(subject, scratch, name);
    controlled.live.compile_probes(compiled).expect("it runs");
    let begin = Instant::now();
    let lines = subject.lines(&controlled.live.space());
    let listed = begin.elapsed();
    let begin = Instant::now();
    let (mut unset, mut in_program, mut by_tracer) = (Vec::new(), 0, 0);
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
        for place in &view.places {
            match place.judged {
                Some(EvaluatedBy::InProgram) => in_program += 1,
                _ => by_tracer += 1,
            }
        }
        if number == 999 {
            thousand = Some(begin.elapsed());
        }
    }
    let set = begin.elapsed();
    assert_eq!(unset, [], "places that cannot be breakpoints");
    match compiled {
        true => assert!(in_program > by_tracer, "{in_program}, {by_tracer} not"),
        false => assert_eq!(in_program, 0, "all hits come to the tracer"),
    }
    controlled.break_at(Location::Function("_exit".to_owned()), 0, false);
    let begin = Instant::now();
    let last = controlled.go(Motion::Continue);
    let ran = begin.elapsed();
    assert!(last.is_some(), "it ends by way of _exit");
    let probes = controlled.live.probes();
    let hits: u64 = probes.iter().map(|probe| probe.hits).sum();
    let reached = probes.iter().filter(|probe| probe.hits > 0).count();
    eprintln!(
        "{}: {} lines listed in {listed:?}, set in {set:?} (the first 1000 in {thousand:?}); {reached} hit, {hits} hits in {ran:?}: {:.0}/s; {by_tracer} of {} places are traps",
        subject.path.display(),
        lines.len(),
        hits as f64 / ran.as_secs_f64(),
        in_program + by_tracer,
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
    // Sorted by file name, so that choices do not depend on where the sources lie.
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

/// As [`every_statement`], with a trap at each place. Counts by the program must be the same.
fn every_statement_by_traps(subject: &Subject, at_least: usize) {
    let scratch = Scratch::new("traps");
    let hits = |compiled: bool| -> BTreeMap<(String, u32), u64> {
        let mut counted = match compiled {
            true => count(subject, &scratch),
            false => count_by(subject, &scratch, false),
        };
        counted.retain(|line| Subject::does_the_same(&line.file));
        let counted = counted.into_iter();
        counted
            .map(|line| ((line.file, line.line), line.hits))
            .collect()
    };
    let (traps, jumps) = (hits(false), hits(true));
    let differing: Vec<_> = traps
        .keys()
        .chain(jumps.keys())
        .filter(|line| traps.get(line) != jumps.get(line))
        .map(|line| (line, traps.get(line), jumps.get(line)))
        .collect();
    assert!(
        differing.is_empty(),
        "by traps, by jumps: {:?}",
        &differing[..differing.len().min(20)]
    );
    assert!(traps.len() >= at_least, "only {} lines", traps.len());
}

#[test]
fn every_statement_of_an_optimised_program_can_be_a_trap() {
    for (artifact, at_least) in in_turn([
        ("lua_O2", 2_000),
        ("sqlite_O2", 5_000),
        ("orders_O2", 25),
        ("shapes_O2", 20),
    ]) {
        let mut subject = Subject::new(artifact);
        if artifact == "sqlite_O2" {
            subject.args = &["1"];
        }
        every_statement_by_traps(&subject, at_least);
    }
}

/// Exceptions of the C++ program unwind through breakpoints.
#[test]
fn every_statement_of_a_program_can_be_a_breakpoint() {
    for (artifact, at_least) in in_turn([
        ("sqlite_O0", 5_000),
        ("sqlite_O2", 5_000),
        ("lua_O0", 2_000),
        ("lua_O2", 2_000),
        ("orders_O0", 40),
        ("orders_O2", 25),
        ("shapes_O0", 35),
        ("shapes_O2", 20),
    ]) {
        every_statement(artifact, at_least);
    }
}

/// The number of changes in all.
const CHANGES: usize = 3_000;

#[test]
fn breakpoints_come_and_go_while_threads_run_over_them() {
    let scratch = Scratch::new("threads");
    let subject = Subject {
        args: &["1000000"],
        ..Subject::new("threads")
    };
    let mut random = Random(7);
    let (mut runs, mut changes, mut judged) = (0, 0, 0);
    // On a busy machine the threads may come to their end before the last change: they run again then.
    while changes < CHANGES {
        runs += 1;
        let name = format!("threads{runs}");
        let most = CHANGES - changes;
        let (made, hits) = changed_meanwhile(&subject, &scratch, &name, most, &mut random);
        assert!(made > 0, "it has come to its end before a change");
        changes += made;
        judged += hits;
    }
    eprintln!("{changes} changes in {runs} runs, {judged} hits of what was removed");
    assert!(judged > 1_000, "only {judged} hits");
}

/// Removes and sets breakpoints on random lines while the threads run, up to `most` times. Returns the number of changes, and of hits
/// of the removed breakpoints.
fn changed_meanwhile(
    subject: &Subject,
    scratch: &Scratch,
    name: &str,
    most: usize,
    random: &mut Random,
) -> (usize, u64) {
    let native = subject.native(scratch);
    let mut controlled = Controlled::start(subject, scratch, name);
    // Every hit must reach the tracer.
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
        // Two lines may have all their places in common, which gives one breakpoint.
        if set.iter().all(|(_, other)| *other != id) {
            set.push((at, id));
        }
    }
    let end = controlled.break_at(Location::Function("_exit".to_owned()), 0, false);
    let after = controlled
        .live
        .resume(controlled.tid, Motion::Continue, true)
        .expect("it is stopped at its entry");
    let (mut changes, mut unset) = (0, Vec::new());
    let mut judged = 0;
    while changes < most && controlled.live.newest_stop() == after {
        if set.is_empty() || !unset.is_empty() && random.below(2) == 0 {
            let at = random.take(&mut unset);
            let view = controlled.break_at(location(at), NEVER, false);
            let problem = view.places.iter().find_map(|place| place.problem.clone());
            if let Some(problem) = problem {
                let ended = controlled
                    .live
                    .wait(u64::MAX, std::time::Duration::from_secs(60));
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
    for (_, id) in set {
        judged += controlled.live.remove_probe(id).expect("it is there").hits;
    }
    let stop = controlled
        .next_stop(after)
        .expect("it stops before it ends");
    assert!(
        matches!(stop.reason, Reason::Breakpoint { probe, .. } if probe == end.id),
        "{stop:?}"
    );
    controlled
        .live
        .resume(controlled.tid, Motion::Continue, true)
        .expect("it is stopped");
    assert_eq!(controlled.end(), native);
    (changes, judged)
}

/// How often a breakpoint is removed while threads are stopped at it.
const REMOVALS: usize = 60;

/// Returns the stops of threads at a breakpoint.
fn standing(live: &Live, probe: ProbeId) -> Vec<Stop> {
    let threads = live.threads().into_iter();
    let stop = |thread: ThreadView| match thread.state {
        ThreadState::Stopped(stop) => Some(stop),
        ThreadState::Running => None,
    };
    let is_it =
        |stop: &Stop| matches!(stop.reason, Reason::Breakpoint { probe: of, .. } if of == probe);
    threads.filter_map(stop).filter(is_it).collect()
}

/// Waits until `wanted` threads are stopped at a breakpoint.
fn await_standing(live: &Live, probe: ProbeId, wanted: usize) {
    let mut seen = 0;
    while standing(live, probe).len() < wanted {
        match live.wait(seen, Duration::from_secs(120)) {
            Waited::Stopped(stop) => seen = stop.number,
            other => panic!("no thread comes by: {other:?}, {:?}", live.threads()),
        }
    }
}

/// Removes a breakpoint and concurrently resumes the threads stopped at it, including new arrivals. Returns the stops.
fn removed_meanwhile(live: &Live, probe: ProbeId) -> BTreeSet<u64> {
    let mut stops = BTreeSet::new();
    let removed = std::thread::scope(|clients| {
        let remover = clients.spawn(|| live.remove_probe(probe).expect("it is there"));
        loop {
            let is_removed = remover.is_finished();
            let standing = standing(live, probe);
            if is_removed && standing.is_empty() {
                break;
            }
            for stop in standing {
                live.mark_shown(stop.number);
                live.resume(stop.tid, Motion::Continue, false)
                    .expect("it stands still");
                stops.insert(stop.number);
            }
        }
        remover.join().expect("it is removed")
    });
    assert_eq!(removed.hits, stops.len() as u64, "each hit was one stop");
    stops
}

/// Threads alternate between two breakpoints. Each is removed while some threads are stopped at it and others arrive.
#[test]
fn threads_that_stop_at_one_breakpoint_go_on_when_it_is_removed() {
    let scratch = Scratch::new("removed");
    let subject = Subject::new("threads");
    let native = subject.native(&scratch);
    let controlled = Controlled::start(&subject, &scratch, "removed");
    let source = include_str!("../../../fixtures/statements/threads.c");
    let places = ["if (value & 1)", "odd ^= seed;"].map(|text| {
        let line = source.lines().position(|line| line.trim() == text);
        Location::Line {
            file: "threads.c".to_owned(),
            line: line.expect("a line that all threads come by") as u32 + 1,
            column: None,
        }
    });
    let live = &controlled.live;
    let mut probe = controlled.break_at(places[0].clone(), 0, false).id;
    live.resume(controlled.tid, Motion::Continue, true)
        .expect("it is stopped at its entry");
    let mut stops = 0;
    for round in 1..=REMOVALS {
        await_standing(live, probe, 2);
        let next = controlled.break_at(places[round % 2].clone(), 0, false).id;
        stops += removed_meanwhile(live, probe).len();
        probe = next;
    }
    await_standing(live, probe, 4);
    stops += removed_meanwhile(live, probe).len();
    eprintln!("{REMOVALS} removals, {stops} stops");
    assert!(stops >= 2 * REMOVALS, "only {stops} stops");
    assert_eq!(controlled.end(), native);
}
