//! Goal: probes that the program evaluates itself have the same result as in the tracer, and change nothing. Method:
//! the same conditions and counts on the same programs, compiled and not; every statement of large programs with a
//! condition that is false.

use std::path::PathBuf;

use e2e::{Scratch, in_turn};
use recorder::{Exit, live::*};

use crate::bench::{Controlled, Random, Subject};

/// More hits than there are.
const NEVER: u64 = u64::MAX;

/// Conditions over the variables in the functions of items.c.
const CONDITIONS: &[&str] = &[
    "n == 5",
    "n > -10 && n < 12",
    "p->id == n + 10",
    "p->kind >= 128",
    "p->small < 0",
    "p->level * 2 > 1000",
    "p->weight < 0 || p->id % 3 == 0",
    "p->mask >> 40 & 1",
    "p->mask > 0x8000000000",
    "p->price > 10.5",
    "p->ratio < 7",
    "d == p->price",
    "f * 2 > 10 && f / 3 < 4.5",
    "p->name == 0",
    "p->next->id > 3",
    "p->next && p->next->id > 3",
    "p->next->next->next->kind > 40",
    "p->low == 17 || p->flags == -2",
    "p->flags < 0",
    "p->color == GREEN",
    "p->color != BLUE && p->ok",
    "!p->ok",
    "p->letter == 'c'",
    "p->list[2] > p->list[3]",
    "p->list[n & 3] % 2 == 0",
    "(*p).at.x + p->at.y == 0",
    "p->at.x > 30",
    "u % 1000 < 100",
    "counter == 77 || counter == 78",
    "global & 1",
    "sink > 0",
    "100 / n > 3",
    "1 << n == 16",
    "n / 0 == 1",
    "(unsigned char)n > 200",
    "(short)p->weight < 0",
    "(long)p % 64 == 0",
    "p == &items[12]",
    "items[9].id == -11 && n == 0",
    "&p->list[1] == p->list + 1",
    "p->next - p == 1",
    "$rsp == 0",
    "p->price * 3 - d == d + p->price",
    "p->either.a > 0x40000000",
    "n > 3 ? p->ok : p->id < 0",
    "u - 1 > 0xfffffff0",
    "-n == 4",
    "~n == 4",
    "*p->list == p->list[0]",
    "p->name[0] == 'i'",
    "*(int *)p == p->id",
    "d",
    "p->next",
    "local == 2",
    "local > u",
];

/// Compiles a program of this folder.
fn built(scratch: &Scratch, name: &str, level: &str) -> PathBuf {
    let checks: String = (0..CONDITIONS.len()).map(|n| format!("C({n}) ")).collect();
    crate::bench::built(scratch, name, &[level, &format!("-DCHECKS={checks}")])
}

fn subject(path: PathBuf, args: &'static [&'static str]) -> Subject {
    Subject {
        path,
        args,
        sources: &["/programs/"],
    }
}

fn parsed(condition: &str) -> Condition {
    Condition::parse(condition).expect(condition)
}

fn counted(function: &str, condition: Option<&str>) -> ProbeSpec {
    ProbeSpec {
        location: Location::Function(function.to_owned()),
        action: Action::Break {
            all_threads: false,
            once: false,
        },
        condition: condition.map(parsed),
        hit_count: NEVER,
    }
}

/// Runs a program to its end, with a stop just before to read the probes.
fn run(mut controlled: Controlled) -> (Vec<ProbeView>, crate::bench::Ended) {
    controlled.break_at(Location::Function("_exit".to_owned()), 0, false);
    controlled
        .go(Motion::Continue)
        .expect("it ends by way of _exit");
    let probes = controlled.live.probes();
    assert_eq!(controlled.go(Motion::Continue), None);
    (probes, controlled.end())
}

/// Returns how often each condition holds, and at how many places it is evaluated outside the program.
fn hits(
    subject: &Subject,
    scratch: &Scratch,
    compiled: bool,
) -> (Vec<(u64, usize)>, crate::bench::Ended) {
    let name = if compiled { "compiled" } else { "traced" };
    let controlled = Controlled::start(subject, scratch, name);
    controlled.live.compile_probes(compiled).expect("it runs");
    for (number, condition) in CONDITIONS.iter().enumerate() {
        let spec = counted(&format!("check_{number}"), Some(condition));
        let view = controlled
            .live
            .add_probe(spec)
            .expect("the function exists");
        let judged = &view.places[0].judged;
        match (compiled, judged) {
            (true, Some(EvaluatedBy::InProgram)) | (false, Some(EvaluatedBy::ByTracer(_))) => {}
            (true, Some(EvaluatedBy::Asked(why) | EvaluatedBy::ByTracer(why))) => {
                eprintln!("{condition}: {why}");
            }
            other => panic!("{condition}: {other:?}"),
        }
    }
    let (probes, ended) = run(controlled);
    let outside = |view: &ProbeView| {
        let places = view.places.iter();
        places
            .filter(|place| !matches!(place.judged, Some(EvaluatedBy::InProgram)))
            .count()
    };
    let views = probes.iter().filter(|view| view.spec.condition.is_some());
    (
        views.map(|view| (view.hits, outside(view))).collect(),
        ended,
    )
}

