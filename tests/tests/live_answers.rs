//! Goal: live control keeps small promises of the documentation: what is removed is gone, messages and output are in one order,
//! options of `record` are those of sessions. Method: the fixtures `answers` and `control`, a daemon of each test's own.

use std::path::Path;
use std::time::{Duration, Instant};

use e2e::{Live, Recording, fixture_artifact, is_alive, marked_line, wait_until};
use serde_json::{Value, json};

fn started(name: &str, options: &[&str], args: &[&str]) -> Live {
    let program = fixture_artifact("answers", "answers");
    Live::started(&format!("answers-{name}"), options, &program, args)
}

fn messages(recording: &Recording) -> Vec<Value> {
    let rows = recording.rows("SELECT message FROM logpoints ORDER BY seq");
    rows.iter().map(|row| row["message"].clone()).collect()
}

#[test]
fn logpoints_are_removed_by_number_and_all_at_once() {
    let live = started("removed", &["--stop-on-entry"], &[]);
    let first = live.ask(&["logpoint", "serve", "one"]);
    let first = &first["probes"][0];
    assert_eq!(first["id"], 1, "{first:#}");
    assert_eq!(first["location"], "serve", "{first:#}");
    let place = &first["places"][0];
    assert!(
        place["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("/answers.c")),
        "{place:#}"
    );
    assert!(place["line"].as_u64().is_some(), "{place:#}");
    let address = place["address"].as_str().expect("an address");
    assert!(address.starts_with("0x"), "{address}");
    let last = marked_line("answers", "answers.c", "serve: last");
    let last = format!("answers.c:{last}");
    live.ask(&["logpoint", &last, "two {times}"]);
    let removed = live.ask(&["logpoint", "remove", "1"]);
    assert_eq!(removed["probes"][0]["id"], 1, "{removed:#}");
    let left = live.ask(&["logpoint", "list"]);
    assert_eq!(left["probes"].as_array().map(Vec::len), Some(1), "{left:#}");
    live.ask(&["break", "serve", "--hit-count", "3"]);
    live.moved(&["continue"]);
    live.ask(&["logpoint", "remove", "--all"]);
    assert_eq!(live.ask(&["logpoint", "list"])["probes"], json!([]));
    assert_eq!(
        live.refused(&["logpoint", "remove", "2"])["code"],
        "BREAKPOINT_NOT_FOUND"
    );
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(messages(&live.recording()), ["two 0", "two 1"]);
}

#[test]
fn a_message_may_name_members_of_arguments() {
    let live = started("members", &["--stop-on-entry"], &[]);
    live.ask(&[
        "logpoint",
        "serve",
        "{args[0].number} at {args[0].rate}, {args[1]}",
    ]);
    assert_eq!(live.run_to_end(), 0);
    let expected: Vec<String> = (0..5).map(|i| format!("{i} at {i}.5, {i}")).collect();
    assert_eq!(messages(&live.recording()), expected);
}

#[test]
fn messages_and_output_are_in_one_order() {
    let live = started("order", &["--stop-on-entry"], &[]);
    live.ask(&["logpoint", "serve", "serves {times}"]);
    assert_eq!(live.run_to_end(), 0);
    let rows = live.recording().rows(
        "SELECT seq, message AS said FROM logpoints UNION ALL SELECT seq, text FROM output ORDER BY seq",
    );
    let said: Vec<Value> = rows.iter().map(|row| row["said"].clone()).collect();
    let expected: Vec<String> = (0..5)
        .flat_map(|i| [format!("serves {i}"), format!("said {i}\n")])
        .collect();
    assert_eq!(said, expected);
}

#[test]
fn numbers_and_pointers_are_written_by_their_types() {
    let live = started("types", &["--break", "serve"], &[]);
    let address = |name: &str| {
        let text = live.print(&format!("&{name}"));
        let word = text.split_whitespace().find(|word| word.starts_with("0x"));
        word.expect("an address").to_owned()
    };
    let (whole, kept) = (address("whole"), address("kept"));
    let answer = live.request(&json!({"id": 1, "command": "write", "args": {"targets": [
        {"address": whole, "type": "i32", "value": -7},
        {"address": kept, "type": "pointer", "value": "0x1234"},
        {"address": kept, "type": "pointer", "value": 0},
        {"address": kept, "type": "pointer", "value": "&whole"},
    ]}}));
    assert_eq!(answer["success"], true, "{answer:#}");
    assert_eq!(live.print("whole"), "-7");
    assert!(
        live.print("kept").starts_with(&whole),
        "{}",
        live.print("kept")
    );
}

#[test]
fn a_bit_field_is_not_watched_and_the_reason_is_told() {
    let live = started("bits", &["--break", "serve"], &[]);
    let refused = live.refused(&["watch", "device.ready"]);
    assert_eq!(
        refused["message"], "device.ready is a bit field, and only whole bytes have an address",
        "{refused:#}"
    );
}

#[test]
fn stop_ends_a_program_that_runs_and_the_daemon() {
    let live = started("stop", &[], &["wait"]);
    let session = live.session();
    assert_eq!(session["status"], "running", "{session:#}");
    let pid = session["pid"].as_i64().expect("a number") as i32;
    let daemon = live.daemon().expect("a daemon");
    let ended = live.ask(&["stop"]);
    assert_eq!(ended["exit"]["signal"], 9, "{ended:#}");
    assert!(!is_alive(pid));
    live.wait_for_end_of(daemon);
}

/// As for `record`; the manifest and the events show it.
#[test]
fn sessions_are_recorded_as_their_options_say() {
    let options = [
        "--snapshot",
        "never",
        "--on-full",
        "drop",
        "--keep-log",
        "--break",
        "serve",
    ];
    let live = started("options", &options, &[]);
    let recording = live.recording();
    let ended = live.command(&["stop", "--portable"]).run();
    assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
    assert_eq!(
        recording.number("SELECT count(*) FROM events WHERE kind = 'snapshot'"),
        0
    );
    let info = recording.command("info", &["--json"]).result();
    assert_eq!(info["settings"]["on_full"], "drop", "{info:#}");
    assert_eq!(info["settings"]["keep_log"], true, "{info:#}");
    assert!(
        recording.path().join("modules").is_dir(),
        "it has copies of its modules"
    );
}

#[test]
fn a_type_that_stands_before_an_expression_is_met_with_a_cast() {
    let live = started("cast", &["--break", "serve"], &[]);
    let refused = live
        .command(&["print", "--type", "unsigned", "char", "whole"])
        .run();
    assert!(
        refused
            .errors()
            .ends_with("cast it: print \"(unsigned char)whole\"\n"),
        "{}",
        refused.errors()
    );
    let shown = live
        .command(&["print", "--type", "(unsigned char)whole"])
        .run();
    assert_eq!(shown.text(), "$1 = (unsigned char) 1 '\\001'\n");
}

/// It reserves terabytes, of which only the present pages are read: on an idle machine it starts in a quarter of a second.
#[test]
fn a_program_with_address_sanitizer_starts_and_has_a_past() {
    let program = fixture_artifact("answers", "answers_asan");
    let asked = Instant::now();
    let live = Live::started("answers-asan", &["--break", "serve"], &program, &[]);
    assert!(
        asked.elapsed() < Duration::from_secs(30),
        "{:?}",
        asked.elapsed()
    );
    assert_eq!(live.print("which->number"), "0");
    live.moved(&["continue"]);
    let lines = ["--cmd", "continue back", "--cmd", "print device.number"];
    let past = live.command(&[&["repl"], &lines[..]].concat()).run();
    assert!(
        past.text().ends_with("$2 = 0\n"),
        "{}{}",
        past.text(),
        past.errors()
    );
    live.ask(&["stop"]);
}

/// Displays alone do not stop a program: it may have ended when its state is requested.
#[test]
fn a_program_that_nothing_stops_is_started_again() {
    let live = started("restart", &["--display", "whole"], &[]);
    wait_until("the program to end", || {
        (live.session()["status"] == "ended").then_some(())
    });
    let again = live.ask(&["restart"]);
    assert_ne!(again["status"], "stopped", "{again:#}");
    wait_until("the program to end", || {
        (live.session()["status"] == "ended").then_some(())
    });
    assert_eq!(live.session()["exit"]["code"], 0);
    assert_eq!(live.ask(&["display"])["displays"][0]["expression"], "whole");
}

fn control(name: &str, options: &[&str], args: &[&str]) -> Live {
    let program = fixture_artifact("control", "control_O0");
    Live::started(
        &format!("answers-{name}"),
        options,
        Path::new(&program),
        args,
    )
}

#[test]
fn until_counts_from_the_frame_that_is_looked_at() {
    let last = marked_line("control", "control.c", "factorial: last");
    let at = format!("control.c:{last}");
    for (up, n) in [(0, "2"), (1, "3"), (2, "4")] {
        let live = control("until", &["--stop-on-entry"], &[]);
        live.ask(&["break", "factorial", "--condition", "n == 1"]);
        live.moved(&["continue"]);
        // The frame of n == 1 returns without getting there.
        live.ask(&["finish"]);
        for _ in 0..up {
            live.ask(&["up"]);
        }
        let stop = live.moved(&["until", &at]);
        assert_eq!(stop["line"], last, "{stop:#}");
        assert_eq!(live.print("n"), n, "{up} up");
    }
}

/// A function that is called for `eval` takes some time; a client that waits for a stop meanwhile gets it when the thread
/// has stopped again.
#[test]
fn who_waits_while_a_function_is_called_is_told_when_it_has_returned() {
    let live = control("called", &["--break", "bump"], &[]);
    let before = live.session()["stop"].clone();
    let called = || {
        let called = live.command(&["eval", "spinning()"]).start();
        wait_until("the call to begin", || {
            (live.session()["status"] == "running").then_some(())
        });
        called
    };
    let reply = |text: &str| {
        let response: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(response["success"], true, "{response:#}");
        response["result"].clone()
    };
    let eval = called();
    let waiting = live.command(&["await", "--json"]).start();
    live.ask(&["set", "tempo", "90"]);
    assert_eq!(eval.finish().status.as_shell_code(), 0);
    let told = reply(&waiting.finish().text());
    assert_eq!(told["stop"], before, "{told:#}");
    // Who pauses the program abandons the call.
    live.ask(&["set", "tempo", "120"]);
    let eval = called();
    live.ask(&["pause"]);
    let ended = eval.finish();
    assert_ne!(ended.status.as_shell_code(), 0, "{}", ended.text());
    assert!(ended.errors().contains("abandoned"), "{}", ended.errors());
    assert_eq!(live.session()["stop"], before);
    assert_eq!(live.print("by"), "1", "its variables are there again");
}

/// `look` of a list of three million elements, and of vectors of garbage, with a daemon of this configuration.
fn looking(name: &str, configuration: &str) -> Live {
    let live = Live::new(name);
    live.configure(configuration);
    let program = fixture_artifact("endless", "endless");
    live.start(&["--break", "look"], &program, &[]);
    // The command waits longer for its answer than the daemon for its own.
    live.configure("");
    live
}

/// The session is the same as before an endless request. On a busy machine a short question may take too long, too.
fn assert_answers(live: &Live) {
    for (verb, question, value) in [("print", "longest[3]", "8"), ("eval", "sum(1, 2)", "3")] {
        let answer = wait_until(question, || {
            let (_, mut response) = live.response(&[verb, question]);
            (response["success"] == true).then(|| response["result"]["value"].take())
        });
        assert_eq!(answer, value, "{question}");
    }
    let reply = live.ask(&["continue"]);
    assert_eq!(reply["exit"]["code"], 9, "{reply:#}");
    assert_eq!(live.output(), "6\n");
}

#[test]
fn a_question_with_too_much_work_is_given_up_and_the_session_answers() {
    let live = looking("endless-work", "");
    let refused = live.refused(&["print", "longest[2000000] + 1"]);
    assert_eq!(refused["code"], "EVAL_FAILED", "{refused:#}");
    assert_eq!(refused["message"], "it has too many elements to look at");
    let refused = live.refused(&["print", "ring[2000000]"]);
    let why = refused["message"].as_str().expect("text");
    assert!(why.contains("leads back to the node"), "{refused:#}");
    let locals = live.command(&["locals", "--full"]).run().text();
    assert!(
        locals.contains("the rest is left out: its text has more than"),
        "{locals}"
    );
    assert_answers(&live);
}

#[test]
fn a_question_that_takes_too_long_is_given_up_and_the_session_answers() {
    let live = looking("endless-time", "[timeouts]\nrequest_secs = 0.25\n");
    for verb in ["print", "eval"] {
        let refused = live.refused(&[verb, "longest[1000000] + 1"]);
        let code = refused["code"].as_str().expect("a code");
        assert!(
            ["EVAL_FAILED", "TIMEOUT"].contains(&code),
            "{verb}: {refused:#}"
        );
        let why = refused["message"].as_str().expect("text");
        // It may end while it reads the element.
        assert!(
            why.ends_with("the question took longer than 200ms and was given up"),
            "{verb}: {why}"
        );
    }
    assert_answers(&live);
}
