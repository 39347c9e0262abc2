//! Goal: what one does first with a live program works: stop, look, change, step, go on. Method: the binary and a daemon
//! of each test's own; values are compared exactly.

use e2e::{Live, fixture_artifact, marked_line, wait_until};

const C: [&str; 5] = [
    "control_O0",
    "control_O2",
    "control_O0_fixed",
    "control_O2_fixed",
    "control_stripped",
];
const UNOPTIMIZED: [&str; 3] = ["control_O0", "control_O0_fixed", "control_stripped"];

fn line(mark: &str) -> u64 {
    marked_line("control", "control.c", mark)
}

fn at(mark: &str) -> String {
    format!("control.c:{}", line(mark))
}

fn stopped_at(name: &str, options: &[&str], args: &[&str]) -> Live {
    let program = fixture_artifact("control", name);
    Live::started(&format!("live-{name}"), options, &program, args)
}

#[test]
fn a_breakpoint_at_a_function_stops_and_the_program_goes_on() {
    for name in C {
        let live = stopped_at(name, &["--break", "bump"], &[]);
        let stop = &live.session()["stop"];
        assert_eq!(stop["reason"], "breakpoint", "{name}");
        assert_eq!(stop["function"], "bump", "{name}");
        assert_eq!(stop["hits"], 1, "{name}");
        assert_eq!(live.print("counter"), "0", "{name}");
        assert_eq!(live.moved(&["continue"])["hits"], 2, "{name}");
        assert_eq!(live.print("counter"), "1", "{name}");
        live.ask(&["break", "disable", "1"]);
        assert_eq!(live.run_to_end(), 7, "{name}");
        let printed = live.output();
        assert!(
            printed.starts_with("counter 55\nmiddle 124\n"),
            "{name}: {printed}"
        );
    }
}

#[test]
fn a_breakpoint_at_a_line_stops_there_and_locals_are_read() {
    for name in UNOPTIMIZED {
        let live = stopped_at(name, &["--break", &at("leaf: last")], &[]);
        let stop = &live.session()["stop"];
        assert_eq!(stop["line"], line("leaf: last"), "{name}");
        assert_eq!(stop["function"], "leaf", "{name}");
        let probe = &live.ask(&["break", "list"])["probes"][0];
        assert_eq!(probe["places"][0]["address"], stop["address"], "{name}");
        assert_eq!(live.print("x"), "20", "{name}");
        assert_eq!(live.print("twice"), "40", "{name}");
        let locals = live.ask(&["locals"]);
        let names: Vec<_> = locals["variables"]
            .as_array()
            .expect("a list")
            .iter()
            .collect();
        assert!(
            names
                .iter()
                .any(|v| v["name"] == "twice" && v["value"] == "40"),
            "{locals:#}"
        );
    }
}

#[test]
fn a_condition_stops_only_when_it_is_true() {
    for name in C {
        for condition in ["args[0] > 5", "by > 5"] {
            let live = stopped_at(name, &["--stop-on-entry"], &[]);
            live.ask(&["break", "bump", "--condition", condition]);
            for by in 6..=10 {
                let stop = live.moved(&["continue"]);
                assert_eq!(stop["hits"], by - 5, "{name} {condition}");
                assert_eq!(live.print("by"), by.to_string(), "{name} {condition}");
            }
            assert_eq!(live.run_to_end(), 7, "{name} {condition}");
        }
    }
}

#[test]
fn a_hit_count_stops_at_that_hit_only() {
    for name in C {
        let live = stopped_at(name, &["--stop-on-entry"], &[]);
        live.ask(&["break", "bump", "--hit-count", "3"]);
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["hits"], 3, "{name}");
        assert_eq!(live.print("by"), "3", "{name}");
        assert_eq!(
            live.ask(&["break", "list"])["probes"][0]["hits"],
            3,
            "{name}"
        );
        assert_eq!(live.run_to_end(), 7, "{name}");
    }
}