fn conditions_hold_as_often(level: &str, at_least: usize) {
    let scratch = Scratch::new("conditions");
    let subject = subject(built(&scratch, "items.c", level), &["3"]);
    let native = subject.native(&scratch);
    let (compiled, ended) = hits(&subject, &scratch, true);
    assert_eq!(ended, native);
    let (traced, ended) = hits(&subject, &scratch, false);
    assert_eq!(ended, native);
    let mut in_program = 0;
    for (number, condition) in CONDITIONS.iter().enumerate() {
        assert_eq!(compiled[number].0, traced[number].0, "{condition}");
        in_program += usize::from(compiled[number].1 == 0);
    }
    assert!(in_program >= at_least, "only {in_program} were compiled");
    let differing = traced
        .iter()
        .filter(|(hits, _)| *hits != 0 && *hits != 192)
        .count();
    assert!(
        differing > CONDITIONS.len() / 2,
        "most are true at times only"
    );
}

#[test]
fn compiled_conditions_hold_as_often_as_traced_ones() {
    // Conditions that hit missing memory go back to the tracer after some faults.
    conditions_hold_as_often("-O0", CONDITIONS.len() - 8);
}

#[test]
fn compiled_conditions_of_optimised_code_hold_as_often() {
    conditions_hold_as_often("-O2", CONDITIONS.len() / 2);
}

#[test]
fn ten_million_false_conditions_are_judged_in_the_program() {
    let scratch = Scratch::new("hot");
    let subject = subject(built(&scratch, "hot.c", "-O1"), &["10000000"]);
    let native = subject.native(&scratch);
    let controlled = Controlled::start_without(&subject, &scratch, "hot", &["work"]);
    let view = controlled
        .live
        .add_probe(ProbeSpec {
            hit_count: 0,
            ..counted("work", Some("i == -1"))
        })
        .expect("the function exists");
    assert_eq!(view.places[0].judged, Some(EvaluatedBy::InProgram));
    let (probes, ended) = run(controlled);
    assert_eq!(probes[0].hits, 0, "it was true at no hit");
    assert_eq!(ended.stdout, native.stdout);
}

#[test]
fn a_condition_stops_where_it_is_true_with_everything_as_it_was() {
    let scratch = Scratch::new("stops");
    for (name, untraced) in [("untraced", &["work"][..]), ("traced", &[])] {
        let subject = subject(built(&scratch, "hot.c", "-O1"), &["5000"]);
        let mut controlled = Controlled::start_without(&subject, &scratch, name, untraced);
        let spec = ProbeSpec {
            hit_count: 0,
            ..counted("work", Some("i % 1000 == 77"))
        };
        let view = controlled
            .live
            .add_probe(spec)
            .expect("the function exists");
        assert_eq!(view.places[0].judged, Some(EvaluatedBy::InProgram));
        for number in 0..5 {
            let stop = controlled.go(Motion::Continue).expect("it stops");
            assert_eq!(stop.pc, view.places[0].address);
            let wanted = Reason::Breakpoint {
                probe: view.id,
                hits: number + 1,
            };
            assert_eq!(stop.reason, wanted);
            let machine = controlled
                .live
                .machine(controlled.tid)
                .expect("it is stopped");
            assert_eq!(machine.registers.general.rdi, number * 1000 + 77);
            let space = controlled.live.space();
            let frames = debuginfo::backtrace(&space, &machine, 9).frames;
            let names: Vec<_> = frames
                .iter()
                .filter_map(|f| f.function.as_deref())
                .collect();
            assert_eq!(&names[..2], ["work", "main"]);
            // The patched code reads as the program's own.
            let function = space.function_at(stop.pc).expect("work");
            let mut code = [0; 16];
            controlled
                .live
                .read(function.entry, &mut code)
                .expect("it is there");
            let module = space.at(stop.pc).expect("the program");
            let file = module.module.code(module.svma(function.entry), 16);
            assert_eq!(Some(&code[..]), file);
            controlled.go(Motion::Next).expect("it steps");
        }
        assert_eq!(controlled.go(Motion::Continue), None);
        assert_eq!(controlled.end().stdout, "12497500\n");
    }
}

