//! Goal: with the same options, a session captures with calls what `record` captures, and with logpoints registers and stack: the
//! past shows there what the live program showed. Method: messages that print the registers and variables, against the recording.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Live, Recording, fixture_artifact, in_turn, share, wait_until};

fn texts(recording: &Recording, sql: &str) -> Vec<String> {
    let rows = recording.rows(sql);
    let text = |value: &serde_json::Value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    rows.iter().map(|row| text(&row["value"])).collect()
}

fn started(artifact: &str, options: &[&str]) -> Live {
    let program = fixture_artifact("outer", artifact);
    Live::started(&format!("captures-{artifact}"), options, &program, &[])
}

#[test]
fn logpoints_keep_registers_and_stack() {
    for (artifact, path, outermost) in in_turn([
        ("outer_O0", "", "main"),
        ("outer_O2", "", "main"),
        ("outer_rust", "outer::", "outer::main"),
        ("outer_rust_O2", "outer::", "outer::main"),
    ]) {
        let options = ["--stop-on-entry", "--regs", "--stack", "4096"];
        let live = started(artifact, &options);
        let message = "{to} {$rsp} {$rbp} {$r12} {$rip}";
        let place = format!("{path}change");
        live.ask(&["logpoint", &place, message]);
        // The program itself decides whether there is anything to report.
        let more = format!("{message} more");
        live.ask(&["logpoint", &place, &more, "--condition", "to > 20"]);
        assert_eq!(live.run_to_end(), 0, "{artifact}");
        let recording = live.recording();
        let logged = "FROM logpoints ORDER BY seq";
        let messages = texts(&recording, &format!("SELECT message AS value {logged}"));
        assert_eq!(messages.len(), 12 + 9, "{artifact}: {messages:?}");
        let columns = [
            "value(seq, 'to')",
            "value(seq, '$rsp')",
            "value(seq, '$rbp')",
            "value(seq, '$r12')",
            "value(seq, '$rip')",
        ];
        for (at, column) in columns.into_iter().enumerate() {
            let seen = texts(&recording, &format!("SELECT {column} AS value {logged}"));
            let part = |message: &String| message.split(' ').nth(at).unwrap_or("?").to_owned();
            let told: Vec<String> = messages.iter().map(part).collect();
            assert_eq!(seen, told, "{artifact}: {column}");
        }
        // The exit of the statement is known too.
        let last = recording.number("SELECT max(seq) FROM logpoints");
        let frames = format!("SELECT function AS value FROM backtrace({last})");
        let frames = texts(&recording, &frames);
        let expected = ["change", "pass", "work"].map(|name| format!("{path}{name}"));
        assert_eq!(frames[..3], expected, "{artifact}");
        assert!(frames.iter().any(|name| name == outermost), "{frames:?}");
    }
}

#[test]
fn sessions_keep_watched_values() {
    for artifact in in_turn(["outer_O0", "outer_O2"]) {
        let live = started(artifact, &["--watch", "work::total", "--break", "pass"]);
        live.ask(&["break", "disable", "--all"]);
        assert_eq!(live.run_to_end(), 0, "{artifact}");
        let history = "SELECT new AS value FROM history('work::total') ORDER BY seq";
        let expected = ["1", "11", "22", "2", "12", "24", "3", "13", "26"];
        assert_eq!(texts(&live.recording(), history), expected, "{artifact}");
    }
}

/// Other threads continue after each stop, and change neighbouring memory.
#[test]
fn stops_of_one_thread_among_others_know_all_memory() {
    for artifact in in_turn(["control_O0", "control_O2"]) {
        let program = fixture_artifact("control", artifact);
        let options = ["--break", "worker_step"];
        let live = Live::started(
            &format!("held-{artifact}"),
            &options,
            &program,
            &["threads"],
        );
        wait_until("the second thread", || {
            (live.session()["stopped_threads"] == 2).then_some(())
        });
        // The first thread always waits for both.
        live.ask(&["note", "both stopped"]);
        // The stop that has not been shown yet comes first.
        assert_eq!(live.moved(&["continue"])["function"], "worker_step");
        assert_eq!(live.run_to_end(), 0, "{artifact}");
        let recording = live.recording();
        let stops = "FROM pauses WHERE reason = 'breakpoint' ORDER BY seq";
        let known = texts(
            &recording,
            &format!("SELECT value(seq, 'progress') AS value {stops}"),
        );
        assert_eq!(known, ["{0, 0}", "{0, 0}"], "{artifact}");
        let why = "SELECT aux AS value FROM events WHERE kind = 'snapshot' ORDER BY seq";
        let why = texts(&recording, why);
        assert_eq!(why, ["start", "pause", "held", "held"], "{artifact}");
        // Later changes are not known if other threads ran.
        let noted = "SELECT value(seq, 'progress') AS value FROM notes";
        assert_eq!(texts(&recording, noted), ["null"], "{artifact}");
    }
}

