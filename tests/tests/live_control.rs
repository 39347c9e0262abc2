//! Goal: the first steps with a live program work: stop, look, change, step, continue; in C, C++ and Rust, optimised or
//! not, at fixed addresses or not, stripped or not. Method: the binary and a daemon of each test's own; values are compared
//! exactly, and lines of optimised programs with those that gdb stops at. Each run takes a third of the builds; `WHOLE=1` all.

use e2e::{
    Live, Program, Recording, fixture_artifact, gdb_places, in_turn, marked_line, wait_until,
};
use serde_json::Value;

/// One build of the test program, which prints the same in every language.
#[derive(Clone, Copy)]
struct Build {
    name: &'static str,
    file: &'static str,
    /// The prefix of its functions and globals.
    path: &'static str,
    optimised: bool,
}

const fn build(
    name: &'static str,
    file: &'static str,
    path: &'static str,
    optimised: bool,
) -> Build {
    Build {
        name,
        file,
        path,
        optimised,
    }
}

const BUILDS: [Build; 12] = [
    build("control_O0", "control.c", "", false),
    build("control_O0_fixed", "control.c", "", false),
    build("control_stripped", "control.c", "", false),
    build("control_cxx_O0", "control.cc", "desk::", false),
    build("control_rust_O0", "control.rs", "control::", false),
    build("control_rust_stripped", "control.rs", "control::", false),
    build("control_O2", "control.c", "", true),
    build("control_O2_fixed", "control.c", "", true),
    build("control_stripped_O2", "control.c", "", true),
    build("control_cxx_O2", "control.cc", "desk::", true),
    build("control_cxx_fixed", "control.cc", "desk::", true),
    build("control_rust_O2", "control.rs", "control::", true),
];

impl Build {
    fn line(&self, mark: &str) -> u64 {
        marked_line("control", self.file, mark)
    }

    fn at(&self, mark: &str) -> String {
        format!("{}:{}", self.file, self.line(mark))
    }

    fn named(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }

    fn started(&self, options: &[&str], args: &[&str]) -> Live {
        let program = fixture_artifact("control", self.name);
        Live::started(&format!("live-{}", self.name), options, &program, args)
    }

    fn stopped_at(&self, place: &str) -> Live {
        self.started(&["--break", place], &[])
    }

    /// Asserts that a stop is where gdb's is after the same commands.
    fn assert_as_gdb(&self, stop: &Value, live: &Live, commands: &[&str]) {
        let program = fixture_artifact("control", self.name);
        let program = Program::new(program, live.scratch.path());
        let (function, line) = gdb_places(&program, commands).pop().expect("a place");
        let name = self.name;
        assert_eq!(stop["function"], function.as_str(), "{name} {commands:?}");
        assert_eq!(stop["line"], line, "{name} {commands:?}: {stop:#}");
    }
}

/// Writes a value as a user would; the reply, which is returned, has both values.
fn assert_set(live: &Live, name: &str, variable: &str, (from, to): (&str, &str)) -> Value {
    let written = live.ask(&["set", variable, to])["results"][0].take();
    assert_eq!(written["variable"], variable, "{name}");
    assert_eq!(written["previous_value"], from, "{name}");
    assert_eq!(written["new_value"], to, "{name}");
    written
}

/// Asserts that the program runs to its end, with this exit code, and has printed this.
fn assert_ends(live: &Live, name: &str, code: i64, printed: &str) {
    assert_eq!(live.run_to_end(), code, "{name}");
    let output = live.output();
    assert!(output.contains(printed), "{name}: {output}");
}

/// Those whose lines are all there, in the order of the source.
fn unoptimised() -> impl Iterator<Item = Build> {
    in_turn(BUILDS).filter(|build| !build.optimised)
}

fn optimised() -> impl Iterator<Item = Build> {
    in_turn(BUILDS).filter(|build| build.optimised)
}

