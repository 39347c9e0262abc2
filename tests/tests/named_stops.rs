//! Goal: a stop has the same name in the live program, in `pauses` and in the recording's past, also where inlined calls begin, and
//! each step ends at a line; `break` gives a place the name of a stop there. Method: optimised programs are stepped through; the
//! report of each stop is compared with what the recording says about it. Breakpoints are set on functions and on every line, for
//! several compilers, and the replies are compared with the stops at them. Each run takes a third of the builds; `WHOLE=1` all.

use std::collections::BTreeMap;

use e2e::{Live, fixture_artifact, fixture_source, in_turn};
use serde_json::Value;

/// Function and line of a stop.
type Named = (String, u64);

fn named(of: &Value) -> Named {
    let function = of["function"].as_str().unwrap_or("nowhere").to_owned();
    (function, of["line"].as_u64().unwrap_or(0))
}

const STEPS: usize = 30;

#[test]
fn a_stop_is_named_alike_live_in_pauses_and_in_the_past() {
    let mut inlined = 0;
    for (artifact, begin) in [
        ("control_O2", "main"),
        ("control_cxx_O2", "main"),
        ("control_rust_O2", "control::main"),
        ("panics_O2", "panics::main"),
    ] {
        let program = fixture_artifact("control", artifact);
        let name = format!("named-{artifact}");
        let live = Live::started(&name, &["--break", begin], &program, &[]);
        let mut told = vec![named(&live.session()["stop"])];
        for _ in 0..STEPS {
            let reply = live.ask(&["step"]);
            if reply["status"] != "stopped" {
                break;
            }
            let stop = &reply["stop"];
            assert!(stop["line"].as_u64() > Some(0), "{artifact}: {stop:#}");
            let frames = live.ask(&["backtrace"]);
            inlined += usize::from(frames["threads"][0]["frames"][0]["inlined"] == true);
            told.push(named(stop));
        }
        let recording = live.recording();
        live.ask(&["stop"]);
        let sql = "SELECT seq, function, line FROM pauses WHERE reason <> 'entry' ORDER BY seq";
        let pauses: Vec<Value> = recording.rows(sql).into_iter().map(Value::Object).collect();
        let kept: Vec<Named> = pauses.iter().map(named).collect();
        assert_eq!(kept, told, "{artifact}");
        let newest = pauses.iter().enumerate().map(|(number, pause)| {
            let seq = &pause["seq"];
            format!(
                "SELECT {number} AS number, function, line FROM backtrace({seq}) WHERE frame = 0"
            )
        });
        let newest: Vec<String> = newest.collect();
        let sql = format!("{} ORDER BY number", newest.join(" UNION ALL "));
        let past: Vec<Value> = recording
            .rows(&sql)
            .into_iter()
            .map(Value::Object)
            .collect();
        let past: Vec<Named> = past.iter().map(named).collect();
        assert_eq!(past, told, "{artifact}");
    }
    assert!(inlined > 5, "{inlined} stops in inlined calls");
}

/// More stops than that add nothing.
const STOPS: usize = 60;

/// The name of a place: function, file, line.
fn place_named(of: &Value) -> [Value; 3] {
    ["function", "file", "line"].map(|name| of[name].clone())
}