#[test]
fn a_logpoint_is_an_event_and_stops_nothing() {
    for name in C {
        let live = stopped_at(name, &["--stop-on-entry"], &[]);
        live.ask(&[
            "logpoint",
            "bump",
            "by={by} sum={counter} {nope}",
            "--condition",
            "by % 2 == 0",
        ]);
        assert_eq!(live.run_to_end(), 7, "{name}");
        let recording = live.recording();
        let rows = recording.rows("SELECT message FROM logpoints ORDER BY seq");
        let messages: Vec<_> = rows
            .iter()
            .map(|row| row["message"].as_str().expect("text"))
            .collect();
        let nope = "<error: no variable \"nope\" here>";
        let wanted = [(2, 1), (4, 6), (6, 15), (8, 28), (10, 45)];
        assert_eq!(
            messages,
            wanted.map(|(by, sum)| format!("by={by} sum={sum} {nope}")),
            "{name}"
        );
        assert_eq!(
            recording.number("SELECT count(*) FROM events WHERE kind = 'logpoint'"),
            5
        );
    }
}

#[test]
fn next_goes_from_a_line_to_the_one_after_it() {
    for name in UNOPTIMIZED {
        let live = stopped_at(name, &["--break", "middle"], &[]);
        assert_eq!(
            live.session()["stop"]["line"],
            line("middle: call"),
            "{name}"
        );
        for mark in ["middle: after", "middle: last"] {
            let stop = live.moved(&["next"]);
            assert_eq!(stop["line"], line(mark), "{name}");
            assert_eq!(stop["reason"], "step", "{name}");
        }
        assert_eq!(
            (live.print("a"), live.print("b")),
            ("83".into(), "124".into()),
            "{name}"
        );
    }
}

#[test]
fn step_goes_to_the_first_line_of_the_callee() {
    for name in UNOPTIMIZED {
        let live = stopped_at(name, &["--break", "middle"], &[]);
        let stop = live.moved(&["step"]);
        assert_eq!(stop["function"], "leaf", "{name}");
        assert_eq!(stop["line"], line("leaf: first"), "{name}");
        assert_eq!(live.print("x"), "41", "{name}");
    }
}

#[test]
fn finish_goes_to_the_callers_line_and_says_what_was_returned() {
    for name in C {
        let live = stopped_at(name, &["--break", "middle"], &[]);
        live.ask(&["break", "leaf"]);
        assert_eq!(live.moved(&["continue"])["function"], "leaf", "{name}");
        let mut reply = live.ask(&["finish"]);
        assert_eq!(reply["returned"]["function"], "leaf", "{name}: {reply:#}");
        assert_eq!(reply["returned"]["value"], "83", "{name}: {reply:#}");
        let stop = reply["stop"].take();
        assert_eq!(stop["function"], "middle", "{name}");
        if UNOPTIMIZED.contains(&name) {
            // The call's value is still to be stored.
            assert_eq!(stop["line"], line("middle: call"), "{name}");
            assert_eq!(
                live.moved(&["next"])["line"],
                line("middle: after"),
                "{name}"
            );
            assert_eq!(live.print("a"), "83", "{name}");
        }
        assert_eq!(live.run_to_end(), 7, "{name}");
    }
}

#[test]
fn a_global_that_is_written_is_seen_by_the_program() {
    for name in C {
        let live = stopped_at(name, &["--break", "middle"], &[]);
        let written = &live.ask(&["set", "tempo", "90"])["results"][0];
        assert_eq!(written["variable"], "tempo", "{name}");
        assert_eq!(written["previous_value"], "120", "{name}");
        assert_eq!(written["new_value"], "90", "{name}");
        assert_eq!(live.run_to_end(), 7, "{name}");
        assert!(
            live.output().ends_with("tempo 90\n"),
            "{name}: {}",
            live.output()
        );
    }
}

#[test]
fn a_global_is_written_while_the_program_runs() {
    let live = stopped_at("control_O2", &[], &["spinning"]);
    assert_eq!(live.session()["status"], "running");
    let refused = live.refused(&["set", "nowhere", "1"]);
    assert_eq!(refused["code"], "NOT_STOPPED");
    live.ask(&["set", "tempo", "90"]);
    let ended = live.ask(&["await"]);
    assert_eq!(ended["exit"]["code"], 7, "{ended:#}");
    assert!(live.output().ends_with("tempo 90\n"));
}

