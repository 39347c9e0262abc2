//! Goal: what `record --children` has made is known as a whole: listed in one line, told of, checked and deleted.
//! Method: `hindsight` on a made-up set with two frozen recordings.

mod common;

use std::fs;

use common::Folder;
use expect_test::{Expect, expect};
use serde_json::Value;
use store::set::{Fact, ProcessLog};

const SECOND: i64 = 1_000_000_000;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// `make` starts a compiler that fails, and a shell that is killed. Its copy, and a program of no format, are not recorded.
fn facts() -> Vec<Fact> {
    let begin = |pid, parent, second| Fact::Begin {
        pid,
        parent,
        unix_ns: second * SECOND,
        argv: words("make -j2"),
    };
    let image = |pid, second, text| Fact::Image {
        pid,
        unix_ns: second * SECOND,
        argv: words(text),
    };
    let recorded = |pid, name: &str| Fact::Recorded {
        pid,
        recording: format!("{name}.hindsight"),
    };
    let end = |pid, second, code, signal| Fact::End {
        pid,
        unix_ns: second * SECOND,
        code,
        signal,
    };
    vec![
        begin(7, 1, 100),
        image(7, 100, "make -j2"),
        recorded(7, "shop"),
        begin(8, 7, 101),
        image(8, 101, "cc -c a.c"),
        recorded(8, "orders"),
        begin(9, 7, 102),
        image(9, 102, "sh -c wait"),
        Fact::Unrecorded {
            pid: 9,
            why: "it is odd".to_owned(),
        },
        begin(10, 7, 103),
        end(8, 104, Some(1), None),
        end(9, 103, None, Some(9)),
        end(10, 105, Some(0), None),
        end(7, 106, Some(2), None),
    ]
}

/// A folder with a set and a recording beside it.
fn folder() -> Folder {
    let folder = Folder::with_app();
    let log = ProcessLog::create(&folder.path("make"), true).unwrap();
    for fact in facts() {
        log.add(&fact).unwrap();
    }
    for name in ["shop", "orders"] {
        folder.add_frozen(name);
        let name = format!("{name}.hindsight");
        fs::rename(
            folder.path(&name),
            folder.path(&format!("make.children/{name}")),
        )
        .unwrap();
    }
    folder
}

fn check(folder: &Folder, args: &[&str], expected: &Expect) {
    expected.assert_eq(&folder.transcript(args));
}

/// The result of a JSON answer.
fn result(answer: &str) -> Value {
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["success"], true, "{answer:#}");
    answer["result"].clone()
}