/// Sets breakpoints where there is code and compares their places with the stops at them. Returns the number of different places
/// of stops, and the locations with the replies.
fn assert_named_as_stops(artifact: &str, locations: &[String]) -> (usize, Vec<(String, Value)>) {
    let program = fixture_artifact("named", artifact);
    let name = format!("places-named-{artifact}");
    let live = Live::started(&name, &["--stop-on-entry"], &program, &[]);
    let mut places = BTreeMap::new();
    let mut replies = Vec::new();
    for location in locations {
        // Functions that are inlined everywhere may not exist, and lines after the last function have no code.
        let (_, mut response) = live.response(&["break", location]);
        if response["success"] != true {
            continue;
        }
        let reply = response["result"]["probes"][0].take();
        for place in reply["places"].as_array().expect("places") {
            let address = place["address"].as_str().expect("an address");
            let key = (reply["id"].as_u64(), address.to_owned());
            places.insert(key, place_named(place));
        }
        replies.push((location.clone(), reply));
    }
    let listed = live.ask(&["break", "list"]);
    for probe in listed["probes"].as_array().expect("probes") {
        for place in probe["places"].as_array().expect("places") {
            let address = place["address"].as_str().expect("an address");
            let told = places.get(&(probe["id"].as_u64(), address.to_owned()));
            assert_eq!(told, Some(&place_named(place)), "{artifact}: {probe:#}");
        }
    }
    let mut stopped = BTreeMap::new();
    for _ in 0..STOPS {
        let reply = live.ask(&["continue"]);
        if reply["status"] != "stopped" {
            break;
        }
        let stop = &reply["stop"];
        let address = stop["address"].as_str().expect("an address").to_owned();
        let told = places.get(&(stop["probe"].as_u64(), address.clone()));
        let told = told.unwrap_or_else(|| panic!("{artifact}: no such place: {stop:#}"));
        assert_eq!(*told, place_named(stop), "{artifact}: {stop:#}");
        stopped.insert(address, ());
    }
    (stopped.len(), replies)
}

/// A compiler with its source, and the functions of that.
type Built = (&'static str, &'static str, &'static [&'static str]);

const NAMED: [Built; 5] = [
    (
        "gcc",
        "named.c",
        &["weigh", "halve", "show", "area", "square", "main"],
    ),
    (
        "clang",
        "named.c",
        &["weigh", "halve", "show", "area", "square", "main"],
    ),
    (
        "gxx",
        "named.cc",
        &["stock::many", "total", "first", "larger", "twice", "main"],
    ),
    (
        "clangxx",
        "named.cc",
        &["stock::many", "total", "first", "larger", "twice", "main"],
    ),
    (
        "rustc",
        "named.rs",
        &[
            "named::many",
            "named::total",
            "longest",
            "clamp",
            "twice",
            "named::main",
        ],
    ),
];

/// The builds in turn, with their levels of optimisation: one of each compiler, and each level of some.
fn builds() -> impl Iterator<Item = (Built, usize)> {
    let all = NAMED.into_iter().enumerate();
    let all = all.flat_map(|(number, named)| (number..number + 3).map(move |at| (named, at % 3)));
    in_turn(all)
}

#[test]
fn a_breakpoint_on_a_function_is_named_as_the_stop_there() {
    for ((compiler, _, functions), level) in builds() {
        let functions: Vec<String> = functions.iter().map(|name| (*name).to_owned()).collect();
        let artifact = format!("{compiler}_O{level}");
        let (stopped, replies) = assert_named_as_stops(&artifact, &functions);
        assert!(stopped >= 4, "{artifact}: {stopped} places");
        // If nothing is inlined, it is the requested function.
        for (asked, reply) in replies.into_iter().filter(|_| level == 0) {
            for place in reply["places"].as_array().expect("places") {
                let function = place["function"].as_str().unwrap_or_default();
                let last = asked.rsplit(':').next().expect("a name");
                assert!(function.contains(last), "{artifact}: {asked}: {place:#}");
            }
        }
    }
}

#[test]
fn a_breakpoint_at_a_line_is_named_as_the_stop_there() {
    for ((compiler, file, _), level) in builds() {
        let source = std::fs::read_to_string(fixture_source("named").join(file));
        let count = source.expect("a source file").lines().count();
        let lines: Vec<String> = (1..=count).map(|line| format!("{file}:{line}")).collect();
        let artifact = format!("{compiler}_O{level}");
        let (stopped, replies) = assert_named_as_stops(&artifact, &lines);
        assert!(stopped >= 8, "{artifact}: {stopped} places");
        // If the stop names a different line than the requested one, the reply says why.
        for (asked, reply) in replies {
            let first = &reply["places"][0];
            let is_it = asked.ends_with(&format!(":{}", first["line"]));
            let is_told = reply["message"].is_string();
            assert!(is_it || is_told, "{artifact}: {asked}: {reply:#}");
        }
    }
}
