//! Goal: recordings and the past of live sessions are accessible from the shell and over the socket as well as at the prompt.
//! Method: verbs of the command line and requests on the socket, to a daemon of each test's own.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use e2e::{Hindsight, Live, Program, Status, fixture_artifact};
use serde_json::{Value, json};

fn program() -> std::path::PathBuf {
    fixture_artifact("control", "control_O0")
}

/// A daemon that has one session: a recording of a program that has ended.
fn opened(name: &str) -> (Live, Value) {
    let live = Live::new(name);
    live.start(&["--break", "bump"], &program(), &[]);
    live.ask(&["note", "at the first"]);
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 7);
    let recording = live.session()["recording"]
        .as_str()
        .expect("a path")
        .to_owned();
    live.ask(&["stop"]);
    let report = live.ask(&["open", &recording]);
    (live, report)
}

fn text(live: &Live, words: &[&str]) -> String {
    text_of(live.command(words))
}

/// The output of a command, which succeeds.
fn text_of(command: Program) -> String {
    let ended = command.run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    ended.text()
}

#[test]
fn a_recording_is_gone_through_from_the_shell() {
    let (live, report) = opened("past-shell");
    assert_eq!(report["status"], "recorded", "{report:#}");
    let at = live.moved(&["goto", "@at", "the", "first"]);
    assert!(
        at["what"]
            .as_str()
            .is_some_and(|what| what.contains("note")),
        "{at:#}"
    );
    let seq = live.moved(&["step"])["seq"].as_u64();
    let stop = live.moved(&["step-back"]);
    assert!(stop["seq"].as_u64() < seq, "{stop:#}");
    live.ask(&["break", "bump"]);
    live.moved(&["goto", "first"]);
    live.moved(&["continue"]);
    live.moved(&["continue"]);
    assert!(text(&live, &["args"]).contains("by   | int  |"));
    assert!(text(&live, &["calls"]).contains("bump"));
    assert!(text(&live, &["backtrace"]).contains("main"));
    live.moved(&["reverse-finish"]);
    live.moved(&["next-back"]);
    live.moved(&["reverse-continue"]);
    let history = live.ask(&["history", "counter"]);
    assert!(
        history["changes"]
            .as_array()
            .is_some_and(|all| !all.is_empty()),
        "{history:#}"
    );
    assert!(text(&live, &["last-write", "counter"]).contains("counter"));
    assert!(text(&live, &["notes"]).contains("at the first"));
    live.ask(&["note", "again"]);
    assert!(text(&live, &["notes"]).contains("again"));
    assert_eq!(live.ask(&["watch", "counter"])["expression"], "counter");
    assert!(text(&live, &["watch", "list"]).contains("counter"));
    assert_eq!(
        text(&live, &["break", "remove", "--all"]),
        "1 breakpoint removed\n"
    );
    for words in [
        &["set", "counter", "1"][..],
        &["pause"],
        &["stop"],
        &["memory", "write", "&counter", "00"],
    ] {
        let refused = live.refused(words);
        assert_eq!(refused["code"], "NOT_ALLOWED", "{words:?}");
    }
    assert!(text(&live, &["status"]).contains("the recording "));
    assert!(text(&live, &["close"]).contains("is closed"));
    assert_eq!(live.refused(&["where"])["code"], "NO_SESSION");
}

#[test]
fn a_name_that_is_no_recording_is_told() {
    let live = Live::new("past-none");
    let ended = live.command(&["open", "nothing"]).run();
    assert_eq!(ended.status, Status::Code(2), "{}", ended.errors());
    assert!(ended.errors().contains("nothing"), "{}", ended.errors());
}

#[test]
fn the_end_of_a_recording_says_how_the_program_ended() {
    let (live, _) = opened("past-end");
    let last = live.ask(&["goto", "last"]);
    assert_eq!(last["exit"]["code"], 7, "{last:#}");
    assert!(text(&live, &["goto", "last"]).contains("the program has ended with exit code 7"));
    let first = live.ask(&["goto", "first"]);
    assert!(first["exit"].is_null(), "{first:#}");
    let killed = Live::new("past-killed");
    let program = Program::new(
        fixture_artifact("crashes", "crashes"),
        killed.scratch.path(),
    );
    let (_, recording) = Hindsight::record(&killed.scratch, &[], &program.args(["segv"]));
    killed.ask(&["open", recording.path().to_str().expect("a path of text")]);
    let last = killed.ask(&["goto", "last"]);
    assert_eq!(last["exit"]["signal"], 11, "{last:#}");
    assert!(text(&killed, &["goto", "last"]).contains("the program was killed by SIGSEGV"));
}

