//! Goal: a function's arguments, as shown at its first instruction, at breakpoints on it and in recordings of its entry, are
//! right or said to be unknown. Method: a program whose parameters have known values, in registers and on the stack, by three
//! compilers with and without optimisation, of which each run takes a third (`WHOLE=1` all); each parameter is printed everywhere.

use e2e::{Comparison, Live, Nesting, Program, Recording, Scratch, fixture_artifact, in_turn};
use serde_json::Value;

const MANY: [(&str, &str); 18] = [
    ("a", "1"),
    ("b", "2"),
    ("c", "3"),
    ("d", "4"),
    ("e", "5"),
    ("f", "6"),
    ("g", "7"),
    ("h", "8"),
    ("ld", "9.5"),
    ("bg.a", "11"),
    ("bg.b", "12"),
    ("bg.c", "13"),
    ("bg.d", "14"),
    ("x", "2.5"),
    ("k + 0", "17"),
    ("p.x", "15"),
    ("p.y", "16"),
    ("z + 0", "18"),
];
const FLOATS: [(&str, &str); 10] = [
    ("a", "1.5"),
    ("b", "2.5"),
    ("c", "3"),
    ("d", "4"),
    ("e", "5"),
    ("f", "6"),
    ("g", "7"),
    ("h", "8"),
    ("i", "9.5"),
    ("j", "10.5"),
];
const AREA: [(&str, &str); 2] = [("width", "3"), ("height", "4")];
const SUM: [(&str, &str); 1] = [("n", "5")];

/// The functions of an artifact, in the order of their calls, and what is expected of their parameters.
fn functions(artifact: &str) -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    if artifact.contains("rust") {
        let absent = ["ld", "p.x", "p.y"];
        let many = MANY.iter().filter(|(name, _)| !absent.contains(name));
        return vec![("many", many.copied().collect()), ("area", AREA.to_vec())];
    }
    vec![
        ("many", MANY.to_vec()),
        ("floats", FLOATS.to_vec()),
        ("area", AREA.to_vec()),
        ("sum", SUM.to_vec()),
    ]
}

/// Returns the number of known values where the program is stopped; all of them must be right.
fn known(live: &Live, artifact: &str, function: &str, expected: &[(&str, &str)]) -> usize {
    let mut known = 0;
    for (expression, value) in expected {
        let (_, response) = live.response(&["print", expression]);
        let shown = response["result"]["value"].as_str().unwrap_or("<unknown>");
        let is_unknown = shown.starts_with('<');
        let found = shown.split(' ').next().expect("one word");
        assert!(
            is_unknown || found == *value || found.parse::<f64>().ok() == value.parse().ok(),
            "{function} of {artifact}: {expression} is {shown}, not {value}"
        );
        known += usize::from(!is_unknown);
    }
    known
}

fn entered(artifact: &str) -> Live {
    let program = fixture_artifact("entries", artifact);
    let name = format!("entries-{artifact}");
    Live::started(&name, &["--stop-on-entry", "-x", "*"], &program, &[])
}

const UNOPTIMISED: [&str; 4] = [
    "entries_gcc_O0",
    "entries_clang_O0",
    "entries_clang_O0_rsp",
    "entries_rust_O0",
];
const OPTIMISED: [&str; 5] = [
    "entries_gcc_O1",
    "entries_gcc_O2",
    "entries_clang_O1",
    "entries_clang_O2",
    "entries_rust_O2",
];

#[test]
fn arguments_are_known_where_breakpoints_on_functions_stop() {
    for artifact in in_turn(UNOPTIMISED) {
        let live = entered(artifact);
        for (function, expected) in functions(artifact) {
            let set = live.ask(&["break", "--function", &name(artifact, function)]);
            let line = set["probes"][0]["places"][0]["line"].clone();
            let stop = live.moved(&["continue"]);
            assert_eq!(stop["line"], line, "{artifact}: {stop:#}");
            let known = known(&live, artifact, function, &expected);
            assert_eq!(known, expected.len(), "{function} of {artifact}");
        }
        assert_eq!(live.run_to_end(), 0);
    }
}

