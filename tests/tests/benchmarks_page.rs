//! Goal: docs/benchmarks.md has a figure for each row that the benchmark measures, and for no other. Method: the first table of the page is
//! compared with the list that `tests/bench/run --list` prints.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use e2e::workspace_dir;

/// The name of a row: the first cell of its line.
fn name(line: &str) -> &str {
    line.trim_matches('|')
        .split('|')
        .next()
        .unwrap_or_default()
        .trim()
}

#[test]
fn the_first_table_has_the_rows_that_are_measured() {
    let listed = Command::new(workspace_dir().join("tests/bench/run"))
        .arg("--list")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python3 is there");
    let listed = String::from_utf8(listed.stdout).expect("names are text");
    let wanted: BTreeSet<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(wanted.len() > 50, "{wanted:?}");
    let page = workspace_dir().join("docs/benchmarks.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let (_, table) = page.split_once("\n| row | what |").expect("a table");
    let rows = table.lines().skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let found: BTreeSet<&str> = rows.map(name).collect();
    assert_eq!(found, wanted);
}
