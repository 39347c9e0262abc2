//! Goal: breakpoints wait for libraries, are set before the library's own code runs, and wait again when it is unloaded.
//! Method: a program that loads two libraries in turn and unloads them, ten times.

use e2e::{Live, fixture_artifact, fixture_source};
use serde_json::Value;

/// The line of a file of the fixture that holds this text.
fn line_with(file: &str, text: &str) -> usize {
    let source = std::fs::read_to_string(fixture_source("plugin").join(file)).expect("a source");
    let found = source.lines().position(|line| line.contains(text));
    1 + found.unwrap_or_else(|| panic!("{file} has no {text}"))
}

fn entered() -> Live {
    // The program looks for its libraries in its own folder; they are built with it.
    let program = fixture_artifact("plugin", "plugin_host");
    Live::started("plugin", &["--stop-on-entry"], &program, &[])
}

fn probe(live: &Live, id: u64) -> Value {
    let list = live.ask(&["break", "list"]);
    let probes = list["probes"].as_array().expect("a list");
    let found = probes.iter().find(|probe| probe["id"] == id);
    found.unwrap_or_else(|| panic!("{list:#}")).clone()
}

#[test]
fn a_breakpoint_waits_for_its_library_and_waits_again_when_it_is_unloaded() {
    let live = entered();
    let refused = live.refused(&["break", "red_work"]);
    assert_eq!(refused["code"], "INVALID_FUNCTION", "{refused:#}");
    let waits = live.ask(&["break", "red_work", "--pending"])["probes"][0].take();
    assert_eq!(waits["verified"], false, "{waits:#}");
    assert_eq!(waits["code"], "MODULE_NOT_LOADED", "{waits:#}");
    let closed = format!("host.c:{}", line_with("host.c", "return sum;"));
    live.ask(&["break", &closed]);
    for round in 1..=3 {
        // The last argument of printf is evaluated first: after dlclose, with blue.
        assert_eq!(live.moved(&["continue"])["probe"], 2);
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["function"], "red_work", "{stop:#}");
        assert_eq!(stop["probe"], 1, "{stop:#}");
        let bound = probe(&live, 1);
        assert_eq!(bound["verified"], true, "{bound:#}");
        assert_eq!(bound["code"], Value::Null, "{bound:#}");
        live.ask(&["break", "disable", "1"]);
        // Behind dlclose, with red.
        let stop = live.moved(&["continue"]);
        assert_eq!(stop["probe"], 2, "{stop:#}");
        live.ask(&["break", "enable", "1"]);
        let pending = probe(&live, 1);
        assert_eq!(pending["verified"], false, "{pending:#}");
        assert_eq!(pending["code"], "MODULE_NOT_LOADED", "{pending:#}");
        assert_eq!(pending["places"], Value::Array(Vec::new()), "{pending:#}");
        assert_eq!(pending["hits"], round, "hits are counted on: {pending:#}");
    }
    live.ask(&["break", "disable", "--all"]);
    assert_eq!(live.run_to_end(), 0);
    assert_eq!(
        live.output().matches("red 6570 blue 5225\n").count(),
        10,
        "{}",
        live.output()
    );
}

/// The library's constructor runs inside of dlopen; a breakpoint in it is hit nevertheless.
#[test]
fn a_pending_breakpoint_is_set_before_the_librarys_own_code_runs() {
    let live = entered();
    let line = line_with("plugin.c", "constructed = inner_step");
    live.ask(&["break", &format!("plugin.c:{line}"), "--pending"]);
    let stop = live.moved(&["continue"]);
    assert_eq!(stop["function"], "on_load", "{stop:#}");
    let frames = live.ask(&["backtrace"]);
    let frames = frames["threads"][0]["frames"].as_array().expect("frames");
    assert!(
        frames.iter().any(|frame| frame["function"] == "use"),
        "{frames:#?}"
    );
    live.ask(&["break", "remove", "1"]);
    assert_eq!(live.run_to_end(), 0);
}

#[test]
fn a_message_that_waits_is_checked_once_its_library_is_there() {
    let live = entered();
    live.ask(&["logpoint", "blue_work", "{nosuch}", "--pending"]);
    live.ask(&["break", "blue_work", "--pending"]);
    live.moved(&["continue"]);
    let listed = live.ask(&["logpoint", "list"]);
    let told = listed["probes"][0]["message"].as_str().unwrap_or_default();
    assert!(
        told.starts_with("no variable \"nosuch\" here"),
        "{listed:#}"
    );
    live.ask(&["break", "remove", "--all"]);
    assert_eq!(live.run_to_end(), 0);
}

/// A breakpoint without a condition in a library that is never loaded stops nothing.
#[test]
fn what_never_comes_stays_pending_to_the_end() {
    let live = entered();
    live.ask(&["break", "nobody_has_this", "--pending"]);
    live.ask(&["logpoint", "blue_work", "x={x}", "--pending"]);
    assert_eq!(live.run_to_end(), 0);
    let probe = probe(&live, 1);
    assert_eq!(probe["verified"], false, "{probe:#}");
    assert_eq!(probe["hits"], 0, "{probe:#}");
    let logged = live.recording().number("SELECT count(*) FROM logpoints");
    assert_eq!(logged, 100, "ten calls in each of ten rounds");
}
