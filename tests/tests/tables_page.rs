//! Goal: docs/sql.md has every column of every table, in order. Method: the tables themselves are asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use e2e::{Hindsight, Program, Scratch, fixture_artifact};

/// The columns that each section of the page lists: the words in backticks of the first cells.
fn listed(page: &str) -> BTreeMap<String, Vec<String>> {
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut section = String::new();
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            section = name.to_owned();
        }
        let cell = line
            .strip_prefix("| ")
            .and_then(|rest| rest.split(" | ").next());
        if let Some(cell) = cell.filter(|cell| cell.starts_with('`')) {
            let names = cell.split('`').skip(1).step_by(2).map(str::to_owned);
            tables.entry(section.clone()).or_default().extend(names);
        }
    }
    tables
}

#[test]
fn the_page_has_the_columns_of_all_tables() {
    let scratch = Scratch::new("tables-page");
    let fib = Program::new(fixture_artifact("fib", "fib"), scratch.path()).args(["5"]);
    let (_, recording) = Hindsight::record(&scratch, &[], &fib);
    let sql = "select table_name, column_name from information_schema.columns \
               where table_schema <> 'information_schema' order by table_name, ordinal_position";
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in recording.rows(sql) {
        let text = |column: &str| row[column].as_str().expect("a text").to_owned();
        tables
            .entry(text("table_name"))
            .or_default()
            .push(text("column_name"));
    }
    assert!(tables.len() > 20, "{:?}", tables.keys());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sql.md");
    let page = listed(&fs::read_to_string(page).expect("the page"));
    for (table, columns) in &tables {
        assert_eq!(page.get(table), Some(columns), "{table}");
    }
}
