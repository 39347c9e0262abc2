//! Goal: a long run through a recording of every instruction reports its progress, ends when its client is gone, and leaves the
//! position unchanged. Method: a breakpoint whose condition is evaluated millions of times and never holds; the client leaves once it
//! has received a sign of progress, and another one asks for the session's position.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use e2e::{Hindsight, Live, Program, fixture_artifact};
use serde_json::{Value, json};

/// Calls of the function with the breakpoint. Together they take minutes.
const CALLS: &str = "3000000";
/// The time for which an abandoned search may continue on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends a request, and disconnects once a notice says that the run continues. Returns the notice.
fn left_while_running(live: &Live, command: &str, args: &Value) -> Value {
    let mut stream = UnixStream::connect(live.socket()).expect("the daemon listens");
    let request = json!({"id": 7, "command": command, "args": args, "session": 1});
    writeln!(stream, "{request}").expect("the daemon reads");
    let lines = BufReader::new(stream).lines();
    for line in lines.map(|line| line.expect("the daemon writes")) {
        let said: Value = serde_json::from_str(&line).expect("JSON");
        if said["notice"]["kind"] == "running" {
            return said["notice"].clone();
        }
        assert_ne!(said["success"], true, "{command} was done too soon: {said}");
        assert!(said["error"].is_null(), "{said}");
    }
    panic!("the daemon has gone");
}

#[test]
fn a_run_that_nobody_waits_for_ends_and_moves_nothing() {
    let live = Live::new("full-long");
    let program =
        Program::new(fixture_artifact("tight", "tight"), live.scratch.path()).args([CALLS]);
    let options = ["--full", "-x", "work"];
    let recording = Hindsight::recorded(&live.scratch, "rec", &options, &program);
    let path = recording
        .path()
        .to_str()
        .expect("paths of tests are text")
        .to_owned();
    let opened = live.command(&["open", &path]).run();
    assert_eq!(opened.status.as_shell_code(), 0, "{}", opened.errors());
    live.ask(&["goto", "first"]);
    live.ask(&["break", "work", "--condition", "i == 123456789"]);
    let before = live.ask(&["where"]);
    for (command, args) in [
        ("continue", json!({})),
        (
            "logpoint",
            json!({"action": "add", "at": "work", "message": "{i}", "condition": "i == 123456789"}),
        ),
    ] {
        let notice = left_while_running(&live, command, &args);
        let text = notice["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("running: instruction "), "{notice}");
        let left = Instant::now();
        let after = live.ask(&["where"]);
        assert!(left.elapsed() < PATIENCE, "{command}: {:?}", left.elapsed());
        assert_eq!(before["stop"], after["stop"], "{command}");
    }
    // Backwards, from the end; the copies of the process are still valid.
    live.ask(&["goto", "last"]);
    let end = live.ask(&["where"]);
    left_while_running(&live, "reverse_continue", &json!({}));
    assert_eq!(live.ask(&["where"])["stop"], end["stop"]);
    live.ask(&["break", "remove", "--all"]);
    live.ask(&["break", "work", "--hit-count", "3"]);
    live.ask(&["reverse-continue"]);
    let value = live.print("i");
    assert_eq!(value, "2");
}

/// The same in a recording of calls. The condition needs memory, so no two calls have the same answer for certain.
#[test]
fn a_run_past_millions_of_calls_that_nobody_waits_for_moves_nothing() {
    let live = Live::new("long-past");
    let program =
        Program::new(fixture_artifact("tight", "tight"), live.scratch.path()).args([CALLS]);
    let recording = Hindsight::recorded(&live.scratch, "rec", &["-f", "work"], &program);
    let path = recording
        .path()
        .to_str()
        .expect("paths of tests are text")
        .to_owned();
    let opened = live.command(&["open", &path]).run();
    assert_eq!(opened.status.as_shell_code(), 0, "{}", opened.errors());
    for (from, command) in [("100", "continue"), ("5999000", "reverse_continue")] {
        live.ask(&["break", "remove", "--all"]);
        live.ask(&["goto", from]);
        live.ask(&["break", "work", "--condition", "*&i == 123456789"]);
        let before = live.ask(&["where"]);
        let notice = left_while_running(&live, command, &json!({}));
        let text = notice["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("running: event "), "{notice}");
        let left = Instant::now();
        let after = live.ask(&["where"]);
        assert!(left.elapsed() < PATIENCE, "{command}: {:?}", left.elapsed());
        assert_eq!(before["stop"], after["stop"], "{command}");
    }
    // What depends on an argument alone is found among them all.
    live.ask(&["break", "remove", "--all"]);
    live.ask(&["goto", "first"]);
    live.ask(&["break", "work", "--condition", "i == 2999999"]);
    live.ask(&["continue"]);
    assert_eq!(live.print("i"), "2999999");
}
