//! SQL knows what the set knows.

use e2e::{Hindsight, Scratch};

use crate::{Set, assert_same};

/// SQL knows of each process what the set knows: copies, what a process became, and what copies made.
#[test]
fn sql_knows_the_processes_that_are_not_recorded() {
    let scratch = Scratch::new("children_sql");
    let script = "(exit 3) & wait $!; (sh -c 'kill -9 $$'; (exit 4); true); exec cat /dev/null";
    let (native, set) = Set::of_shell(&scratch, script);
    assert_same(&native, &set);
    assert!(
        set.ended.errors().contains("5 processes, 3 recordings"),
        "{}",
        set.ended.errors()
    );
    let asked = "SELECT pid, parent, program, arguments, exit_code, exit_signal, ended_ts_ns >= ts_ns AS ends \
                 FROM processes";
    let asked = Hindsight::command(&scratch, &["sql", "set", asked, "--json"]).run();
    assert_eq!(asked.errors(), "");
    let mut told: Vec<String> = Vec::new();
    for row in asked.result().as_array().expect("rows") {
        let arguments = row["arguments"].as_str().expect("text");
        let last = arguments.split(' ').next_back().unwrap_or_default();
        let last = last.trim_end_matches('\'');
        told.push(format!(
            "{} {} {} {last} {} {}",
            row["pid"], row["parent"], row["program"], row["exit_code"], row["exit_signal"]
        ));
        let became = row["pid"] == set.rows[0]["pid"] && row["program"] != "cat";
        assert_eq!(row["ends"].is_null(), became, "{row}");
    }
    let mut known: Vec<String> = Vec::new();
    for row in &set.rows {
        let argv = row["argv"].as_array().expect("words");
        let last = argv.last().and_then(|word| word.as_str()).expect("text");
        let last = last.split(' ').next_back().unwrap_or_default();
        known.push(format!(
            "{} {} {} {last} {} {}",
            row["pid"], row["parent"], argv[0], row["exit_code"], row["exit_signal"]
        ));
    }
    told.sort();
    known.sort();
    assert_eq!(told, known, "{:#?}", set.rows);
    // One recording, asked alone, names those that it made.
    let alone = "SELECT count(*) AS n, count(program) AS named FROM processes";
    let alone = Hindsight::command(
        &scratch,
        &["sql", "set.children/sh.hindsight", alone, "--json"],
    )
    .run();
    let alone = alone.result()[0].clone();
    assert_eq!(
        (&alone["n"], &alone["named"]),
        (&6.into(), &6.into()),
        "{alone}"
    );
}