#[test]
fn a_local_that_is_written_changes_what_happens() {
    for name in UNOPTIMIZED {
        let live = stopped_at(name, &["--break", &at("leaf: last")], &[]);
        let written = &live.ask(&["set", "twice", "1000"])["results"][0];
        assert_eq!(written["previous_value"], "40", "{name}");
        assert_eq!(written["new_value"], "1000", "{name}");
        live.moved(&["next"]);
        live.ask(&["break", "disable", "--all"]);
        assert_eq!(live.run_to_end(), 7, "{name}");
        // leaf (20) returned 1001: middle (1001) is 2003 + 1001.
        assert!(
            live.output().contains("middle 3004\n"),
            "{name}: {}",
            live.output()
        );
    }
}

#[test]
fn a_parameter_in_a_register_is_written() {
    for name in ["control_O2", "control_O2_fixed"] {
        let live = stopped_at(name, &["--break", "leaf"], &[]);
        let written = &live.ask(&["set", "x", "500"])["results"][0];
        assert_eq!(written["address"], "rdi", "{name}");
        assert_eq!(written["previous_value"], "20", "{name}");
        live.ask(&["break", "disable", "--all"]);
        assert_eq!(live.run_to_end(), 7, "{name}");
        assert!(
            live.output().contains("middle 3004\n"),
            "{name}: {}",
            live.output()
        );
    }
}

/// Two threads stop at the same breakpoint, each by itself, and each goes on by itself.
#[test]
fn threads_stop_and_go_on_independently() {
    for name in C {
        let live = stopped_at(name, &["--break", "worker_step"], &["threads"]);
        wait_until("the second thread", || {
            (live.session()["stopped_threads"] == 2).then_some(())
        });
        let threads = live.ask(&["threads"]);
        let stopped: Vec<_> = threads["threads"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|thread| thread["state"] == "stopped")
            .map(|thread| thread["thread"].to_string())
            .collect();
        assert_eq!(stopped.len(), 2, "{name}: {threads:#}");
        assert_eq!(
            threads["threads"].as_array().map(Vec::len),
            Some(3),
            "{name}"
        );
        live.ask(&["thread", &stopped[0]]);
        let first = live.print("id");
        live.ask(&["thread", &stopped[1]]);
        let second = live.print("id");
        assert_ne!(first, second, "{name}");
        live.ask(&["continue", "--thread", "--no-wait"]);
        let done = |id: &str| live.print(&format!("progress[{id}]"));
        wait_until("the second thread's work", || {
            (done(&second) == "1").then_some(())
        });
        assert_eq!(done(&first), "0", "{name}: it is still stopped");
        assert_eq!(live.session()["stopped_threads"], 1, "{name}");
        let ended = live.ask(&["continue"]);
        assert_eq!(ended["exit"]["code"], 0, "{name}: {ended:#}");
        assert_eq!(live.output(), "progress 1 1\n", "{name}");
    }
}

/// A frequency gets negative: a conditional breakpoint finds when, two variables say why, one of them is mended.
#[test]
fn a_spoilt_sample_rate_is_found_and_mended() {
    for name in ["throws_O0", "throws_O2"] {
        let program = fixture_artifact("control", name);
        let live = Live::started("scenario", &["--stop-on-entry"], &program, &[]);
        let phase = marked_line("control", "throws.cc", "processor: phase");
        let here = format!("throws.cc:{phase}");
        live.ask(&["break", &here, "--condition", "frequency < 0"]);
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["line"], phase, "{name}");
        assert_eq!(stop["hits"], 1, "{name}");
        assert_eq!(live.print("frequency"), "-440", "{name}");
        assert_eq!(live.print("sampleRate"), "-1", "{name}");
        assert_eq!(live.print("bufferSize"), "256", "{name}");
        let written = &live.ask(&["set", "sampleRate", "44100"])["results"][0];
        assert_eq!(written["previous_value"], "-1", "{name}");
        assert_eq!(written["new_value"], "44100", "{name}");
        assert_eq!(live.run_to_end(), 0, "{name}");
        assert!(
            live.output().contains("rate 44100 size 256\n"),
            "{name}: {}",
            live.output()
        );
        // The recording tells who spoilt it: the call before the stop.
        let recording = live.recording();
        let pause = recording.row("SELECT min(seq) AS seq FROM pauses WHERE reason = 'breakpoint'");
        let spoilt = recording.row(&format!(
            "SELECT max(start_seq) AS seq, max(a0) AS round FROM calls WHERE function LIKE 'spoil%' AND start_seq < {}",
            pause["seq"]
        ));
        assert_eq!(spoilt["round"], 3, "{name}: {spoilt:?}");
    }
}
