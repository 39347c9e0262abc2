//! Goal: displayed values appear with every stop, and are in the recording as they were then. Method: a program is
//! stopped several times; the values at each stop, and those in SQL afterwards, are compared with the right values.

use e2e::{Live, fixture_artifact, marked_line};
use serde_json::{Value, json};

fn started(options: &[&str]) -> Live {
    let program = fixture_artifact("control", "control_O0");
    Live::started("displays", options, &program, &[])
}

fn shown(stop: &Value) -> Vec<String> {
    let displays = stop["displays"].as_array().cloned().unwrap_or_default();
    let line = |shown: &Value| {
        let text = |name: &str| shown[name].as_str().unwrap_or("?").to_owned();
        format!(
            "{}: {} = {}",
            shown["id"],
            text("expression"),
            text("value")
        )
    };
    displays.iter().map(line).collect()
}

#[test]
fn each_stop_tells_and_keeps_what_is_displayed() {
    let live = started(&["--display", "counter", "--break", "bump"]);
    assert_eq!(shown(&live.session()["stop"]), ["1: counter = 0"]);
    let added = live.ask(&["display", "counter + by"]);
    assert_eq!(shown(&added), ["2: counter + by = 1"]);
    let second = live.moved(&["continue"]);
    assert_eq!(shown(&second), ["1: counter = 1", "2: counter + by = 3"]);
    // An expression without a meaning somewhere says so there, and stays displayed.
    let frame = live.ask(&["where"]);
    assert_eq!(shown(&frame["stop"]), shown(&second));
    live.ask(&["up"]);
    let above = shown(&live.ask(&["where"])["stop"]);
    assert!(above[1].contains("counter + by = <"), "{above:?}");
    live.ask(&["down"]);
    live.ask(&["set", "counter", "100"]);
    let changed = shown(&live.ask(&["where"])["stop"]);
    assert_eq!(changed, ["1: counter = 100", "2: counter + by = 102"]);
    assert_eq!(live.ask(&["display", "counter"])["displays"][0]["id"], 1);
    let kept = shown(&live.moved(&["reverse-continue"]));
    assert_eq!(kept, ["1: counter = 0", "2: counter + by = 1"], "the past");
    live.ask(&["goto", "live"]);
    live.ask(&["undisplay", "1"]);
    let third = live.moved(&["continue"]);
    assert_eq!(shown(&third), ["2: counter + by = 105"]);
    let text = live.command(&["continue"]).run().text();
    assert!(text.ends_with("\n2: counter + by = 109\n"), "{text}");
    assert_eq!(
        live.command(&["display"]).run().text(),
        "2: counter + by = 109\n"
    );
    live.ask(&["undisplay", "--all"]);
    let none = live.command(&["display"]).run().text();
    assert_eq!(none, "Nothing is displayed.\n");
    assert_eq!(shown(&live.moved(&["continue"])), [""; 0]);
    live.ask(&["stop"]);
    let recording = e2e::Recording::new(live.scratch.join("control_O0.hindsight"));
    let kept =
        recording.rows("SELECT captured FROM pauses WHERE reason = 'breakpoint' ORDER BY seq");
    let kept: Vec<Value> = kept
        .iter()
        .map(|row| match row["captured"].as_str() {
            Some(text) => serde_json::from_str(text).expect("an object in JSON"),
            None => Value::Null,
        })
        .collect();
    assert_eq!(
        kept,
        [
            json!({"counter": "0"}),
            json!({"counter": "1", "counter + by": "3"}),
            json!({"counter + by": "105"}),
            json!({"counter + by": "109"}),
            Value::Null,
        ]
    );
}

#[test]
fn a_restart_displays_the_same_and_steps_tell_too() {
    let live = started(&[
        "--break",
        "sum_to",
        "--display",
        "total",
        "--display",
        "$nothing",
    ]);
    let stop = live.session()["stop"].clone();
    assert!(shown(&stop)[1].starts_with("2: $nothing = <"), "{stop:#}");
    let again = live.ask(&["restart"]);
    live.keep(&again);
    live.moved(&["next"]);
    let stop = live.moved(&["next"]);
    assert_eq!(
        stop["line"],
        marked_line("control", "control.c", "sum: add")
    );
    assert_eq!(shown(&stop)[0], "1: total = 0");
    assert_eq!(live.run_to_end(), 7);
    let listed = live.ask(&["display"]);
    assert_eq!(
        listed["displays"][0],
        json!({"id": 1, "expression": "total"})
    );
}

#[test]
fn what_cannot_be_displayed_is_refused() {
    let live = started(&["--break", "bump"]);
    let refused = live.refused(&["display", "counter +"]);
    assert_eq!(refused["code"], "EVAL_FAILED", "{refused:#}");
    assert!(refused["details"]["position"].is_number(), "{refused:#}");
    let refused = live.refused(&["undisplay", "7"]);
    assert_eq!(refused["code"], "DISPLAY_NOT_FOUND", "{refused:#}");
    for number in 0..64 {
        live.ask(&["display", &format!("counter + {number}")]);
    }
    let refused = live.refused(&["display", "by"]);
    assert_eq!(refused["code"], "EVAL_FAILED", "{refused:#}");
    live.ask(&["undisplay", "--all"]);
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 7);
    let refused = live.refused(&["display", "counter"]);
    assert_eq!(refused["code"], "NOT_RUNNING", "{refused:#}");
}
