//! What is told, what is passed over, and what is refused.

use std::fs;

use e2e::{
    Hindsight, Program, Scratch, Signal, Steady, fixture_artifact, fixture_source, wait_until,
};
use serde_json::Value;

use crate::{build, compare, ends_with, record};

/// Builds and records `invoices` as it is, and once with a wrong tax.
pub fn with_a_bug(scratch: &Scratch) {
    let source = fs::read_to_string(fixture_source("hunts").join("invoices.c")).expect("a source");
    let wrong = source.replace("per_mille / 1000", "per_mille / 900");
    let worse = source.replace("unsigned sum = 7;", "unsigned sum = 8;");
    for (name, text) in [("good", source), ("bad", wrong), ("worse", worse)] {
        let folder = scratch.join(name);
        fs::create_dir(&folder).expect("the test's folder is writable");
        fs::write(folder.join("invoices.c"), text).expect("the test's folder is writable");
        build(&folder, "gcc -O0 -g -o invoices invoices.c");
        record(
            scratch,
            name,
            &[],
            &Program::new(folder.join("invoices"), scratch.path()),
        );
    }
}

#[test]
fn a_difference_is_told_with_both_sides() {
    let scratch = Scratch::new("told");
    with_a_bug(&scratch);
    let ended = compare(&scratch, &["good", "bad"]);
    ends_with(&ended, 1);
    let text = ended.text();
    assert!(text.lines().count() <= 40, "{text}");
    for part in [
        "A good and B bad: different",
        "1. tax_of at invoices.c:",
        "its code differs",
        "per_mille / 1000",
        "per_mille / 900",
        "stdout differs",
        "with another result",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let ended = compare(&scratch, &["good", "bad", "--json"]);
    let found: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert_eq!(found["is_same"], false);
    assert_eq!(found["suspects"][0]["function"], "tax_of");
    assert_eq!(found["threads"][0]["parting"]["how"], "result");
    let values = &found["threads"][0]["parting"]["values"][0];
    assert_eq!(values["name"], "result");
    let number = |side: &str| {
        values[side]
            .as_str()
            .and_then(|text| text.parse::<i64>().ok())
            .expect("a number")
    };
    // Both taxes are of the same net: 1000 times the one is 900 times the other, but for what division drops.
    assert!(
        (number("a") * 1000 - number("b") * 900).abs() < 2000,
        "{values}"
    );
}

#[test]
fn accepted_differences_are_no_news() {
    let scratch = Scratch::new("accepted");
    with_a_bug(&scratch);
    ends_with(
        &compare(&scratch, &["good", "bad", "--accept", "known.json"]),
        0,
    );
    let again = compare(&scratch, &["good", "bad", "--accept", "known.json"]);
    assert!(again.text().contains("were accepted"), "{}", again.text());
    ends_with(&again, 0);
    ends_with(&compare(&scratch, &["good", "bad"]), 1);
    let other = compare(&scratch, &["good", "worse", "--accept", "known.json"]);
    assert!(other.text().contains("checksum"), "{}", other.text());
    ends_with(&other, 1);
    fs::write(scratch.join("known.json"), "{}").expect("the test's folder is writable");
    let wrong = compare(&scratch, &["good", "bad", "--accept", "known.json"]);
    assert!(wrong.errors().contains("known.json"), "{}", wrong.errors());
    ends_with(&wrong, 2);
}

#[test]
fn what_the_project_ignores_is_no_difference() {
    let scratch = Scratch::new("ignored");
    with_a_bug(&scratch);
    let rules = |text: &str| {
        fs::write(
            scratch.join("hindsight.toml"),
            format!("[compare.ignore]\n{text}\n"),
        )
        .expect("the test's folder is writable");
        compare(&scratch, &["good", "bad"])
    };
    ends_with(&rules("output = [\"^invoice\", \"cents\"]"), 1);
    let functions = "functions = [\"tax_of\", \"total_of\", \"print_invoice\"]";
    let ended = rules(&format!("{functions}\noutput = [\".\"]"));
    ends_with(&ended, 0);
    let ended = rules(
        "results = [\"tax_of\", \"total_of\"]\nargs = [\"print_invoice:total\"]\nkinds = [\"output\"]",
    );
    ends_with(&ended, 0);
    for wrong in [
        "output = [\"(\"]",
        "kinds = [\"all\"]",
        "args = [\"f\"]",
        "functoins = []",
        "output = 1",
    ] {
        let ended = rules(wrong);
        assert!(
            ended.text().is_empty() && !ended.errors().is_empty(),
            "{wrong}: {}",
            ended.text()
        );
        ends_with(&ended, 2);
    }
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let scratch = Scratch::new("refused");
    let fib = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["12"]);
    record(&scratch, "one", &[], &fib);
    record(&scratch, "two", &[], &fib);
    record(
        &scratch,
        "other",
        &[],
        &Program::new(
            fixture_artifact("typed_args", "typed_args_O0"),
            scratch.path(),
        ),
    );
    let refused = |a: &str, b: &str, why: &str| {
        let ended = compare(&scratch, &[a, b]);
        assert!(
            ended.errors().contains(why),
            "{a} {b}: {}{}",
            ended.text(),
            ended.errors()
        );
        assert!(ended.text().is_empty(), "{}", ended.text());
        ends_with(&ended, 3);
    };
    refused("one", "one", "are the same recording");
    refused("one", "other", "are of different programs");
    let damaged = |name: &str, change: fn(Vec<u8>) -> Vec<u8>| {
        let from = scratch.join("two.hindsight");
        let to = scratch.join(&format!("{name}.hindsight"));
        let copied = Program::new("/bin/cp", scratch.path())
            .args([&*from.to_string_lossy(), "-r", &*to.to_string_lossy()])
            .run();
        ends_with(&copied, 0);
        let calls = to.join("columns/calls-000000.parquet");
        let bytes = fs::read(&calls).expect("a sealed file");
        fs::write(&calls, change(bytes)).expect("the test's folder is writable");
    };
    damaged("cut", |bytes| bytes[..bytes.len() / 2].to_vec());
    damaged("empty", |_| Vec::new());
    refused("one", "cut", "calls-000000.parquet");
    refused("one", "empty", "calls-000000.parquet");
    ends_with(&compare(&scratch, &["one", "missing"]), 2);
    ends_with(&compare(&scratch, &["one"]), 2);
}

#[test]
fn a_recording_that_grows_or_was_cut_is_refused() {
    let scratch = Scratch::new("unfinished");
    let steady = Steady::new(&scratch);
    let program = steady.unhurried(&scratch);
    let (running, _) = Hindsight::start_recording(&scratch, &[], &program);
    wait_until("three rounds", || (steady.rounds() >= 3).then_some(()));
    let fib = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["12"]);
    record(&scratch, "one", &[], &fib);
    let ended = compare(&scratch, &["one", "rec"]);
    assert!(
        ended.errors().contains("still being recorded"),
        "{}",
        ended.errors()
    );
    ends_with(&ended, 3);
    running.signal(Signal::KILL);
    steady.stop();
    let _ = running.finish();
    let ended = compare(&scratch, &["one", "rec"]);
    assert!(ended.errors().contains("is cut"), "{}", ended.errors());
    ends_with(&ended, 3);
}
