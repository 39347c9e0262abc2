//! Goal: everything that can stop a program does so when it should and reports what it saw; what cannot be done is refused
//! with an exact message. Method: the binary and a daemon of each test's own.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Live, Recording, fixture_artifact, fixture_source, in_turn, marked_line, wait_until};
use serde_json::{Value, json};

fn line(mark: &str) -> u64 {
    marked_line("control", "control.c", mark)
}

fn stopped_at(name: &str, options: &[&str], args: &[&str]) -> Live {
    let program = fixture_artifact("control", name);
    Live::started(&format!("probes-{name}"), options, &program, args)
}

fn texts(recording: &Recording, sql: &str) -> Vec<Value> {
    let rows = recording.rows(sql);
    rows.into_iter()
        .map(|row| row.into_iter().next().expect("a column").1)
        .collect()
}

#[test]
fn options_stand_behind_the_program_too() {
    let program = fixture_artifact("control", "control_O0");
    let program = program.to_str().expect("a path");
    let live = Live::new("options");
    let report = live.ask(&["start", program, "--break", "middle", "--", "--break"]);
    live.keep(&report);
    assert_eq!(report["stop"]["function"], "middle", "{report:#}");
    live.ask(&["backtrace"]);
    live.ask(&["frame", "1"]);
    assert_eq!(live.print("argc"), "2");
    assert!(
        live.print("argv[1]").ends_with("\"--break\""),
        "{}",
        live.print("argv[1]")
    );
}

#[test]
fn a_watchpoint_tells_both_values_and_the_line() {
    for name in [
        "control_O0",
        "control_O2",
        "control_O0_fixed",
        "control_O2_fixed",
    ] {
        let live = stopped_at(name, &["--stop-on-entry"], &[]);
        live.ask(&["watch", "counter"]);
        let mut sum = 0;
        for by in 1..=10 {
            let stop = live.moved(&["continue"]);
            assert_eq!(stop["reason"], "watch", "{name}: {stop:#}");
            assert_eq!(stop["expression"], "counter", "{name}");
            assert_eq!(stop["old"], sum.to_string(), "{name}");
            sum += by;
            assert_eq!(stop["new"], sum.to_string(), "{name}");
            assert_eq!(stop["by"]["function"], "bump", "{name}: {stop:#}");
            if name.contains("O0") {
                assert_eq!(stop["by"]["line"], line("bump: add"), "{name}");
            }
        }
        let shown = live.command(&["where"]).run().text();
        assert!(shown.contains("(counter: 45 -> 55, by "), "{name}: {shown}");
        assert_eq!(live.run_to_end(), 7, "{name}");
        let seen = texts(
            &live.recording(),
            "SELECT watch_new FROM pauses WHERE reason = 'watch' ORDER BY seq LIMIT 3",
        );
        assert_eq!(seen, ["01000000", "03000000", "06000000"], "{name}");
    }
}

#[test]
fn what_the_debugger_writes_is_no_access_of_the_program() {
    let live = stopped_at("control_O0", &["--break", "bump"], &[]);
    live.ask(&["watch", "counter"]);
    live.ask(&["break", "disable", "1"]);
    live.ask(&["set", "counter", "100"]);
    let stop = live.moved(&["continue"]);
    assert_eq!(
        (&stop["old"], &stop["new"]),
        (&json!("100"), &json!("101")),
        "{stop:#}"
    );
}