#[test]
fn a_probe_in_the_way_makes_no_difference() {
    let scratch = Scratch::new("way");
    let subject = subject(built(&scratch, "hot.c", "-O0"), &["30000"]);
    let mut controlled = Controlled::start(&subject, &scratch, "way");
    let source = include_str!("programs/hot.c");
    let line = source.lines().position(|line| line.trim() == "work (i);");
    let location = Location::Line {
        file: "hot.c".to_owned(),
        line: line.expect("the line with the call") as u32 + 1,
        column: None,
    };
    let spec = ProbeSpec {
        location,
        ..counted("", None)
    };
    let first = controlled.live.add_probe(spec).expect("it has code");
    assert_eq!(first.places[0].judged, Some(EvaluatedBy::InProgram));
    let machine = controlled
        .live
        .machine(controlled.tid)
        .expect("it is stopped");
    let space = controlled.live.space();
    let lines = debuginfo::disassemble_function(&space, &machine, first.places[0].address);
    let lines = lines.expect("its code can be read");
    let second = lines
        .iter()
        .map(|line| line.address)
        .find(|address| *address > first.places[0].address)
        .expect("the function has more instructions");
    assert!(second < first.places[0].address + 5, "the jump covers it");
    let mut stops = 0;
    for hit in [10, 500] {
        let view = controlled.break_at(Location::Address(second), hit, false);
        let stop = controlled.go(Motion::Continue).expect("it stops");
        assert_eq!(stop.pc, second);
        stops += hit;
        let now = controlled.live.probes()[0].hits;
        assert_eq!(now, stops, "each call was counted once");
        controlled
            .live
            .enable_probe(view.id, false)
            .expect("it is there");
        // The jump is in place again, and the thread in the middle of its bytes continues too.
        for _ in 0..3 {
            let stop = controlled.go(Motion::Instruction).expect("it steps");
            assert_eq!(stop.reason, Reason::Step);
        }
        controlled.live.remove_probe(view.id).expect("it is there");
    }
    let (probes, ended) = run(controlled);
    assert_eq!(probes[0].hits, 30000);
    assert_eq!(ended.stdout, "449985000\n");
}

#[test]
fn a_pause_shows_no_code_of_ours() {
    let scratch = Scratch::new("pauses");
    let subject = subject(built(&scratch, "hot.c", "-O1"), &["2000000000"]);
    let mut controlled = Controlled::start_without(&subject, &scratch, "pauses", &["work"]);
    controlled.break_at(Location::Function("main".to_owned()), 0, true);
    controlled.go(Motion::Continue).expect("main is called");
    let spec = ProbeSpec {
        hit_count: 0,
        ..counted("work", Some("i == -1 || sum == -1"))
    };
    controlled
        .live
        .add_probe(spec)
        .expect("the function exists");
    let tid = controlled.tid;
    for _ in 0..50 {
        let before = ran_ns(tid);
        controlled
            .live
            .resume(tid, Motion::Continue, true)
            .expect("it is stopped");
        while ran_ns(tid) < before + 1_000_000 {
            std::thread::yield_now();
        }
        let stop = controlled.live.pause().expect("it runs");
        controlled.live.mark_shown(stop);
        let machine = controlled.live.machine(tid).expect("it is stopped");
        let space = controlled.live.space();
        let frames = debuginfo::backtrace(&space, &machine, 9).frames;
        let names: Vec<_> = frames
            .iter()
            .filter_map(|f| f.function.as_deref())
            .collect();
        assert!(
            names.contains(&"main"),
            "{names:?} at {:#x}",
            machine.stop.pc
        );
    }
    controlled.live.kill().expect("it runs");
}

/// Returns how long a thread has been on a processor, in nanoseconds.
fn ran_ns(tid: i32) -> u64 {
    let path = format!("/proc/{tid}/schedstat");
    let text = std::fs::read_to_string(path).expect("the thread is there");
    let first = text.split(' ').next().expect("it begins with a number");
    first.parse().expect("it begins with a number")
}