/// A register's value at a call is not evidence once the user has set the register.
#[test]
fn what_was_set_in_a_caller_is_not_what_it_was_when_the_call_was_made() {
    let program = fixture_artifact("preserved", "preserved_O2");
    let options = ["--regs", "--break", "leaf"];
    let live = Live::started("preserved", &options, &program, &[]);
    live.ask(&["frame", "2"]);
    assert_eq!(live.print("x"), "7");
    live.ask(&["set", "x", "1000"]);
    for _ in 0..3 {
        live.ask(&["continue"]);
    }
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 0);
    let recording = live.recording();
    let written = recording.number("SELECT seq FROM writes");
    // When `middle` has returned, its parameter means the value that was passed.
    let count = |condition: String| {
        let of_frame = |frame: u32| {
            recording.number(&format!(
                "SELECT count(*) FROM (SELECT seq, frame_value(seq, {frame}, 'x') AS x FROM events \
                 WHERE kind <> 'leave' OR function <> 'middle') WHERE {condition}"
            ))
        };
        (0..3).map(of_frame).sum::<i64>()
    };
    // At the entries of `inner` and `leaf`, further out than what they show themselves.
    assert!(count(format!("seq < {written} AND x = '7'")) >= 2);
    assert_eq!(count(format!("seq >= {written} AND x = '7'")), 0);
    assert!(count(format!("seq >= {written} AND x = '1000'")) >= 4);
}

/// A session that copies memory at regular times makes one more copy at the program's exit.
#[test]
fn a_session_copies_memory_at_the_exit() {
    let live = started(
        "outer_O0",
        &["--stop-on-entry", "--snapshot", "every=1000000events"],
    );
    assert_eq!(live.run_to_end(), 0);
    let sql = "SELECT count(*) FROM events WHERE kind = 'snapshot' AND aux = 'exit'";
    assert_eq!(live.recording().number(sql), 1);
}

/// The stack of a stop is known there. Later calls have their frames in the same place, and calls of unrecorded functions reveal
/// nothing about it.
#[test]
fn frames_that_are_not_recorded_have_no_arguments_of_older_stacks() {
    let live = started("outer_O0", &["--break", "change", "-x", "pass"]);
    for _ in 0..3 {
        live.moved(&["continue"]);
    }
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 0);
    let recording = live.recording();
    assert_eq!(recording.calls_of("change"), 12);
    assert_eq!(recording.calls_of("pass"), 0);
    // At the stops it is the value that was passed.
    let stops = "SELECT count(*) FROM events WHERE kind = 'pause' AND frame_value(seq, 1, 'to') IN ('11', '21')";
    assert_eq!(recording.number(stops), 4);
    let entries = "SELECT count(*) FROM calls WHERE function = 'change' AND frame_value(start_seq, 1, 'to') IS NOT NULL";
    assert_eq!(recording.number(entries), 0);
    for row in recording.rows("SELECT start_seq FROM calls WHERE function = 'change'") {
        let goto = format!("goto {}", row["start_seq"]);
        let shown = recording.prompt(&[&goto, "backtrace --limit 2"]).text();
        assert!(shown.contains(" #1   pass (what=<"), "{shown}");
        assert!(!shown.contains("stale"), "{shown}");
    }
}

/// A thread that waits for a copy of memory does so in the recorder's code, and the copying thread waits for the tracer. When it is
/// paused, it is nevertheless shown in the program.
#[test]
fn threads_that_wait_for_copies_are_paused_where_the_program_is() {
    let live = Live::new("paused-copies");
    let words = live.scratch.join("words");
    let words = words.to_str().expect("paths of tests are text");
    let options = ["--stop-on-entry", "--snapshot", "every=1events"];
    let program = fixture_artifact("steady", "steady");
    live.start(&options, &program, &[words, "0"]);
    for _ in 0..share(20) {
        live.ask(&["continue", "--no-wait"]);
        let copies = "SELECT count(*) AS n FROM events WHERE kind = 'snapshot'";
        let before = live.recording().number(copies);
        wait_until("copies of memory", || {
            (live.recording().number(copies) > before + 2).then_some(())
        });
        let paused = live.ask(&["pause"]);
        assert!(paused["stop"]["function"].is_string(), "{paused:#}");
        let stepped = live.moved(&["step"]);
        assert!(stepped["function"].is_string(), "{stepped:#}");
    }
    live.ask(&["stop"]);
}
