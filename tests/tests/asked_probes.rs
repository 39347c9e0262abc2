//! Goal: probes that are evaluated without a stop give the same results as at stopped threads: each hit once, with the right
//! values, and without a change to the program. Method: conditions that only the engine or the tracer can evaluate, at places
//! that are passed so often that most passes meet a listening tracer; the right counts are known from the programs.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{
    Live, Program, Signal, Status, Steady, fixture_artifact, in_turn, is_alive, kill, wait_until,
};

fn held(fixture: &str, program: &str, args: &[&str]) -> Live {
    let path = fixture_artifact(fixture, program);
    let options = ["--stop-on-entry", "--exclude", "*"];
    Live::started(&format!("asked-{program}"), &options, &path, args)
}

/// Sets a probe that is the only one at its place and not compiled.
fn set(live: &Live, probe: &[&str]) {
    let added = live.ask(probe);
    let place = &added["probes"][0]["places"][0];
    assert_eq!(place["compiled"], false, "{added:#}");
    assert!(place["problem"].is_null(), "{added:#}");
}

fn no_errors(live: &Live) {
    let errors = live
        .recording()
        .rows("SELECT text, aux FROM events WHERE kind = 'condition_error'");
    assert!(errors.is_empty(), "{errors:#?}");
}

/// The voluntary context switches of a process's threads: one for each stop, besides their own.
fn switches(pid: i32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let of = |path: std::path::PathBuf| {
        let status = std::fs::read_to_string(path.join("status")).unwrap_or_default();
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.map_or(0, |count| count.trim().parse().expect("a number"))
    };
    tasks.map(|task| of(task.expect("readable").path())).sum()
}

#[test]
fn every_hit_of_four_threads_is_judged_once() {
    for program in in_turn(["conditions_c_O0", "conditions_c_O2"]) {
        let live = held("conditions", program, &["5000"]);
        let count = "state.n = (state.n ?? 0) + 1, state.n % 1000 === 0";
        set(
            &live,
            &["logpoint", "visit", "a thousand", "--condition", count],
        );
        assert_eq!(live.run_to_end(), 0);
        no_errors(&live);
        let logged = live.recording().number("SELECT count(*) FROM logpoints");
        assert_eq!(logged, 20, "{program}: 20,000 hits");
    }
}

#[test]
fn a_quarter_of_the_hits_or_more_take_no_stop() {
    let live = held("registers", "registers", &["20000"]);
    set(
        &live,
        &[
            "break",
            "spot",
            "--condition",
            "state.n = (state.n ?? 0) + 1, state.n === 20000",
        ],
    );
    let stop = live.moved(&["continue"]);
    assert_eq!(stop["reason"], "breakpoint", "{stop:#}");
    let pid = live.session()["pid"].as_i64().expect("a process") as i32;
    let stops = switches(pid);
    assert!(stops <= 15_000, "20,000 hits, {stops} stops");
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(live.output(), "20000 of 20000 rounds right\n");
}

/// Whether the direction flag is set or not: no string instruction of the runtime may run backwards.
#[test]
fn registers_are_seen_and_left_as_they_are() {
    for args in [&["4000"][..], &["4000", "1"]] {
        let live = held("registers", "registers", args);
        let all = "[$rax, $rdx, $rcx, $rbx, $rsi, $rdi, $rbp, $r8, $r9, $r10, $r11, $r12, $r13, $r14, $r15].join() \
                   !== '100,101,102,103,104,105,106,108,109,110,111,112,113,114,115' || ($eflags & 0x8c1) !== 0x81";
        set(&live, &["break", "spot", "--condition", all]);
        assert_eq!(live.run_to_end(), 0);
        no_errors(&live);
        assert_eq!(live.output(), "4000 of 4000 rounds right\n", "{args:?}");
    }
}

#[test]
fn a_breakpoint_stops_at_the_very_hit_that_its_condition_means() {
    let live = held("conditions", "conditions_c_O2", &["3000"]);
    let condition = "state.n = (state.n ?? 0) + 1, state.n === 7777 || state.n === 9999";
    set(
        &live,
        &["break", "visit", "--all-threads", "--condition", condition],
    );
    for hits in [1, 2] {
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["reason"], "breakpoint", "{stop:#}");
        let list = live.ask(&["break", "list"]);
        assert_eq!(list["probes"][0]["hits"], hits, "{list:#}");
        let frames = live.ask(&["backtrace"]);
        assert_eq!(
            frames["threads"][0]["frames"][0]["function"], "visit",
            "{frames:#}"
        );
        let id: i32 = live.print("id").parse().expect("a number");
        assert_eq!(live.print("item->price"), id.to_string());
    }
    live.ask(&["break", "remove", "1"]);
    assert_eq!(live.run_to_end(), 0);
    no_errors(&live);
}

#[test]
fn hits_are_counted_as_those_of_stops() {
    let live = held("conditions", "conditions_c_O0", &["1000"]);
    let even = "[0, 2, 4, 6, 8, 10].some(n => n === id)";
    set(
        &live,
        &["break", "visit", "--condition", even, "--hit-count", "1500"],
    );
    let stop = live.moved(&["continue"]);
    assert_eq!(stop["reason"], "breakpoint", "{stop:#}");
    let list = live.ask(&["break", "list"]);
    assert!(
        list["probes"][0]["hits"]
            .as_u64()
            .is_some_and(|hits| hits >= 1500),
        "{list:#}"
    );
    assert_eq!(live.run_to_end(), 0);
    no_errors(&live);
}