/// Sets a condition that is always false at every statement; the program's output must not change.
fn every_statement(artifact: &str, at_least: usize) {
    let scratch = Scratch::new(artifact);
    let subject = Subject::new(artifact);
    let native = subject.native(&scratch);
    let controlled = Controlled::start(&subject, &scratch, "false");
    let lines = subject.lines(&controlled.live.space());
    let begun = std::time::Instant::now();
    let (mut in_program, mut reasons) = (0, std::collections::BTreeMap::<String, usize>::new());
    for (file, line) in &lines {
        let spec = ProbeSpec {
            location: Location::Line {
                file: file.to_string(),
                line: *line,
                column: None,
            },
            action: Action::Break {
                all_threads: false,
                once: false,
            },
            condition: Some(parsed("$rsp == 1")),
            hit_count: 0,
        };
        let view = controlled.live.add_probe(spec).expect("the place exists");
        for place in view.places {
            match place.judged {
                Some(EvaluatedBy::InProgram) => in_program += 1,
                Some(EvaluatedBy::ByTracer(why)) => {
                    let words = why.split(" at 0x").next().unwrap_or_default();
                    *reasons.entry(words.to_owned()).or_default() += 1;
                }
                other => panic!("{file}:{line}: {other:?}"),
            }
        }
    }
    let set = begun.elapsed();
    let begun = std::time::Instant::now();
    let (probes, ended) = run(controlled);
    eprintln!(
        "{artifact}: {} lines, {in_program} places compiled in {set:?}, run in {:?}; not: {reasons:?}",
        lines.len(),
        begun.elapsed()
    );
    assert_eq!(ended, native);
    assert!(
        probes
            .iter()
            .all(|view| view.hits == 0 || view.spec.condition.is_none())
    );
    assert!(in_program >= at_least, "only {in_program} places");
}

#[test]
fn every_statement_of_a_program_can_have_a_compiled_condition() {
    for (artifact, at_least) in in_turn([
        ("sqlite_O0", 5_000),
        ("sqlite_O2", 5_000),
        ("lua_O0", 2_000),
        ("lua_O2", 2_000),
        ("orders_O0", 40),
        ("orders_O2", 25),
    ]) {
        every_statement(artifact, at_least);
    }
}

#[test]
fn compiled_counts_come_and_go_while_threads_run_over_them() {
    let scratch = Scratch::new("counted");
    let subject = Subject {
        args: &["200000"],
        ..Subject::new("threads")
    };
    let native = subject.native(&scratch);
    let mut controlled = Controlled::start(&subject, &scratch, "counted");
    let lines = subject.lines(&controlled.live.space());
    let add = |live: &Live, at: usize, random: &mut Random| {
        let condition = ["$rsp != 0", "$rip == 0", "$rsp > $rip"][random.below(3)];
        let spec = ProbeSpec {
            location: Location::Line {
                file: lines[at].0.to_string(),
                line: lines[at].1,
                column: None,
            },
            action: Action::Break {
                all_threads: false,
                once: false,
            },
            condition: Some(parsed(condition)),
            hit_count: NEVER,
        };
        live.add_probe(spec).expect("the place exists").id
    };
    let mut random = Random(11);
    let mut set: Vec<(usize, ProbeId)> = Vec::new();
    for at in 0..lines.len() {
        let id = add(&controlled.live, at, &mut random);
        // Two lines may have all their places in common, which gives one breakpoint.
        if set.iter().all(|(_, other)| *other != id) {
            set.push((at, id));
        }
    }
    controlled.break_at(Location::Function("_exit".to_owned()), 0, false);
    let after = controlled
        .live
        .resume(controlled.tid, Motion::Continue, true)
        .expect("it is stopped at its entry");
    let (mut changes, mut unset, mut counted) = (0, Vec::new(), 0);
    while controlled.live.newest_stop() == after {
        let ended = matches!(controlled.live.status(), Status::Ended(_));
        assert!(!ended, "{:?} {changes}", controlled.live.status());
        if set.is_empty() || !unset.is_empty() && random.below(2) == 0 {
            let at = random.take(&mut unset);
            set.push((at, add(&controlled.live, at, &mut random)));
        } else {
            let (at, id) = random.take(&mut set);
            counted += controlled.live.remove_probe(id).expect("it is there").hits;
            unset.push(at);
        }
        changes += 1;
    }
    controlled
        .next_stop(after)
        .expect("it stops before it ends");
    eprintln!("{changes} changes, {counted} hits of what was removed");
    controlled
        .live
        .resume(controlled.tid, Motion::Continue, true)
        .expect("it is stopped");
    assert_eq!(controlled.end(), native);
    assert_eq!(native.exit, Exit::Code(5));
    assert!(changes > 50, "only {changes} changes happened meanwhile");
    assert!(counted > 1_000, "only {counted} hits");
}