/// The verbs' names on the socket are those of the command line, with underscores or hyphens.
#[test]
fn a_recording_is_gone_through_over_the_socket() {
    let (live, _) = opened("past-socket");
    let ask = |command: &str, args: Value| {
        let answer = live.request(&json!({"id": 1, "command": command, "args": args}));
        assert_eq!(answer["success"], true, "{command}: {answer:#}");
        answer["result"].clone()
    };
    let last = ask("goto", json!({"to": "last"}));
    let before = ask("step_back", json!({"count": 2}));
    assert_eq!(
        before["stop"]["seq"].as_u64().map(|seq| seq + 2),
        last["stop"]["seq"].as_u64()
    );
    assert_eq!(ask("step-back", json!({}))["status"], "stopped");
    assert_eq!(ask("print", json!({"expression": "1 + 1"}))["value"], "2");
    assert!(ask("history", json!({"expression": "counter"}))["known_at"].as_u64() > Some(0));
    let position = ask("position", json!({}));
    assert_eq!(position["when"], "recorded", "{position:#}");
    let names = ask("names", json!({"of": "functions"}));
    let names = names["names"].as_array().expect("names").clone();
    assert!(names.contains(&json!("bump")), "{names:#?}");
}

/// From the stop backwards, and forwards again; the program has not moved.
#[test]
fn the_past_of_a_program_is_reached_and_left_over_the_socket() {
    let live = Live::started("past-live", &["--break", "leaf"], &program(), &[]);
    let request = |command: &str, args: Value| {
        live.request(&json!({"id": 1, "command": command, "args": args}))
    };
    let ask = |command: &str, args: Value| {
        let answer = request(command, args);
        assert_eq!(answer["success"], true, "{command}: {answer:#}");
        answer["result"].clone()
    };
    let before = live.session()["stop"].clone();
    // A search in the past does not move.
    assert_eq!(ask("calls", json!({}))["calls"][0]["function"], "main");
    assert_eq!(ask("position", json!({}))["when"], "now");
    let stop = ask("goto", json!({"to": "last"}))["stop"].clone();
    assert_eq!(ask("print", json!({"expression": "x"}))["value"], "20");
    let back = ask("next_back", json!({}));
    assert!(
        back["stop"]["seq"].as_u64() < stop["seq"].as_u64(),
        "{back:#}"
    );
    assert_eq!(ask("position", json!({}))["when"], "past");
    assert_eq!(live.session()["past"], back["stop"]["seq"]);
    let refused = request("set", json!({"target": "counter", "value": "3"}));
    assert_eq!(refused["error"]["code"], "NOT_ALLOWED", "{refused:#}");
    assert_eq!(refused["error"]["hint"], "go back first: goto live");
    let end = request("goto", json!({"to": "99999"}));
    let hint = end["error"]["hint"].as_str().expect("a hint");
    assert!(
        hint.ends_with("to the program as it is now: goto live"),
        "{hint}"
    );
    let now = ask("goto", json!({"to": "live"}));
    assert_eq!(now["stop"]["number"], before["number"], "{now:#}");
    assert_eq!(live.print("x"), "20");
    assert_eq!(live.session()["stop"], before);
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 7);
    assert_eq!(
        live.moved(&["step-back"])["reason"],
        "event",
        "also when it has ended"
    );
}

/// Who wants the program to end, or to be left alone, does not have to return to the present first.
#[test]
fn a_session_ends_from_the_past_as_from_the_present() {
    for verb in ["stop", "detach"] {
        let name = format!("past-{verb}");
        let live = Live::started(&name, &["--break", "leaf"], &program(), &[]);
        live.moved(&["step-back"]);
        assert_eq!(live.session()["status"], "stopped");
        let ended = live.ask(&[verb]);
        let expected = if verb == "stop" { "SIGKILL" } else { "" };
        assert!(
            ended["exit"].to_string().contains(expected),
            "{verb}: {ended:#}"
        );
        assert!(ended["calls"].as_u64() > Some(0), "{ended:#}");
    }
}

#[test]
fn the_past_of_a_program_that_runs_is_refused() {
    let live = Live::started("past-runs", &[], &program(), &["spinning"]);
    for words in [
        &["goto", "first"][..],
        &["step-back"],
        &["history", "tempo"],
    ] {
        assert_eq!(live.refused(words)["code"], "NOT_STOPPED", "{words:?}");
    }
}

/// Runs a command in another folder.
fn elsewhere(live: &Live, folder: &Path, words: &[&str]) -> String {
    let folder = format!("--chdir={}", folder.display());
    text_of(
        live.command(words)
            .wrapped(Path::new("/usr/bin/env"), [folder]),
    )
}