/// The tracer evaluates string functions of the language of `print`, and containers in messages.
#[test]
fn messages_and_texts_are_told_as_at_a_stop() {
    let live = held("conditions", "conditions_c_O0", &["2000"]);
    let template = "{id} {name} {item->tag} {item->numbers[1]} {*item->next}";
    set(
        &live,
        &[
            "logpoint",
            "visit",
            template,
            "--condition",
            "name == \"other-7\"",
        ],
    );
    assert_eq!(live.run_to_end(), 0);
    no_errors(&live);
    let recording = live.recording();
    let messages = recording.rows("SELECT DISTINCT message FROM logpoints");
    assert_eq!(messages.len(), 1, "{messages:#?}");
    let message = messages[0]["message"].as_str().expect("text");
    assert!(message.starts_with("7 other-7 t7 8 {name = "), "{message}");
    // Each of four threads, 2,000 rounds of twelve: 166 times the eighth of them, and once more.
    assert_eq!(recording.number("SELECT count(*) FROM logpoints"), 4 * 167);
}

#[test]
fn a_busy_program_is_stopped_looked_at_and_left_while_its_threads_ask() {
    let live = Live::new("asked-steady");
    let steady = Steady::new(&live.scratch);
    let program = steady.program(&live.scratch, 0).start();
    let pid = program.pid();
    for _ in 0..3 {
        wait_until("some rounds", || (steady.rounds() > 1000).then_some(()));
        live.ask(&["attach", &pid.to_string(), "--exclude", "*"]);
        for probe in [
            &[
                "break",
                "churn",
                "--condition",
                "[99].some(n => n === depth)",
            ][..],
            &[
                "break",
                "leaf",
                "--condition",
                "(state.n = (state.n ?? 0) + 1) < 0",
            ],
        ] {
            set(&live, probe);
        }
        for _ in 0..10 {
            let begun = steady.rounds();
            wait_until("rounds", || (steady.rounds() > begun + 50).then_some(()));
            live.ask(&["pause"]);
            let shown = live.ask(&["backtrace", "--all"]);
            let threads = shown["threads"].as_array().expect("threads");
            assert!(threads.len() > 1, "{shown:#}");
            for thread in threads {
                let frames = thread["frames"].as_array().expect("frames");
                let mut functions = frames.iter().filter_map(|frame| frame["function"].as_str());
                assert!(!functions.any(|name| name.starts_with("hs_")), "{thread:#}");
                assert!(frames.len() > 1, "{thread:#}");
            }
            live.ask(&["continue", "--no-wait"]);
        }
        no_errors(&live);
        live.ask(&["detach"]);
    }
    steady.stop();
    assert_eq!(program.finish().status, Status::Code(21));
    assert!(steady.has_finished());
    assert_eq!(steady.wrong(), 0);
}

#[test]
fn a_killed_daemon_leaves_threads_that_ask_unharmed() {
    let live = Live::new("asked-orphans");
    let steady = Steady::new(&live.scratch);
    let program = steady.program(&live.scratch, 0).start();
    let pid = program.pid();
    for _ in 0..2 {
        wait_until("some rounds", || (steady.rounds() > 1000).then_some(()));
        live.ask(&["attach", &pid.to_string(), "--exclude", "*"]);
        set(
            &live,
            &[
                "break",
                "churn",
                "--condition",
                "[99].some(n => n === depth)",
            ],
        );
        set(
            &live,
            &["break", "leaf", "--condition", "[-99].some(m => m === n)"],
        );
        let begun = steady.rounds();
        wait_until("rounds", || (steady.rounds() > begun + 200).then_some(()));
        let daemon = live.daemon().expect("a daemon");
        kill(daemon, Signal::KILL);
        live.wait_for_end_of(daemon);
        let left = steady.rounds();
        wait_until("rounds without us", || {
            (steady.rounds() > left + 1000).then_some(())
        });
        assert!(is_alive(pid));
    }
    steady.stop();
    assert_eq!(program.finish().status, Status::Code(21));
    assert_eq!(steady.wrong(), 0);
}

/// Handlers interrupt threads that wait for an answer, ask themselves, and jump away.
#[test]
fn signal_handlers_ask_while_what_they_interrupt_waits() {
    for (fixture, program, args, functions) in [
        (
            "signals",
            "signals_O2",
            &["threads"][..],
            &["in_handler", "triangle"][..],
        ),
        (
            "signals",
            "signals_O0",
            &["alt"],
            &["in_handler", "red_zone"],
        ),
        ("longjmp", "longjmp_O2", &[], &["dive"]),
        ("longjmp", "signal_jumps", &[], &["churn", "leaf"]),
    ] {
        let path = fixture_artifact(fixture, program);
        let natively = Program::new(&path, std::env::temp_dir()).args(args).run();
        let live = held(fixture, program, args);
        for function in functions {
            let probe = ["break", function, "--condition", "[].some(x => x)"];
            set(&live, &probe);
        }
        let Status::Code(code) = natively.status else {
            panic!("{program}: {:?}", natively.status);
        };
        assert_eq!(live.run_to_end(), i64::from(code), "{program}");
        assert_eq!(live.output(), natively.text(), "{program}");
        no_errors(&live);
    }
}