#[test]
fn four_places_are_watched_and_a_fifth_is_refused() {
    let live = stopped_at("control_O0", &["--stop-on-entry"], &[]);
    for place in ["counter", "tempo", "progress[0]", "progress[1]"] {
        live.ask(&["watch", place]);
    }
    assert_eq!(
        live.refused(&["watch", "chosen"])["code"],
        "NO_WATCHPOINT_LEFT"
    );
    live.ask(&["watch", "remove", "2"]);
    live.ask(&["watch", "chosen"]);
    live.ask(&["watch", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 7);
}

#[test]
fn exceptions_are_caught_by_their_types_and_bases() {
    for name in in_turn(["throws_O0", "throws_O2"]) {
        for (pattern, wanted) in [
            (vec![], vec!["int", "Trouble"]),
            (vec!["int"], vec!["int"]),
            (vec!["Trouble"], vec!["Trouble"]),
            (vec!["std::runtime_error"], vec!["Trouble"]),
            (vec!["std::exception"], vec!["Trouble"]),
            (vec!["std::bad_alloc"], vec![]),
        ] {
            let live = stopped_at(name, &["--stop-on-entry"], &[]);
            live.ask(&[&["catch", "throw"], pattern.as_slice()].concat());
            for what in wanted {
                let stop = live.moved(&["continue"]);
                assert_eq!(stop["reason"], "throw", "{name} {pattern:?}");
                assert_eq!(stop["what"], what, "{name} {pattern:?}");
                assert_eq!(stop["unhandled"], false, "{name} {pattern:?}");
                let frames = live.ask(&["backtrace"]);
                assert_eq!(
                    frames["threads"][0]["frames"][1]["function"], "thrower",
                    "{frames:#}"
                );
            }
            assert_eq!(live.run_to_end(), 0, "{name} {pattern:?}");
        }
    }
}

#[test]
fn panics_are_caught() {
    for name in in_turn(["panics_O0", "panics_O2"]) {
        let live = stopped_at(name, &["--stop-on-entry"], &[]);
        let probe = &live.ask(&["catch", "panic"])["probes"][0];
        assert_eq!(probe["verified"], true, "{name}: {probe:#}");
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["reason"], "throw", "{name}");
        assert_eq!(stop["what"], "panic", "{name}");
        let frames = live.ask(&["backtrace"]);
        let all = frames["threads"][0]["frames"].as_array().expect("a list");
        assert!(
            all.iter().any(|frame| frame["function"] == "panics::risky"),
            "{name}: {frames:#}"
        );
        assert_eq!(live.run_to_end(), 0, "{name}");
        assert_eq!(live.output().matches("panicked true").count(), 1, "{name}");
    }
}