#[test]
fn without_a_number_the_newest_session_of_the_folder_answers() {
    let live = Live::started("past-folders", &["--break", "leaf"], &program(), &[]);
    let other = live.scratch.join("other");
    std::fs::create_dir(&other).expect("the test's folder is writable");
    let path = program();
    let path = path.to_str().expect("text");
    elsewhere(&live, &other, &["start", "--break", "bump", path]);
    live.keep(&live.ask(&["status"])["sessions"][1]);
    assert_eq!(elsewhere(&live, &other, &["print", "by"]), "$1 = 1\n");
    assert_eq!(
        live.print("x"),
        "20",
        "that of this folder, though it is older"
    );
    let third = live.scratch.join("third");
    std::fs::create_dir(&third).expect("the test's folder is writable");
    assert_eq!(
        elsewhere(&live, &third, &["print", "by"]),
        "$2 = 1\n",
        "the newest of all"
    );
    let named = live
        .command(&["print", "by"])
        .env("HINDSIGHT_SESSION", "2")
        .run();
    assert_eq!(named.text(), "$3 = 1\n");
    let wins = live
        .command(&["print", "--session", "1", "x"])
        .env("HINDSIGHT_SESSION", "2")
        .run();
    assert_eq!(wins.text(), "$2 = 20\n");
    let wrong = live
        .command(&["print", "x"])
        .env("HINDSIGHT_SESSION", "two")
        .run();
    assert_eq!(wrong.status, Status::Code(2));
    assert!(
        wrong.errors().contains("HINDSIGHT_SESSION"),
        "{}",
        wrong.errors()
    );
}

/// Lines of a connection.
struct Lines(std::io::Lines<BufReader<UnixStream>>);

impl Lines {
    fn next(&mut self) -> Value {
        let line = self
            .0
            .next()
            .expect("the daemon is there")
            .expect("it can be read");
        serde_json::from_str(&line).expect("JSON")
    }
}

#[test]
fn stops_output_and_ends_are_pushed_to_who_subscribed() {
    let live = Live::started("past-pushes", &["--break", "leaf"], &program(), &[]);
    let mut stream = UnixStream::connect(live.socket()).expect("the daemon listens");
    let mut lines = Lines(BufReader::new(stream.try_clone().expect("a twin")).lines());
    assert_eq!(lines.next()["hindsight"], 1);
    let request = json!({"id": 5, "command": "subscribe", "session": 1});
    writeln!(stream, "{request}").expect("it reads");
    assert_eq!(lines.next()["id"], 5);
    live.ask(&["continue"]);
    let stopped = lines.next()["push"].clone();
    assert_eq!(stopped["kind"], "stopped", "{stopped:#}");
    assert_eq!(stopped["session"], 1);
    assert_eq!(stopped["stop"]["function"], "leaf");
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 7);
    let mut kinds = Vec::new();
    let mut printed = String::new();
    while !kinds.contains(&"ended".to_owned()) || !printed.contains("tempo 120") {
        let push = lines.next()["push"].clone();
        kinds.push(push["kind"].as_str().expect("a kind").to_owned());
        printed += push["text"].as_str().unwrap_or_default();
    }
    assert!(printed.contains("counter 55\n"), "{printed}");
}

/// A verb that is one file works everywhere.
#[test]
fn a_type_is_shown_live_in_the_past_in_the_shell_on_the_socket_and_at_the_prompt() {
    let live = Live::started("past-ptype", &["--break", "leaf"], &program(), &[]);
    let shown = "type = int (* volatile)(int)\n";
    assert_eq!(text(&live, &["ptype", "chosen"]), shown);
    let words = [
        "repl",
        "--cmd",
        "ptype chosen",
        "--cmd",
        "goto last",
        "--cmd",
        "ptype chosen",
    ];
    let said = text(&live, &words);
    assert_eq!(said.matches(shown).count(), 2, "{said}");
    live.ask(&["goto", "first"]);
    assert_eq!(live.refused(&["ptype", "nobody"])["code"], "EVAL_FAILED");
    live.ask(&["goto", "last"]);
    let request = json!({"id": 1, "command": "ptype", "args": {"of": "counter"}});
    let answer = live.request(&request);
    assert_eq!(answer["result"]["size"], 4, "{answer:#}");
    let help = live.command(&["ptype", "--help"]).run().text();
    assert!(help.starts_with("Show the type of an expression"), "{help}");
    let completed = live.command(&["--help"]).run().text();
    assert!(completed.contains("  ptype "), "{completed}");
}
