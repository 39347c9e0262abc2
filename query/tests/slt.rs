//! Goal: every table, computed column and rewritten filter returns what the recording holds. Method: files
//! `slt/*.slt` of queries, each followed by `----` and the expected rows, on small recordings. `UPDATE_EXPECT=1`
//! rewrites the expected rows.

mod common;

use std::fmt::Write;
use std::path::Path;

use common::{Asked, frozen, made_calls, shop};
use store::synth::{Synth, debugged};

fn check(file: &str) {
    check_on(file, shop());
}

fn check_on(file: &str, synth: Synth) {
    check_asked(file, &Asked::new(|path| synth.record(path)));
}

fn check_asked(file: &str, asked: &Asked) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/slt")
        .join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut found = String::new();
    let mut questions = 0;
    for block in text.split("\n\n").map(str::trim).filter(|b| !b.is_empty()) {
        if !found.is_empty() {
            found.push('\n');
        }
        let comment = block.lines().all(|line| line.starts_with('#'));
        if comment {
            writeln!(found, "{block}").unwrap();
            continue;
        }
        let sql = block.split("\n----").next().unwrap();
        write!(found, "{sql}\n----\n{}", asked.ask(sql)).unwrap();
        questions += 1;
    }
    assert!(questions > 0, "{file} asks nothing");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &found).unwrap();
    } else {
        expect_test::expect_file![&path].assert_eq(&found);
    }
}

#[test]
fn calls() {
    check("calls.slt");
}

#[test]
fn events() {
    check("events.slt");
}

#[test]
fn other_tables() {
    check("tables.slt");
}

#[test]
fn live_control() {
    check_on("live.slt", debugged());
}

#[test]
fn system_calls() {
    check_on("syscalls.slt", made_calls());
}

#[test]
fn states() {
    check_asked("state.slt", &Asked::new(|path| frozen("orders", path)));
}

#[test]
fn filters_on_names() {
    check("filters.slt");
}

#[test]
fn subqueries_compare_with_the_question_around_them() {
    check("subqueries.slt");
}

#[test]
fn groups_by_names() {
    check("groups.slt");
}

#[test]
fn sums_and_arithmetic() {
    check("sums.slt");
}

#[test]
fn wrong_questions() {
    check("errors.slt");
}

#[test]
fn functions_of_ours() {
    check("functions.slt");
}