#[test]
fn functions_are_called() {
    for name in [
        "control_O0",
        "control_O2",
        "control_O0_fixed",
        "control_stripped",
    ] {
        let live = stopped_at(name, &["--break", "middle"], &[]);
        let reply = live.ask(&["eval", "leaf(21)"]);
        assert_eq!(reply["value"], "43", "{name}: {reply:#}");
        assert_eq!(reply["type"], "int", "{name}");
        assert_eq!(
            live.ask(&["eval", "bump(5) + leaf(1)"])["value"],
            "63",
            "{name}"
        );
        assert_eq!(live.print("counter"), "60", "{name}");
        let refused = live.refused(&["eval", "leaf()"]);
        assert_eq!(refused["message"], "leaf takes 1 argument, not 0", "{name}");
        live.ask(&["break", "disable", "--all"]);
        assert_eq!(live.run_to_end(), 7, "{name}");
        assert!(live.output().contains("middle 124\n"), "{name}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_in_exact_words() {
    let live = stopped_at("control_O0", &["--break", "middle"], &[]);
    let refused = |words: &[&str]| live.refused(words);
    let nowhere = refused(&["break", "control.c:9999"]);
    assert_eq!(nowhere["code"], "INVALID_LINE");
    let source = std::fs::read_to_string(fixture_source("control").join("control.c"));
    let source = source.expect("a source file");
    let valid = 1 + source
        .lines()
        .collect::<Vec<_>>()
        .iter()
        .rposition(|line| *line == "}")
        .expect("an end");
    assert_eq!(
        nowhere["message"],
        format!("No code at control.c:9999. Valid lines: {valid}")
    );
    assert_eq!(nowhere["details"]["valid_lines"], json!([valid]));
    assert_eq!(refused(&["break", "nowhere.c:3"])["code"], "INVALID_FILE");
    assert_eq!(refused(&["break", "nobody"])["code"], "INVALID_FUNCTION");
    let condition = refused(&["break", "bump", "--condition", "by >"]);
    assert_eq!(condition["code"], "INVALID_CONDITION");
    assert_eq!(condition["details"]["position"], 4, "{condition:#}");
    assert_eq!(
        condition["message"],
        "the condition \"by >\": expected an expression at position 4"
    );
    let condition = refused(&["break", "bump", "--condition", "by.map(x => )"]);
    assert_eq!(condition["code"], "INVALID_CONDITION");
    let message = condition["message"].as_str().expect("text");
    assert!(
        message.contains("(JavaScript, line 1, column "),
        "{message}"
    );
    let shown = live.command(&["print", "counter +"]).run().errors();
    assert!(
        shown.starts_with(
            "error: the expression \"counter +\": expected an expression at position 9\n"
        ),
        "{shown}"
    );
    assert_eq!(
        refused(&["logpoint", "bump", "by={by"])["code"],
        "INVALID_CONDITION"
    );
    assert_eq!(
        refused(&["break", "remove", "99"])["code"],
        "BREAKPOINT_NOT_FOUND"
    );
    let unknown = refused(&["print", "conter"]);
    assert_eq!(unknown["code"], "EVAL_FAILED");
    assert_eq!(refused(&["thread", "1"])["code"], "NO_THREAD");
    assert_eq!(refused(&["set", "nope", "1"])["code"], "EVAL_FAILED");
    assert_eq!(live.run_to_end(), 7);
    assert_eq!(refused(&["next"])["code"], "NOT_RUNNING");
    let idle = Live::new("no-session");
    let ended = idle.command(&["next"]).run();
    assert_ne!(ended.status.as_shell_code(), 0);
}

#[test]
fn a_local_is_not_written_while_the_program_runs() {
    let live = stopped_at("control_O0", &[], &["spinning"]);
    let refused = live.refused(&["set", "watched", "1"]);
    assert_eq!(
        refused["message"], "Local variable writes require a paused breakpoint.",
        "{refused:#}"
    );
    live.ask(&["pause"]);
    assert_eq!(live.session()["status"], "stopped");
    live.ask(&["stop"]);
}

#[test]
fn the_same_breakpoint_is_one() {
    let live = stopped_at("control_O0", &["--stop-on-entry"], &[]);
    let first = live.ask(&["break", "bump"])["probes"][0].take();
    assert_eq!(first["existed"], false);
    let add = format!("control.c:{}", line("bump: add"));
    let again = live.ask(&["break", &add, "--condition", "by == 9"])["probes"][0].take();
    assert_eq!(again["id"], first["id"]);
    assert_eq!(again["existed"], true);
    assert_eq!(
        again["message"],
        "Breakpoint already exists at this location"
    );
    let told = live
        .command(&["break", "bump", "--condition", "by == 9"])
        .run();
    let changed = "Breakpoint 1 exists already; its condition is now by == 9";
    assert!(told.text().contains(changed), "{}", told.text());
    live.moved(&["continue"]);
    assert_eq!(live.print("by"), "9");
    assert_eq!(live.run_to_end(), 7);
}

#[test]
fn a_condition_that_fails_is_an_event_and_stops_nothing() {
    let live = stopped_at("control_O0", &["--stop-on-entry"], &[]);
    live.ask(&["break", "bump", "--condition", "1 / (by - by) > 3"]);
    assert_eq!(live.run_to_end(), 7);
    // It failed each time, which the list shows.
    let listed = live.ask(&["break", "list"]);
    assert_eq!(
        listed["probes"][0]["message"],
        "its condition failed 10 times: division by zero"
    );
    let listed = live.command(&["break", "list"]).run().text();
    assert!(
        listed.contains("1: its condition failed 10 times: division by zero"),
        "{listed}"
    );
    let recording = live.recording();
    assert_eq!(
        recording.number("SELECT count(*) FROM events WHERE kind = 'condition_error'"),
        10
    );
    assert_eq!(
        recording.number("SELECT count(*) FROM pauses WHERE reason = 'breakpoint'"),
        0
    );
}

/// While the session lasts, its recording shows the actions, in their order.
#[test]
fn the_live_recording_knows_what_was_done() {
    let live = stopped_at("control_O0", &["--break", "middle"], &[]);
    live.ask(&["logpoint", "leaf", "x={x}"]);
    live.ask(&["set", "tempo", "90"]);
    live.moved(&["next"]);
    let recording = live.recording();
    let sql = "SELECT kind, text FROM events WHERE kind IN ('pause', 'resume', 'write', 'logpoint') ORDER BY seq";
    let file = fixture_source("control").join("control.c");
    let at = |mark: &str| format!("{}:{}", file.display(), line(mark));
    let wanted = [
        json!({"kind": "pause", "text": "entry in _start"}),
        json!({"kind": "resume", "text": "continue"}),
        json!({"kind": "pause", "text": format!("breakpoint 1 in middle at {}", at("middle: call"))}),
        json!({"kind": "write", "text": "tempo"}),
        json!({"kind": "resume", "text": "next"}),
        json!({"kind": "logpoint", "text": "x=41"}),
        json!({"kind": "pause", "text": format!("step in middle at {}", at("middle: after"))}),
    ];
    let told = || -> Vec<Value> {
        let rows = recording.rows(sql);
        rows.into_iter().map(Value::from).collect()
    };
    // Readers are a moment behind.
    wait_until("the last pause to be recorded", || {
        (told().len() == wanted.len()).then_some(())
    });
    assert_eq!(told(), wanted);
    live.ask(&["step", "--timeout", "60"]);
    live.ask(&["continue", "--no-wait"]);
    wait_until("the program's end to be recorded", || {
        let end = "SELECT count(*) FROM events WHERE kind = 'process_exit'";
        (recording.number(end) == 1).then_some(())
    });
    let resumes = texts(
        &recording,
        "SELECT text FROM events WHERE kind = 'resume' ORDER BY seq",
    );
    assert_eq!(resumes, ["continue", "next", "step", "continue"]);
    // Functions with a breakpoint, a logpoint or a step in them are recorded like others.
    for (function, calls) in [("middle", 1), ("leaf", 2)] {
        assert_eq!(recording.calls_of(function), calls, "{function}");
    }
    let write = recording.row("SELECT target, old, new FROM writes");
    assert_eq!(
        (&write["target"], &write["old"], &write["new"]),
        (&json!("tempo"), &json!("78000000"), &json!("5a000000"))
    );
    let pauses = recording
        .rows("SELECT reason, function, line FROM pauses WHERE reason <> 'entry' ORDER BY seq");
    let pauses: Vec<_> = pauses.into_iter().map(Value::from).collect();
    assert_eq!(
        pauses,
        [
            json!({"reason": "breakpoint", "function": "middle", "line": line("middle: call")}),
            json!({"reason": "step", "function": "middle", "line": line("middle: after")}),
            json!({"reason": "step", "function": "middle", "line": line("middle: last")}),
        ]
    );
}

/// Conditions that the types at the place never allow are refused when they are set.
#[test]
fn conditions_that_can_never_be_right_are_refused() {
    let live = Live::started(
        "never_right",
        &["--stop-on-entry"],
        &fixture_artifact("control", "control_O0"),
        &[],
    );
    for condition in [
        "by.x == 3",
        "by->x == 3",
        "*by == 3",
        "(Nope*)by == 0",
        "$raxx == 1",
        "args[9] == 1",
        "by = 3",
        "counter > 0 && by.x",
    ] {
        let refused = live.refused(&["break", "bump", "--condition", condition]);
        let code = refused["code"].as_str().expect("text");
        assert!(
            ["INVALID_CONDITION", "EVAL_FAILED"].contains(&code),
            "{condition}: {refused:#}"
        );
    }
    for condition in [
        "by == 3",
        "$rax != 0",
        "args[0] > 0",
        "*(int*)&by == 3",
        "&by != 0",
    ] {
        live.ask(&["break", "bump", "--condition", condition]);
    }
}
