//! Goal: the recording holds exactly the calls that happened. Method: other tracers and plain arithmetic count them too.

use e2e::{Comparison, Hindsight, Program, Recording, Scratch, Status, fixture_artifact};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[test]
fn fib_25_makes_242785_calls() {
    let both = Comparison::of("fib", "fib", &["25"]);
    assert_eq!(
        both.recording
            .number("SELECT count(*) FROM calls WHERE function = 'fib'"),
        242_785
    );
    let by_kind = both.recording.rows(
        "SELECT kind, count(*) AS n FROM events WHERE function = 'fib' AND kind IN ('enter', 'leave') GROUP BY kind ORDER BY kind",
    );
    let counts: Vec<_> = by_kind
        .iter()
        .map(|r| (r["kind"].as_str(), r["n"].as_i64()))
        .collect();
    assert_eq!(
        counts,
        [
            (Some("enter"), Some(242_785)),
            (Some("leave"), Some(242_785))
        ]
    );
    // The n-th Fibonacci number counts the calls of fib(25 - n); fib(0) is called as often as fib(2).
    let ones = both
        .recording
        .number("SELECT count(*) FROM calls WHERE function = 'fib' AND a0 = 1");
    let zeros = both
        .recording
        .number("SELECT count(*) FROM calls WHERE function = 'fib' AND a0 = 0");
    assert_eq!((ones, zeros), (75_025, 46_368));
    assert_eq!(
        both.recording
            .number("SELECT max(depth) FROM calls WHERE function = 'fib'"),
        25
    );
    assert_eq!(
        both.recording
            .number("SELECT ret FROM calls WHERE function = 'fib' AND a0 = 25"),
        75_025
    );
}

#[test]
fn gdb_reaches_its_breakpoint_as_often_as_calls_are_recorded() {
    let both = Comparison::of("fib", "fib", &["13"]);
    let program = Program::new(fixture_artifact("fib", "fib"), both.scratch.path()).args(["13"]);
    assert_eq!(
        both.recording.calls_of("fib"),
        e2e::gdb_count(&program, "fib")
    );
}

fn recorded_counts(recording: &Recording) -> BTreeMap<String, i64> {
    let rows = recording.rows("SELECT function, count(*) AS n FROM calls GROUP BY function");
    rows.iter()
        .map(|r| {
            (
                r["function"].as_str().expect("a name").to_owned(),
                r["n"].as_i64().expect("a count"),
            )
        })
        .collect()
}

/// Functions by name: hooked ones, and those that are not, which have a reason.
fn probes(recording: &Recording, state: &str) -> BTreeSet<String> {
    let sql = format!("SELECT DISTINCT function FROM probes WHERE state = '{state}'");
    let rows = recording.rows(&sql);
    rows.iter()
        .filter_map(|r| r["function"].as_str().map(str::to_owned))
        .collect()
}

/// Compares every function that both sides know; the two must share at least `at_least` functions. None of the functions
/// that only the oracle has seen may be hooked, except those in `inlined`: they have their own body in the recorded
/// program too, but there all their calls are inlined.
fn assert_counts_agree(
    recording: &Recording,
    oracle: &BTreeMap<String, i64>,
    at_least: usize,
    inlined: &[&str],
) {
    let mine = recorded_counts(recording);
    let (hooked, skipped) = (probes(recording, "armed"), probes(recording, "skipped"));
    let mut compared = 0;
    let missed: Vec<&str> = oracle
        .keys()
        .filter(|name| !mine.contains_key(*name) && hooked.contains(*name))
        .map(String::as_str)
        .collect();
    assert_eq!(
        missed, inlined,
        "hooked, called according to the oracle, and not recorded"
    );
    for (name, count) in oracle {
        if let Some(recorded) = mine.get(name) {
            assert_eq!(recorded, count, "calls of {name}");
            compared += 1;
        }
    }
    let unknown: Vec<_> = mine
        .keys()
        .filter(|n| !oracle.contains_key(*n) && *n != "main")
        .collect();
    assert!(
        unknown.is_empty(),
        "recorded, but never called according to the oracle: {unknown:?}"
    );
    assert!(
        compared >= at_least,
        "only {compared} functions were compared; {} could not be hooked",
        skipped.len()
    );
}

/// uftrace counts calls in a separate build (`-pg`) from the same source with the same optimisation.
#[test]
fn sqlite_makes_as_many_calls_as_uftrace_counts() {
    let scratch = Scratch::new("sqlite_uftrace");
    let oracle = e2e::uftrace_counts(
        &scratch,
        &Program::new(fixture_artifact("sqlite", "sqlite_pg"), scratch.path()).args(["200"]),
    );
    let program = Program::new(fixture_artifact("sqlite", "sqlite"), scratch.path()).args(["200"]);
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    assert_counts_agree(&recording, &oracle, 500, &[]);
}

/// A program without symbols has its stubs, through which it calls functions of libraries.
#[test]
fn sqlite_calls_libraries_as_often_as_uftrace_counts() {
    let scratch = Scratch::new("sqlite_libraries");
    let profiled = fixture_artifact("sqlite", "sqlite_pg");
    let profiled = Program::new(profiled, scratch.path()).args(["200"]);
    let oracle = e2e::uftrace_library_counts(&scratch, &profiled);
    let stripped = scratch.join("sqlite");
    let strip = Program::new("/usr/bin/strip", scratch.path())
        .args([Path::new("-o"), &stripped])
        .args([fixture_artifact("sqlite", "sqlite")])
        .run();
    assert_eq!(strip.status, Status::Code(0), "{}", strip.errors());
    let program = Program::new(stripped, scratch.path()).args(["200"]);
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    let mine = recorded_counts(&recording);
    let mut compared = 0;
    for stub in probes(&recording, "armed") {
        let Some(function) = stub.strip_suffix("@plt") else {
            continue;
        };
        let count = oracle.get(function).copied().unwrap_or(0);
        let recorded = mine.get(&stub).copied().unwrap_or(0);
        assert_eq!(recorded, count, "calls of {function}");
        compared += usize::from(count > 0);
    }
    assert!(compared >= 15, "only {compared} functions were compared");
}

/// callgrind runs the very same binary.
#[test]
fn lua_makes_as_many_calls_as_callgrind_counts() {
    let scratch = Scratch::new("lua_callgrind");
    let program = Program::new(fixture_artifact("lua", "lua"), scratch.path());
    let oracle = e2e::callgrind_counts(&scratch, &program);
    let (_, recording) = Hindsight::record(&scratch, &[], &program);
    assert_counts_agree(&recording, &oracle, 250, &[]);
}

#[test]
fn every_function_of_five_thousand_is_called_twice() {
    let both = Comparison::of("many_functions", "many_functions", &[]);
    let row = both.recording.row(
        "SELECT count(*) AS functions, min(n) AS least, max(n) AS most FROM \
         (SELECT function, count(*) AS n FROM calls WHERE function LIKE 'f1%' GROUP BY function)",
    );
    assert_eq!(
        (
            row["functions"].as_i64(),
            row["least"].as_i64(),
            row["most"].as_i64()
        ),
        (Some(5000), Some(2), Some(2))
    );
}
