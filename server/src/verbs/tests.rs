//! Goal: a malformed request is refused with an example of a valid one. Method: the daemon's internals, without a
//! socket.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::config::{Config, OutputLimits};
use crate::past::Past;
use crate::protocol::Code;
use crate::session::Sessions;

fn ask(command: &str, args: Value) -> Result<Value, Failure> {
    let folder = tempfile::tempdir().unwrap();
    let sessions = Sessions::new(
        folder.path().join("sessions.json"),
        OutputLimits::default(),
        None,
    );
    let config = Config::default();
    let call = Call::new(
        &sessions,
        &config,
        Asked::default(),
        Arc::new(|_| {}),
        Arc::default(),
    );
    serve(&call, command, args)
}

/// Asks about event 6 of a frozen recording, with so many seconds for a request.
fn ask_the_past(request_secs: f64, expression: &str) -> Result<Value, Failure> {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../repl/tests/recordings");
    let temp = tempfile::tempdir().unwrap();
    let past = Past::open(&recordings.join("captured.hindsight"), temp.path()).unwrap();
    past.go_to(6).unwrap();
    let mut config = Config::default();
    config.timeouts.request_secs = request_secs;
    let sessions = Sessions::of_recording(past);
    let call = Call::new(
        &sessions,
        &config,
        Asked::default(),
        Arc::new(|_| {}),
        Arc::default(),
    );
    serve(&call, "print", json!({ "expression": expression }))
}

#[test]
fn a_question_about_the_past_has_the_time_that_the_user_sets() {
    let value = ask_the_past(30.0, "sold + sold").unwrap();
    assert_eq!(value["value"], "0", "{value:#}");
    let failure = ask_the_past(1e-9, "sold + sold").unwrap_err();
    assert_eq!(failure.code, Code::EvalFailed);
    let words = "the question took longer than 1ns and was given up";
    assert!(failure.message.contains(words), "{}", failure.message);
}

#[test]
fn every_name_and_alias_means_one_verb() {
    let aliases = ALL.iter().flat_map(|verb| verb.aliases).copied();
    let mut all: Vec<_> = names().chain(aliases).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "{all:?}");
    assert_eq!(find("step-back").map(|verb| verb.name), Some("step_back"));
    assert_eq!(find("bt").map(|verb| verb.name), Some("backtrace"));
}

#[test]
fn every_verb_says_what_it_does_in_one_line() {
    for verb in ALL {
        let first = verb.doc.lines().next().unwrap();
        assert!(!first.is_empty() && first.len() < 110, "{}", verb.name);
        assert!(!first.ends_with('.'), "{}", verb.name);
    }
}

#[test]
fn an_unknown_verb_names_the_nearest() {
    let failure = ask("brake", Value::Null).unwrap_err();
    assert_eq!(failure.code, Code::BadRequest);
    assert_eq!(
        failure.details.nearest.first().map(String::as_str),
        Some("break")
    );
    let failure = ask("xyzzy", Value::Null).unwrap_err();
    assert!(failure.details.nearest.is_empty());
    assert!(failure.hint.unwrap().contains("backtrace"));
}

#[test]
fn every_verb_says_that_there_is_no_session() {
    let needs = |name: &str| match name {
        "start" | "attach" | "status" | "open" => None,
        "break" | "logpoint" | "watch" | "catch" => Some(json!({"action": "list"})),
        "memory" => Some(json!({"at": "0x10"})),
        "names" => Some(json!({"of": "functions"})),
        "ptype" | "why" | "whatis" | "printf" => Some(json!({"of": "x"})),
        "thread_apply" => Some(json!({"command": "print"})),
        "info_address" => Some(json!({"of": "x"})),
        "x" | "info_symbol" | "info_scope" | "jump" | "advance" => Some(json!({"at": "0x10"})),
        "condition" => Some(json!({"id": 1})),
        "ignore" => Some(json!({"id": 1, "count": 1})),
        "handle" => Some(json!({"signal": "SIGINT"})),
        "rbreak" => Some(json!({"pattern": "x"})),
        "object" => Some(json!({"address": "x"})),
        "full" => Some(json!({"what": "1"})),
        "goto" => Some(json!({"to": "0"})),
        "note" => Some(json!({"text": "x"})),
        "trace" => Some(json!({"patterns": ["x"]})),
        "eval" | "print" | "history" | "last_write" => Some(json!({"expression": "x"})),
        "set" => Some(json!({"target": "x", "value": "1"})),
        "write" => Some(json!({"targets": []})),
        "save_breakpoints" => Some(json!({"file": "x"})),
        _ => Some(json!({})),
    };
    for name in names() {
        if let Some(args) = needs(name) {
            let failure = ask(name, args).unwrap_err();
            assert_eq!(failure.code, Code::NoSession, "{name}: {failure}");
            assert!(failure.hint.is_some(), "{name}");
        }
    }
}

#[test]
fn arguments_that_a_verb_does_not_take_are_named() {
    let failure = ask("next", json!({"cuont": 2})).unwrap_err();
    assert_eq!(failure.code, Code::BadRequest);
    assert!(failure.message.contains("cuont"), "{failure}");
    for wrong in [json!([]), json!(1), json!("x")] {
        assert_eq!(ask("next", wrong).unwrap_err().code, Code::BadRequest);
    }
}

#[test]
fn without_a_session_the_status_is_empty() {
    assert_eq!(ask("status", Value::Null).unwrap()["sessions"], json!([]));
}