/// The whole name of a function.
fn name(artifact: &str, function: &str) -> String {
    match artifact.contains("rust") {
        true => format!("entries::{function}"),
        false => function.to_owned(),
    }
}

/// The addresses of the first instructions of a function.
fn first_instructions(live: &Live, function: &str) -> Vec<String> {
    let code = live.ask(&["disassemble", function]);
    let code = code["instructions"].as_array().expect("a list");
    let address = |one: &Value| one["address"].as_str().expect("text").to_owned();
    code.iter().take(6).map(address).collect()
}

#[test]
fn arguments_are_right_or_unknown_from_the_first_instruction_on() {
    for artifact in in_turn(UNOPTIMISED.into_iter().chain(OPTIMISED)) {
        let live = entered(artifact);
        for (function, expected) in functions(artifact) {
            let name = name(artifact, function);
            for (at, address) in first_instructions(&live, &name).iter().enumerate() {
                live.ask(&["break", address]);
                let stop = live.moved(&["continue"]);
                assert_eq!(stop["address"], address.as_str(), "{stop:#}");
                let known = known(&live, artifact, function, &expected);
                // Optimisers leave out what is not needed.
                let is_whole = UNOPTIMISED.contains(&artifact) && at == 0;
                assert!(
                    !is_whole || known == expected.len(),
                    "{known} of {} known at the entry of {function} of {artifact}",
                    expected.len()
                );
            }
            live.ask(&["break", "remove", "--all"]);
        }
        assert_eq!(live.run_to_end(), 0);
    }
}

/// The value of an expression at the entry of a function, if it is known.
fn recorded(recording: &Recording, function: &str, expression: &str) -> Option<String> {
    let sql = format!(
        "SELECT value(start_seq, '{expression}') AS value FROM calls WHERE function = '{function}'"
    );
    match &recording.row(&sql)["value"] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[test]
fn recorded_arguments_are_right_or_unknown_at_the_entry() {
    for artifact in in_turn(UNOPTIMISED.into_iter().chain(OPTIMISED)) {
        for options in [&["--regs", "--stack", "1024"][..], &[]] {
            let scratch = Scratch::new(artifact);
            let program = Program::new(fixture_artifact("entries", artifact), scratch.path());
            let comparison = Comparison::of_program(scratch, &program, options, Nesting::Proper);
            for (function, expected) in functions(artifact) {
                let name = name(artifact, function);
                for (expression, value) in &expected {
                    let shown = recorded(&comparison.recording, &name, expression);
                    let found = shown.as_deref().and_then(|text| text.split(' ').next());
                    let is_same = |found: &str| {
                        found == *value || found.parse::<f64>().ok() == value.parse().ok()
                    };
                    let what = format!("{options:?} {artifact}: {function}'s {expression}");
                    assert!(
                        found.is_none_or(is_same),
                        "{what} is {shown:?}, not {value}"
                    );
                    let is_captured = !options.is_empty() && UNOPTIMISED.contains(&artifact);
                    // A recording keeps the low half of vector registers.
                    assert!(!is_captured || found.is_some(), "{what} is not known");
                }
            }
        }
    }
}

#[test]
fn watched_arguments_are_those_that_came() {
    for artifact in in_turn(UNOPTIMISED) {
        let watched = name(artifact, "many");
        let scratch = Scratch::new(&format!("watched-{artifact}"));
        let program = Program::new(fixture_artifact("entries", artifact), scratch.path());
        let watch = format!("{watched}::g");
        let options = ["--watch", &watch];
        let comparison = Comparison::of_program(scratch, &program, &options, Nesting::Proper);
        let shown = recorded(&comparison.recording, &watched, "g");
        assert_eq!(shown.as_deref(), Some("7"), "{artifact}");
    }
}