#[test]
fn a_breakpoint_at_a_function_stops_and_the_program_goes_on() {
    for build in in_turn(BUILDS) {
        let name = build.name;
        let bump = build.named("bump");
        let live = build.stopped_at(&bump);
        let stop = &live.session()["stop"];
        assert_eq!(stop["reason"], "breakpoint", "{name}");
        assert_eq!(stop["function"], bump.as_str(), "{name}");
        assert_eq!(stop["line"], build.line("bump: add"), "{name}");
        assert_eq!(stop["hits"], 1, "{name}");
        assert_eq!(live.print("counter"), "0", "{name}");
        assert_eq!(live.moved(&["continue"])["hits"], 2, "{name}");
        assert_eq!(live.print(&build.named("counter")), "1", "{name}");
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
    for build in in_turn(BUILDS) {
        let name = build.name;
        let live = build.stopped_at(&build.at("leaf: last"));
        let stop = &live.session()["stop"];
        assert_eq!(stop["line"], build.line("leaf: last"), "{name}");
        assert_eq!(stop["function"], build.named("leaf").as_str(), "{name}");
        let probe = &live.ask(&["break", "list"])["probes"][0];
        assert_eq!(probe["places"][0]["address"], stop["address"], "{name}");
        if name != "control_rust_O2" {
            // There it no longer exists; gdb says so too.
            assert_eq!(live.print("x"), "20", "{name}");
        }
        assert_eq!(live.print("twice"), "40", "{name}");
        let locals = live.ask(&["locals"]);
        let variables = locals["variables"].as_array().expect("a list");
        let mut variables = variables.iter();
        assert!(
            variables.any(|v| v["name"] == "twice" && v["value"] == "40"),
            "{name}: {locals:#}"
        );
    }
}

#[test]
fn a_condition_stops_only_when_it_is_true() {
    for build in in_turn(BUILDS) {
        let name = build.name;
        for condition in ["args[0] > 5", "by > 5"] {
            let live = build.started(&["--stop-on-entry"], &[]);
            live.ask(&["break", &build.named("bump"), "--condition", condition]);
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
    for build in in_turn(BUILDS) {
        let name = build.name;
        let live = build.started(&["--stop-on-entry"], &[]);
        live.ask(&["break", &build.named("bump"), "--hit-count", "3"]);
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
    for build in in_turn(BUILDS) {
        let name = build.name;
        let live = build.started(&["--stop-on-entry"], &[]);
        live.ask(&[
            "logpoint",
            &build.named("bump"),
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
    for build in unoptimised() {
        let name = build.name;
        let live = build.stopped_at(&build.named("middle"));
        let stop = &live.session()["stop"];
        assert_eq!(stop["line"], build.line("middle: call"), "{name}");
        for (mark, name_there, value) in
            [("middle: after", "a", "83"), ("middle: last", "b", "124")]
        {
            let stop = live.moved(&["next"]);
            assert_eq!(stop["line"], build.line(mark), "{name}");
            assert_eq!(stop["reason"], "step", "{name}");
            // In Rust the last line is the brace, where locals no longer exist.
            if mark == "middle: after" || build.file != "control.rs" {
                assert_eq!(live.print(name_there), value, "{name}");
            }
        }
    }
    for build in optimised() {
        let middle = build.named("middle");
        let live = build.stopped_at(&middle);
        let entry = format!("break {middle}");
        let stop = live.session()["stop"].clone();
        build.assert_as_gdb(&stop, &live, &[&entry, "run"]);
        let stop = live.moved(&["next"]);
        assert_eq!(stop["reason"], "step", "{}", build.name);
        build.assert_as_gdb(&stop, &live, &[&entry, "run", "next"]);
        assert_eq!(live.run_to_end(), 7, "{}", build.name);
    }
}

#[test]
fn step_goes_to_the_first_line_of_the_callee() {
    for build in in_turn(BUILDS) {
        let name = build.name;
        let (leaf, middle) = (build.named("leaf"), build.named("middle"));
        let live = build.stopped_at(&middle);
        let stop = live.moved(&["step"]);
        assert_eq!(stop["function"], leaf.as_str(), "{name}");
        match build.optimised {
            false => assert_eq!(stop["line"], build.line("leaf: first"), "{name}"),
            true => {
                let entry = format!("break {middle}");
                build.assert_as_gdb(&stop, &live, &[&entry, "run", "step"]);
            }
        }
        assert_eq!(live.print("x"), "41", "{name}");
    }
}

#[test]
fn finish_goes_to_the_callers_line_and_says_what_was_returned() {
    for build in in_turn(BUILDS) {
        let name = build.name;
        let (leaf, middle) = (build.named("leaf"), build.named("middle"));
        let live = build.stopped_at(&middle);
        live.ask(&["break", &leaf]);
        assert_eq!(
            live.moved(&["continue"])["function"],
            leaf.as_str(),
            "{name}"
        );
        let mut reply = live.ask(&["finish"]);
        assert_eq!(
            reply["returned"]["function"],
            leaf.as_str(),
            "{name}: {reply:#}"
        );
        assert_eq!(reply["returned"]["value"], "83", "{name}: {reply:#}");
        let stop = reply["stop"].take();
        assert_eq!(stop["function"], middle.as_str(), "{name}");
        if build.optimised {
            let (entry, callee) = (format!("break {middle}"), format!("break {leaf}"));
            let commands = [entry.as_str(), "run", &callee, "continue", "finish"];
            build.assert_as_gdb(&stop, &live, &commands);
        } else {
            // The call's value is still to be stored.
            assert_eq!(stop["line"], build.line("middle: call"), "{name}");
            assert_eq!(
                live.moved(&["next"])["line"],
                build.line("middle: after"),
                "{name}"
            );
            assert_eq!(live.print("a"), "83", "{name}");
        }
        assert_eq!(live.run_to_end(), 7, "{name}");
    }
}

#[test]
fn a_global_that_is_written_is_seen_by_the_program() {
    for build in in_turn(BUILDS) {
        let name = build.name;
        let live = build.stopped_at(&build.named("middle"));
        assert_set(&live, name, "tempo", ("120", "90"));
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
    let program = fixture_artifact("control", "control_O2");
    let live = Live::started("live-spinning", &[], &program, &["spinning"]);
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
    for build in unoptimised() {
        let name = build.name;
        let live = build.stopped_at(&build.at("leaf: last"));
        assert_set(&live, name, "twice", ("40", "1000"));
        live.moved(&["next"]);
        live.ask(&["break", "disable", "--all"]);
        // leaf (20) returned 1001: middle (1001) is 2003 + 1001.
        assert_ends(&live, name, 7, "middle 3004\n");
    }
}

#[test]
fn a_parameter_in_a_register_is_written() {
    for build in optimised() {
        let name = build.name;
        let live = build.stopped_at(&build.named("leaf"));
        let written = assert_set(&live, name, "x", ("20", "500"));
        assert_eq!(written["address"], "rdi", "{name}");
        live.ask(&["break", "disable", "--all"]);
        assert_ends(&live, name, 7, "middle 3004\n");
    }
}

/// Two threads stop at the same breakpoint separately, and continue separately.
#[test]
fn threads_stop_and_go_on_independently() {
    for build in in_turn(BUILDS) {
        let name = build.name;
        let step = build.named("worker_step");
        let live = build.started(&["--break", &step], &["threads"]);
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
        let all = threads["threads"].as_array().expect("a list");
        assert_eq!(all.len(), 3, "{name}");
        for thread in all.iter().filter(|thread| thread["state"] == "stopped") {
            assert_eq!(thread["place"]["function"], step.as_str(), "{name}");
            assert_eq!(
                thread["place"]["line"],
                build.line("worker: step"),
                "{name}"
            );
            assert_eq!(thread["reason"]["probe"], 1, "{name}: {thread:#}");
        }
        live.ask(&["thread", &stopped[0]]);
        let first = live.print("id");
        live.ask(&["thread", &stopped[1]]);
        let second = live.print("id");
        assert_ne!(first, second, "{name}");
        live.ask(&["continue", "--thread", "--no-wait"]);
        let done = |id: &str| live.print(&format!("{}[{id}]", build.named("progress")));
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

/// A recorded frequency is negative: a conditional breakpoint finds when, two variables say why, one of them is corrected.
#[test]
fn a_spoilt_sample_rate_is_found_and_mended() {
    for name in in_turn(["throws_O0", "throws_O2", "throws_O2_fixed"]) {
        let program = fixture_artifact("control", name);
        let live = Live::started("scenario", &["--stop-on-entry"], &program, &[]);
        assert_eq!(live.run_to_end(), 0, "{name}");
        // The frequency that looks wrong, in the recording.
        let suspicious = "SELECT args, file, line FROM calls WHERE function = 'audio::advance' \
             AND args LIKE '%-%' ORDER BY start_seq LIMIT 1";
        let call = live.recording().row(suspicious);
        assert_eq!(call["args"], "frequency=-440", "{name}: {call:?}");
        live.start(&["--stop-on-entry"], &program, &[]);
        let advance = marked_line("control", "throws.cc", "processor: advance");
        let here = format!("throws.cc:{advance}");
        live.ask(&["break", &here, "--condition", "args[0] < 0"]);
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["line"], advance, "{name}");
        assert_eq!(stop["hits"], 1, "{name}");
        assert_eq!(live.print("frequency"), "-440", "{name}");
        assert_eq!(live.print("sampleRate"), "-1", "{name}");
        assert_eq!(live.print("bufferSize"), "256", "{name}");
        assert_set(&live, name, "sampleRate", ("-1", "44100"));
        assert_ends(&live, name, 0, "rate 44100 size 256\n");
        // The recording shows which call corrupted it: the one before the stop.
        let status = live.ask(&["status", "--session", "2"]);
        let path = status["sessions"][0]["recording"].as_str().expect("a path");
        let recording = Recording::new(path.into());
        let pause = recording.row("SELECT min(seq) AS seq FROM pauses WHERE reason = 'breakpoint'");
        let spoilt = recording.row(&format!(
            "SELECT max(start_seq) AS seq, max(a0) AS round FROM calls WHERE function LIKE 'spoil%' AND start_seq < {}",
            pause["seq"]
        ));
        assert_eq!(spoilt["round"], 3, "{name}: {spoilt:?}");
    }
}

/// Out of the loop, not back to its head; at the end of the function, to its caller.
#[test]
fn until_without_a_place_leaves_loops_as_gdb_does() {
    for build in unoptimised() {
        if build.name.ends_with("stripped") {
            // gdb is not told where its debug information is.
            continue;
        }
        let sum_to = build.named("sum_to");
        let live = build.stopped_at(&sum_to);
        let program = fixture_artifact("control", build.name);
        let program = Program::new(program, live.scratch.path());
        let entry = format!("break {sum_to}");
        let mut commands = vec![entry.as_str(), "run"];
        commands.extend(["until"; 6]);
        let expected = gdb_places(&program, &commands);
        for (function, line) in &expected[1..] {
            let stop = live.moved(&["until"]);
            assert_eq!(
                (&stop["function"], &stop["line"]),
                (&Value::from(function.as_str()), &Value::from(*line)),
                "{}: {expected:?}",
                build.name
            );
        }
        assert_eq!(live.run_to_end(), 7, "{}", build.name);
    }
}
