//! Goal: requests that are none are refused with what would be one. Method: a daemon's inside without a socket.

use serde_json::json;

use super::*;
use crate::config::OutputLimits;
use crate::protocol::Code;

fn ask(command: &str, args: Value) -> Result<Value, Failure> {
    let folder = tempfile::tempdir().unwrap();
    let sessions = Sessions::new(
        folder.path().join("sessions.json"),
        OutputLimits::default(),
        None,
    );
    let call = Call {
        sessions: &sessions,
        config: &Config::default(),
        session: None,
        notify: Arc::new(|_| {}),
        gone: Arc::default(),
    };
    serve(&call, command, args)
}

#[test]
fn the_table_is_sorted_and_no_alias_hides_a_verb() {
    let names: Vec<_> = names().collect();
    assert!(names.is_sorted(), "{names:?}");
    for (alias, name) in ALIASES {
        assert!(!names.contains(alias), "{alias}");
        assert!(names.contains(name), "{name}");
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
        "start" | "attach" | "status" => None,
        "break" | "logpoint" | "watch" | "catch" => Some(json!({"action": "list"})),
        "memory" => Some(json!({"at": "0x10"})),
        "note" => Some(json!({"text": "x"})),
        "eval" | "print" => Some(json!({"expression": "x"})),
        "set" => Some(json!({"target": "x", "value": "1"})),
        "until" => Some(json!({"at": "main"})),
        "write" => Some(json!({"targets": []})),
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
