//! Goal: docs/conformance.md names only tests that exist. Method: its tables are read; each name that one of our files
//! follows is a test in that file.

use std::{collections::HashMap, fs, path::Path};

/// Names in a row that stand before a file, and its path as the row has it: `` `a`, `b` ([c.rs](path/c.rs)) ``. `(there too)` means
/// the file before.
fn named(row: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut last = None;
    for (at, _) in row.match_indices(" (") {
        let behind = &row[at + 2..];
        let path = match behind.strip_prefix('[') {
            Some(link) => link
                .split_once("](")
                .and_then(|(_, path)| Some(path.split_once(')')?.0)),
            None => last.filter(|_| behind.starts_with("there too)")),
        };
        let Some(path) = path.filter(|path| path.ends_with(".rs")) else {
            continue;
        };
        last = Some(path);
        let mut before = &row[..at];
        while let Some((rest, name)) = before
            .strip_suffix('`')
            .and_then(|rest| rest.rsplit_once('`'))
        {
            found.push((name, path));
            match rest.strip_suffix(", ").or(rest.strip_suffix(" and ")) {
                Some(rest) => before = rest,
                None => break,
            }
        }
    }
    found
}

/// Returns whether a file has a test of this name: a function after `#[test]`, or a line of a macro that generates
/// one.
fn has_test(text: &str, name: &str) -> bool {
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        let function = line.strip_prefix("fn ");
        let rest = function.unwrap_or(line).strip_prefix(name);
        let is_it = |rest: &str| match function {
            Some(_) => is_test && rest.starts_with('('),
            None => rest.starts_with([':', ',', ' ']),
        };
        if rest.is_some_and(is_it) {
            return true;
        }
        is_test = match line.starts_with("#[") {
            true => is_test || line == "#[test]",
            false => is_test && line.starts_with("//"),
        };
    }
    false
}

#[test]
fn every_test_that_the_page_names_exists() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = fs::read_to_string(docs.join("conformance.md")).expect("the page is there");
    let mut files: HashMap<&str, String> = HashMap::new();
    let mut missing = Vec::new();
    let mut names = 0;
    for row in page.lines().filter(|line| line.starts_with("| S")) {
        let item = row.split('|').nth(1).unwrap_or_default().trim();
        for (name, path) in named(row) {
            let file = docs.join(path);
            let text = files.entry(path).or_insert_with(|| {
                fs::read_to_string(&file).unwrap_or_else(|e| panic!("{item}: {path}: {e}"))
            });
            names += 1;
            if !has_test(text, name) {
                missing.push(format!("{item}: {name} in {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(names > 400, "only {names} names were found in the page");
}

#[test]
fn names_and_their_files_are_found_in_a_row() {
    let row = "| S0-01 | `x` (y) | `a`, `b` ([c.rs](../c.rs)), `d` and `e` (there too); `f` ([g.md](g.md)) |";
    let c = "../c.rs";
    assert_eq!(named(row), [("b", c), ("a", c), ("e", c), ("d", c)]);
}

#[test]
fn a_function_that_is_no_test_does_not_count() {
    let text =
        "#[test]\n/// Words.\n#[cfg(unix)]\nfn one() {\n}\nfn two() {\nmade! {\nthree: x,\n}";
    for (name, expected) in [
        ("one", true),
        ("on", false),
        ("two", false),
        ("three", true),
    ] {
        assert_eq!(has_test(text, name), expected, "{name}");
    }
}