#[test]
fn a_set_is_one_line_and_its_name_lists_what_is_in_it() {
    let folder = folder();
    let columns = |args: &[&str]| -> Vec<String> {
        let text = folder.transcript(args);
        let cells = |line: &str| -> Vec<String> {
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let rows = text.lines().skip(2).map(cells);
        rows.map(|cells| {
            [&cells[0], &cells[1], &cells[4], &cells[5]]
                .map(String::as_str)
                .join(" ")
        })
        .collect()
    };
    assert_eq!(
        columns(&["ls"]),
        ["make.children 4 exit 2 84", "app.hindsight 1 exit 3 8"]
    );
    assert_eq!(columns(&["ls", "*"]), columns(&["ls"]));
    assert_eq!(columns(&["ls", ".", "app", "make.chil*"]), columns(&["ls"]));
    let inside = [
        "make.children/shop.hindsight",
        "make.children/orders.hindsight",
    ];
    for word in ["make", "make.children", "make.children/*"] {
        let text = folder.transcript(&["ls", word]);
        let rows: Vec<&str> = text
            .lines()
            .skip(2)
            .map(|line| line.split('|').next().unwrap().trim())
            .collect();
        assert_eq!(rows, inside, "{word}: {text}");
    }
    let json = result(&folder.transcript(&["ls", "--json"]));
    assert_eq!(json[0]["processes"], 4);
    assert_eq!(json[0]["exit_code"], 2);
    assert_eq!(json[0]["duration_ns"], 6 * SECOND);
    assert_eq!(json[0]["recordings"][1]["calls"], 16);
    assert_eq!(json[1]["processes"], Value::Null);
}

#[test]
fn the_overview_of_a_set_says_what_failed_first() {
    let folder = folder();
    check(
        &folder,
        &["overview", "make"],
        &expect![[r#"
        make -j2: exit 2 after 6.00 s
          4 processes, 3 failed; 2 recordings
        Failed, the first one first
          sh -c wait (9): SIGKILL at 3.00 s
          cc -c a.c (8): exit 1 at 4.00 s
          make -j2 (7): exit 2 at 6.00 s
        Processes
          make -j2 (7): exit 2 <- failed
            cc -c a.c (8): exit 1 <- failed
            sh -c wait (9): SIGKILL <- failed
            make -j2 (10, a copy of its parent): exit 0
        Ask next
          hindsight overview make.children/orders.hindsight
          hindsight sql make.children "select run, count(*) as calls from calls group by run order by calls desc"
    "#]],
    );
    let short = folder.transcript(&["overview", "make", "--lines", "8"]);
    assert_eq!(short.lines().count(), 8, "{short}");
    assert!(
        short.contains("7 lines more; hindsight processes make.children"),
        "{short}"
    );
    let json = result(&folder.transcript(&["overview", "make", "--json"]));
    assert_eq!(json["failed"], 3);
    assert_eq!(json["failures"][0]["pid"], 9);
    assert_eq!(json["failures"][0]["exit_signal"], "SIGKILL");
    assert_eq!(json["tree"].as_array().unwrap().len(), 4);
}

#[test]
fn info_and_check_tell_of_all_recordings_of_a_set() {
    let folder = folder();
    check(
        &folder,
        &["info", "make"],
        &expect![[r#"
        set        make.children (2 recordings of 4 processes)
        program    make -j2
        started    1970-01-01T00:01:40Z
        lasted     6.00 s
        ended      with exit code 2
        failed     3 of 4
        unrecorded 1 program, 1 copy of its parent

        rows       84 calls, 223 events
        on disk    122.6 kB

        next       hindsight overview make.children
                   hindsight ls make.children
    "#]],
    );
    let json = result(&folder.transcript(&["info", "make", "--json"]));
    assert_eq!(
        (&json["processes"], &json["recordings"]),
        (&4.into(), &2.into())
    );
    assert_eq!(
        (&json["calls"], &json["calls_of_all"]),
        (&84.into(), &true.into())
    );
    let checked = folder.transcript(&["check", "make"]);
    assert!(
        checked.contains("make.children/shop.hindsight: whole\n"),
        "{checked}"
    );
    assert!(
        checked.ends_with("make.children: 2 recordings, 2 whole\n"),
        "{checked}"
    );
    let parts = fs::read_dir(folder.path("make.children/shop.hindsight/columns")).unwrap();
    let file = parts
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.is_file())
        .unwrap();
    let name = file
        .strip_prefix(folder.path(""))
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    folder.damage(&name, 20);
    let checked = folder.transcript(&["check", "make"]);
    assert!(
        checked.ends_with("make.children: 2 recordings, 1 whole, 1 damaged\n--- exit code 1\n"),
        "{checked}"
    );
    let json = folder.transcript(&["check", "make", "--json"]);
    assert!(json.contains("\"verdict\": \"damaged\""), "{json}");
}

#[test]
fn sets_are_not_compared_and_their_recordings_are_named() {
    let folder = folder();
    for (args, command) in [
        (
            ["compare", "make", "make.children"],
            "hindsight compare make.children/shop make.children/shop;",
        ),
        (
            ["compare", "app", "make"],
            "hindsight compare app make.children/shop;",
        ),
        (
            ["compare", "make", "app"],
            "hindsight compare make.children/shop app;",
        ),
    ] {
        let refused = folder.transcript(&args);
        for part in [
            "error: make.children is a set of recordings, and one pair of recordings is compared at a time",
            command,
            "`hindsight processes make.children` names them all",
        ] {
            assert!(refused.contains(part), "{part}\n{refused}");
        }
        assert!(refused.ends_with("--- exit code 2\n"), "{refused}");
    }
}

#[test]
fn the_processes_of_one_recording_are_in_a_table() {
    let folder = folder();
    let refused = folder.transcript(&["processes", "app"]);
    for part in [
        "error: app is a single recording, not a set",
        "hindsight sql app 'select * from processes'",
        "--- exit code 2",
    ] {
        assert!(refused.contains(part), "{part}\n{refused}");
    }
    let none = folder.transcript(&["processes", "nothing"]);
    assert!(
        none.contains("there is no set of recordings nothing"),
        "{none}"
    );
    let table = folder.transcript(&["sql", "app", "select * from processes"]);
    assert!(!table.contains("error"), "{table}");
}

#[test]
fn where_one_recording_is_wanted_a_set_is_refused() {
    let folder = folder();
    for args in [vec!["report", "make"], vec!["repl", "make.children"]] {
        let refused = folder.transcript(&args);
        assert!(
            refused
                .contains("error: make.children is a set of recordings, and one of them is wanted")
                && refused.contains(
                    "`hindsight ls make.children` lists them; name one as make.children/NAME"
                )
                && refused.ends_with("--- exit code 2\n"),
            "{args:?}: {refused}"
        );
    }
    // A recording of that name comes before the set.
    folder.add_frozen("shop");
    fs::rename(folder.path("shop.hindsight"), folder.path("make.hindsight")).unwrap();
    assert!(
        folder
            .transcript(&["info", "make"])
            .starts_with("recording  make.hindsight")
    );
    assert!(
        folder
            .transcript(&["info", "make.children"])
            .starts_with("set        make.children")
    );
}

#[test]
fn rm_deletes_a_set_or_one_of_its_recordings() {
    let folder = folder();
    let refused = folder.transcript(&["rm", "make"]);
    assert!(
        refused.contains("2 recordings") && refused.contains("no terminal to ask"),
        "{refused}"
    );
    let deleted = folder.transcript(&["rm", "--yes", "make.children/orders"]);
    assert!(
        deleted.starts_with("deleted make.children/orders.hindsight ("),
        "{deleted}"
    );
    let processes = folder.transcript(&["processes", "make", "--json"]);
    let processes = result(&processes);
    assert_eq!(
        (&processes[1]["pruned"], &processes[1]["recording"]),
        (&true.into(), &Value::Null)
    );
    assert_eq!(processes[0]["recording"], "shop.hindsight");
    fs::write(folder.path("make.children/mine.txt"), "mine").unwrap();
    let deleted = folder.transcript(&["rm", "--yes", "make"]);
    assert!(
        deleted.contains("make.children has other files and stays"),
        "{deleted}"
    );
    let left: Vec<_> = fs::read_dir(folder.path("make.children"))
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(folder.path("app.hindsight").is_dir());
}

#[test]
fn rm_of_all_that_match_takes_sets_with_them() {
    let folder = folder();
    let deleted = folder.transcript(&["rm", "--yes", "mak*"]);
    assert!(deleted.ends_with("deleted make.children\n"), "{deleted}");
    assert!(!folder.path("make.children").exists());
    // One whose recordings are gone is a set, too.
    let log = ProcessLog::create(&folder.path("empty"), true).unwrap();
    log.add(&facts()[0]).unwrap();
    assert!(folder.transcript(&["ls"]).contains("empty.children"));
    let deleted = folder.transcript(&["rm", "--yes", "empty"]);
    assert_eq!(deleted, "deleted empty.children\n");
}

#[test]
fn a_word_that_is_no_recording_is_not_passed_over() {
    let folder = folder();
    for (words, named) in [
        (["app", "select 1", "app"], "select 1"),
        (
            ["app", "select * from calls", "make"],
            "select * from calls",
        ),
        (["app", "ap", "select 1"], "ap"),
    ] {
        let told = folder.transcript(&[&["sql"], &words[..]].concat());
        let error = format!(
            "error: there is no recording {named}\nhelp: the question comes last: hindsight sql RECORDING... QUERY\n"
        );
        assert!(told.contains(&error), "{told}");
        assert!(told.ends_with("--- exit code 2\n"), "{told}");
    }
    // A pattern may match nothing.
    let told = folder.transcript(&["sql", "app", "no*", "select count(*) as n from runs"]);
    assert!(told.starts_with(" n\n---\n 1\n"), "{told}");
    assert!(told.contains("warning: no* is left out"), "{told}");
}

#[test]
fn functions_that_give_a_table_are_described() {
    let folder = Folder::with_frozen(&["orders", "shop"]);
    let listed = folder.transcript(&["sql", "orders", "\\d"]);
    assert!(listed.contains(" diff_calls('A', 'B') "), "{listed}");
    let near = folder.transcript(&["sql", "orders", "\\d diff_cals"]);
    assert!(near.contains("did you mean diff_calls?"), "{near}");
    let many = folder.transcript(&["sql", "*", "\\d locals"]);
    assert!(many.starts_with("locals('RUN', seq): "), "{many}");
    // What is described is what they give.
    for (function, call) in [
        ("backtrace", "backtrace(23)"),
        ("locals", "locals(23)"),
        ("history", "history('sold')"),
    ] {
        let name = format!("\\d {function}");
        let described = folder.transcript(&["sql", "orders", &name]);
        let rows = described
            .lines()
            .skip_while(|line| !line.contains("-+-"))
            .skip(1);
        let columns = rows.map(|row| row.split(" | ").next().unwrap_or_default().trim());
        let columns: Vec<&str> = columns.collect();
        let question = format!("select * from {call} limit 0");
        let answer = folder.transcript(&["sql", "-f", "csv", "orders", &question]);
        assert_eq!(
            answer.lines().next(),
            Some(&*columns.join(",")),
            "{described}"
        );
    }
}
