//! Goal: `.ci/again` lets a run pass only if its failed tests pass alone, with the same seed, and are not known to be flaky. Method: the
//! script runs in a folder of its own on reports that are made up, with a program in the place of cargo.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use e2e::{Scratch, workspace_dir};

/// A report about two programs, in each of which one test failed.
const REPORT: &str = "     Running tests/ages.rs (target/release/deps/ages-0123abcd)
test of_rust ... ok
test of_c ... FAILED
test result: FAILED. 1 passed; 1 failed
     Running unittests src/lib.rs (target/release/deps/store-4567abcd)
test log::whole ... FAILED
test result: FAILED. 0 passed; 1 failed
error: 2 targets failed:
    `-p e2e --test ages`
    `-p store --lib`
";

/// Notes what it is asked; all tests pass but `$FAILS`.
const CARGO: &str = r#"#!/bin/sh
echo "$PROPTEST_RNG_SEED $*" >>asked
for name; do :; done
[ "$name" != "$FAILS" ] || exit 101
echo "test $name ... ok"
"#;

/// What the script has done.
struct Done {
    code: Option<i32>,
    /// What cargo was asked, with the seed.
    asked: String,
    /// The list of flaky tests afterwards.
    flaky: String,
}

/// Runs the script on a report; `flaky` is the list before, `fails` the test that also fails alone.
fn again(report: &str, flaky: &str, fails: &str) -> Done {
    let scratch = Scratch::new("ci-again");
    let bin = scratch.join("bin");
    for folder in [&bin, &scratch.join(".ci")] {
        fs::create_dir(folder).expect("the test's folder is writable");
    }
    for (file, text) in [
        ("report", report),
        (".ci/flaky", flaky),
        ("asked", ""),
        ("bin/cargo", CARGO),
    ] {
        fs::write(scratch.join(file), text).expect("the test's folder is writable");
    }
    fs::set_permissions(bin.join("cargo"), Permissions::from_mode(0o755)).expect("it is ours");
    let path = std::env::var("PATH").expect("there is a PATH");
    let ended = Command::new(workspace_dir().join(".ci/again"))
        .arg("report")
        .current_dir(scratch.path())
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("PROPTEST_RNG_SEED", "17")
        .env("FAILS", fails)
        .output()
        .expect("bash is there");
    let read = |file| fs::read_to_string(scratch.join(file)).expect("it is there");
    Done {
        code: ended.status.code(),
        asked: read("asked"),
        flaky: read(".ci/flaky"),
    }
}

#[test]
fn a_test_that_passes_alone_is_flaky_and_the_run_passes() {
    let done = again(REPORT, "", "");
    assert_eq!(done.code, Some(0));
    let asked = "17 test --release --workspace --test=ages -- --exact of_c
17 test --release --workspace --lib -- --exact log::whole
";
    assert_eq!(done.asked, asked);
    let added: Vec<&str> = done.flaky.lines().collect();
    let starts = ["--test=ages of_c: ? (", "--lib log::whole: ? ("];
    assert_eq!(added.len(), starts.len(), "{added:?}");
    for (line, start) in added.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
        assert!(line.ends_with(", seed 17)"), "{line}");
    }
}

#[test]
fn a_test_that_is_known_to_be_flaky_fails_the_run() {
    let known = "--test=ages of_c: a race\n";
    let done = again(REPORT, known, "");
    assert_eq!(done.code, Some(1));
    assert!(done.flaky.starts_with(known), "{}", done.flaky);
    let added = "--lib log::whole: ? (";
    assert!(done.flaky.contains(added), "{}", done.flaky);
}

#[test]
fn a_test_that_fails_again_fails_the_run() {
    for fails in ["of_c", "log::whole"] {
        let done = again(REPORT, "", fails);
        assert_eq!((done.code, done.flaky.as_str()), (Some(1), ""), "{fails}");
        assert!(done.asked.contains(fails), "{}", done.asked);
    }
}

#[test]
fn what_cannot_be_chance_is_not_tried_again() {
    let crashed = REPORT.replacen("test result: FAILED", "signal: 11", 1);
    let many = REPORT.replace("test of_rust ... ok", &"test of_x ... FAILED\n".repeat(4));
    let lint = format!("{REPORT}error: clippy or rustdoc failed\n");
    let other = "error: could not compile `store`\n".to_owned();
    for report in [crashed, many, lint, other] {
        let done = again(&report, "", "");
        let asked = (done.code, done.asked.as_str(), done.flaky.as_str());
        assert_eq!(asked, (Some(1), "", ""), "{report}");
    }
}
