//! Goal: the command line lists, labels, deletes, queries and exports many recordings, and only the intended ones.
//! Method: `hindsight` on synthetic and frozen recordings; DuckDB reads the export and answers the same queries.

mod common;
#[path = "../../query/tests/common/duckdb.rs"]
mod python;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use common::{Folder, app};
use expect_test::expect;
use store::recording::{Created, OnTaken, OpenRecording};
use store::set::{Fact, ProcessLog};
use store::synth::manifest;

/// A folder with the frozen recordings and one whose program a signal ended.
fn folder() -> Folder {
    let folder = Folder::with_app();
    folder.add_frozen("shop");
    folder.add_frozen("orders");
    folder
}

fn lines(folder: &Folder, args: &[&str]) -> Vec<String> {
    let text = folder.transcript(args);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_pattern_a_folder_and_several_names_are_asked_together() {
    let folder = folder();
    let question = "select run, count(*) as calls from calls group by run order by run";
    let table = expect![[r#"
         run    | calls
        --------+-------
         app    |     8
         orders |    16
         shop   |    68
    "#]];
    for words in [
        vec!["sql", "*", question],
        vec!["sql", ".", question],
        vec!["sql", "app", "shop", "orders.hindsight", "app", question],
    ] {
        let answer = folder.transcript(&words);
        if words[1] == "*" {
            table.assert_eq(&answer);
        }
        assert_eq!(answer.lines().count(), 5, "{words:?}: {answer}");
    }
    let script = folder.transcript_with(
        &["sql", "app", "shop"],
        "select count(distinct run) n from calls",
    );
    assert!(script.ends_with(" 2\n"), "{script}");
    let one = folder.transcript(&["sql", "app", "select run from calls"]);
    assert!(
        one.contains("no column \"run\": one recording is asked"),
        "{one}"
    );
    let described = folder.transcript(&["sql", "*", "\\d gaps"]);
    assert!(
        described.contains(" run    | text  | name of the recording"),
        "{described}"
    );
}

#[test]
fn what_cannot_be_read_is_named_and_the_others_answer() {
    let folder = folder();
    fs::write(folder.path("shop.hindsight/manifest"), "damaged").unwrap();
    fs::create_dir(folder.path("empty.hindsight")).unwrap();
    fs::write(folder.path("notes.txt"), "").unwrap();
    let answer = folder.transcript(&["sql", "*", "select distinct run from calls order by run"]);
    assert!(
        answer.starts_with(" run\n--------\n app\n orders\n--- stderr\n"),
        "{answer}"
    );
    assert!(
        answer.contains("warning: ./shop.hindsight is left out: ")
            || answer.contains("warning: shop.hindsight is left out: "),
        "{answer}"
    );
    assert!(answer.contains("empty.hindsight is left out: "), "{answer}");
    let none = folder.transcript(&["sql", "nothing*", "select 1"]);
    assert!(none.contains("there is no recording nothing*"), "{none}");
    assert!(none.ends_with("--- exit code 2\n"), "{none}");
}

#[test]
fn a_name_means_the_newest_and_whole_names_mean_themselves() {
    let folder = Folder::empty();
    let record = |name: &str, start_unix_ns: i64, port: &str| {
        let mut manifest = manifest();
        manifest.start_unix_ns = start_unix_ns;
        manifest.argv = vec!["./t".to_owned(), port.to_owned()];
        let path = folder.path(name);
        let Created { open, log } =
            OpenRecording::create(&path, OnTaken::Number, manifest).unwrap();
        open.close(log.close().unwrap()).unwrap()
    };
    record("t", 1_000, "first");
    record("t", 3_000, "third");
    record("t", 2_000, "second");
    // A program called t-4 is a different one.
    record("t-4", 9_000, "other");
    let arguments = |name: &str| {
        let args = ["sql", name, "-f", "csv", "select arguments from runs"];
        let told = folder.transcript(&args);
        let mut rows = told.lines();
        rows.rfind(|line| !line.starts_with("---") && !line.starts_with("hindsight: "))
            .unwrap()
            .to_owned()
    };
    let told = folder.transcript(&["sql", "t", "select 1"]);
    let notice = "hindsight: this is t-2.hindsight, which is newer than t.hindsight";
    assert!(told.lines().any(|line| line == notice), "{told}");
    let told = folder.transcript(&["sql", "t-3", "select 1"]);
    assert!(!told.contains("which is newer"), "{told}");
    assert_eq!(arguments("t"), "third");
    assert_eq!(arguments("t.hindsight"), "first");
    assert_eq!(arguments("t-3"), "second");
    assert_eq!(arguments("t-4"), "other");
    fs::remove_dir_all(folder.path("t-2.hindsight")).unwrap();
    assert_eq!(arguments("t"), "second");
    fs::remove_dir_all(folder.path("t.hindsight")).unwrap();
    assert_eq!(arguments("t"), "second");
    record("t", 4_000, "fourth");
    assert_eq!(arguments("t"), "fourth");
}

#[test]
fn ls_shows_the_end_and_the_calls_of_each() {
    let folder = folder();
    app()
        .record_interrupted(&folder.path("killed.hindsight"))
        .unwrap();
    let listed = lines(&folder, &["ls"]);
    assert_eq!(listed.len(), 6, "{listed:?}");
    let row = |name: &str| listed.iter().find(|line| line.contains(name)).unwrap();
    assert!(row(" app.hindsight").contains("| exit 3"), "{listed:?}");
    assert!(row(" app.hindsight").contains("|     8 |"), "{listed:?}");
    assert!(
        row("killed.hindsight").contains("| incomplete |     - |"),
        "{listed:?}"
    );
    let json = folder.transcript(&["ls", "app", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["result"][0]["exit_code"], 3);
    assert_eq!(json["result"][0]["calls"], 8);
    assert_eq!(lines(&Folder::empty(), &["ls"]).len(), 2, "a heading alone");
    let wrong = folder.transcript(&["ls", "nothing"]);
    assert!(wrong.ends_with("--- exit code 2\n"), "{wrong}");
}

#[test]
fn rm_deletes_what_was_meant_and_asks_first() {
    let folder = folder();
    let refused = folder.transcript(&["rm", "app"]);
    assert!(refused.contains("there is no terminal to ask"), "{refused}");
    assert!(folder.path("app.hindsight").is_dir());
    let size = ("app", "delete 1 recording");
    for (answer, stays) in [("n\n", true), ("\n", true), ("y\n", false)] {
        let steps = [("[y/N] ", answer)];
        let shown = folder.on_terminal(80, &["TERM=dumb"], &["rm", size.0], &steps);
        assert!(shown.contains(size.1), "{shown}");
        assert_eq!(
            folder.path("app.hindsight").exists(),
            stays,
            "{answer:?}: {shown}"
        );
    }
    fs::write(folder.path("shop.hindsight/mine.txt"), "mine").unwrap();
    let deleted = folder.transcript(&["rm", "--yes", "s*"]);
    assert!(
        deleted.contains("mine.txt is no file of the recording and stays"),
        "{deleted}"
    );
    let left: Vec<_> = fs::read_dir(folder.path("shop.hindsight"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1);
    for word in [".", "nothing", "shop"] {
        let refused = folder.transcript(&["rm", "--yes", word]);
        assert!(refused.ends_with("--- exit code 2\n"), "{word}: {refused}");
    }
    assert!(folder.path("orders.hindsight").is_dir());
}

#[test]
fn nothing_is_deleted_by_way_of_a_link() {
    let folder = folder();
    let set = ProcessLog::create(&folder.path("make"), true).unwrap();
    let member = "make.children/orders.hindsight";
    fs::rename(folder.path("orders.hindsight"), folder.path(member)).unwrap();
    set.add(&Fact::Recorded {
        pid: 7,
        recording: "orders.hindsight".to_owned(),
    })
    .unwrap();
    symlink("app.hindsight", folder.path("link.hindsight")).unwrap();
    symlink("make.children", folder.path("linked.children")).unwrap();
    let refused = folder.transcript(&["rm", "--yes", "link"]);
    assert_eq!(
        refused,
        "--- stderr\nerror: link.hindsight is a symbolic link to app.hindsight\n\
         help: name what is to be deleted: hindsight rm app.hindsight; or delete the link alone: rm link.hindsight\n\
         --- exit code 2\n"
    );
    let refused = folder.transcript(&["rm", "--yes", "linked.children"]);
    let why = "linked.children is a symbolic link to make.children";
    assert!(refused.contains(why), "{refused}");
    for kept in ["app.hindsight", "link.hindsight", member] {
        let manifest = folder.path(kept).join("manifest");
        assert!(manifest.is_file(), "{kept}");
    }
}

#[test]
fn a_recording_that_is_made_is_not_deleted() {
    let folder = Folder::empty();
    let made = OpenRecording::create(&folder.path("live"), OnTaken::Refuse, manifest());
    let Created { open, log } = made.unwrap();
    let refused = folder.transcript(&["rm", "--yes", "live"]);
    assert!(
        refused.contains("live.hindsight is being recorded"),
        "{refused}"
    );
    assert!(folder.path("live.hindsight/manifest").is_file());
    drop((open, log));
}

#[test]
fn the_catalog_lists_labels_prunes_and_forgets() {
    let folder = folder();
    let runs = |args: &[&str]| {
        let mut words = vec!["runs"];
        words.extend(args);
        folder.transcript(&words)
    };
    let none = runs(&[]);
    assert!(none.contains("hindsight runs scan FOLDER"), "{none}");
    assert_eq!(runs(&["scan", "."]), "added 3 recordings\n");
    for known in [".", "shop.hindsight/.."] {
        let again = runs(&["scan", known]);
        assert_eq!(again, "added 0 recordings; 3 were known\n", "{known}");
    }
    assert_eq!(runs(&[]).lines().count(), 5);
    assert_eq!(
        runs(&["label", "app", "ci=7", "branch=main"]),
        "branch=main ci=7\n"
    );
    assert_eq!(runs(&["label", "app", "--remove", "ci"]), "branch=main\n");
    let labelled = runs(&["list", "--label", "branch=main"]);
    assert_eq!(labelled.lines().count(), 3, "{labelled}");
    assert!(labelled.contains("branch=main"), "{labelled}");
    let info = folder.transcript(&["info", "app"]);
    assert!(info.contains("\nlabels     branch=main\n"), "{info}");
    let failed = runs(&["list", "--failed", "--json"]);
    let failed: serde_json::Value = serde_json::from_str(&failed).unwrap();
    let failed = &failed["result"];
    assert_eq!(failed.as_array().unwrap().len(), 1);
    assert_eq!(failed[0]["run"], "app");
    let lost = folder.path(".local/share/hindsight/runs/entries");
    fs::remove_dir_all(&lost).unwrap();
    assert!(
        runs(&[]).contains("branch=main"),
        "labels are in the recording"
    );
    let bare = runs(&["prune", "--older", "7", "--yes"]);
    assert!(
        bare.contains("write a unit too: 7s, 7m, 7h or 7d"),
        "{bare}"
    );
    let dry = runs(&["prune", "--older", "1d", "--dry-run"]);
    assert!(dry.ends_with("3 recordings would be deleted\n"), "{dry}");
    // app has failed; the outcome of the frozen ones is unknown.
    let kept = runs(&["prune", "--older", "1d", "--keep-failed", "--yes"]);
    assert_eq!(kept, "forgot 0 runs\n");
    assert_eq!(runs(&["forget", "orders"]), "forgot 1 run\n");
    assert!(folder.path("orders.hindsight").is_dir());
    let pruned = runs(&["prune", "--older", "1d", "--label", "branch=main", "--yes"]);
    assert!(pruned.contains("deleted FOLDER/app.hindsight"), "{pruned}");
    assert!(!folder.path("app.hindsight").exists());
    assert_eq!(runs(&[]).lines().count(), 3);
    fs::remove_dir_all(folder.path("shop.hindsight")).unwrap();
    assert_eq!(runs(&[]).lines().count(), 2);
    assert!(runs(&["list", "--all"]).contains("| gone"));
    assert!(runs(&["show", "nothing"]).ends_with("--- exit code 2\n"));
}

/// What is changed or forgotten is what was meant.
#[test]
fn a_name_of_two_runs_is_refused_with_their_folders() {
    let folder = Folder::empty();
    for place in ["a", "b"] {
        folder.add_frozen("shop");
        fs::create_dir(folder.path(place)).unwrap();
        let moved = format!("{place}/shop.hindsight");
        fs::rename(folder.path("shop.hindsight"), folder.path(&moved)).unwrap();
    }
    let runs = |args: &[&str]| folder.transcript(&[&["runs"], args].concat());
    assert_eq!(runs(&["scan", "."]), "added 2 recordings\n");
    for args in [
        &["show", "shop"][..],
        &["label", "shop", "ci=7"],
        &["forget", "shop"],
    ] {
        let refused = runs(args);
        assert!(refused.contains("2 runs are called shop: "), "{refused}");
        for place in ["a", "b"] {
            let named = format!("/{place}/shop.hindsight");
            assert!(refused.contains(&named), "{refused}");
        }
        assert!(refused.ends_with("--- exit code 2\n"), "{refused}");
    }
    assert_eq!(runs(&["label", "a/shop", "ci=7"]), "ci=7\n");
    // One that is gone is not meant.
    fs::remove_dir_all(folder.path("a")).unwrap();
    assert_eq!(runs(&["forget", "shop"]), "forgot 1 run\n");
}

/// The recording of that name was moved into a set.
#[test]
fn a_name_means_a_recording_of_a_set_rather_than_one_that_is_gone() {
    let folder = Folder::with_shop();
    let runs = |args: &[&str]| folder.transcript(&[&["runs"], args].concat());
    assert_eq!(runs(&["scan", "."]), "added 1 recording\n");
    let set = ProcessLog::create(&folder.path("make"), true).unwrap();
    let member = set.dir().join("shop.hindsight");
    fs::rename(folder.path("shop.hindsight"), member).unwrap();
    set.add(&Fact::Recorded {
        pid: 7,
        recording: "shop.hindsight".to_owned(),
    })
    .unwrap();
    assert_eq!(runs(&["scan", "."]), "added 1 recording\n");
    let shown = runs(&["show", "shop"]);
    assert!(
        shown.contains("FOLDER/make.children/shop.hindsight"),
        "{shown}"
    );
}

#[test]
fn what_changes_while_prune_asks_is_looked_at_again() {
    let folder = folder();
    let runs = |args: &[&str]| folder.transcript(&[&["runs"], args].concat());
    assert_eq!(runs(&["scan", "."]), "added 3 recordings\n");
    let (orders, away) = (folder.path("orders.hindsight"), folder.path("away"));
    fs::rename(&orders, &away).unwrap();
    let change = "run:mv away orders.hindsight && rm -r shop.hindsight";
    let shown = folder.on_terminal(
        80,
        &["TERM=dumb"],
        &["runs", "prune", "--older", "1d"],
        &[("delete 2 recordings", change), ("[y/N] ", "y\n")],
    );
    assert!(shown.contains("forgot 2 runs"), "{shown}");
    assert!(!shown.contains("exit code"), "{shown}");
    assert!(!folder.path("app.hindsight").exists());
    let listed = runs(&["list", "--all"]);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(listed.contains("orders"), "{listed}");
}

/// Names of files may have any bytes. Answers in JSON have such a path as a list of them.
#[test]
fn a_name_that_is_not_utf8_is_no_obstacle() {
    let folder = Folder::with_frozen(&["shop", "orders"]);
    let odd = OsStr::from_bytes(b"odd\xff.hindsight");
    fs::rename(folder.path("orders.hindsight"), folder.path("").join(odd)).unwrap();
    let asked = |args: &[&str], last: Option<&OsStr>| {
        let output = folder.command(args).args(last).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let json = |args: &[&str], last: Option<&OsStr>| -> serde_json::Value {
        let answer: serde_json::Value = serde_json::from_str(&asked(args, last)).unwrap();
        answer["result"].clone()
    };
    assert_eq!(asked(&["runs", "scan", "."], None), "added 2 recordings\n");
    let listed = asked(&["runs"], None);
    assert!(listed.contains("odd\u{fffd}.hindsight"), "{listed}");
    assert!(listed.contains("shop.hindsight"), "{listed}");
    let rows = json(&["runs", "--json"], None);
    let odd_ones = |rows: &serde_json::Value| {
        let rows = rows.as_array().unwrap().iter();
        rows.filter(|row| row["path"].is_array()).count()
    };
    assert_eq!((rows.as_array().unwrap().len(), odd_ones(&rows)), (2, 1));
    assert_eq!(odd_ones(&json(&["ls", "--json"], None)), 1);
    for command in ["info", "check"] {
        let told = json(&[command, "--json"], Some(odd));
        assert!(told["recording"].is_array(), "{command}: {told}");
    }
    let label = asked(&["runs", "label", "shop", "a=1"], None);
    assert_eq!(label, "a=1\n");
    let deleted = asked(&["rm", "--yes"], Some(odd));
    assert!(
        deleted.starts_with("deleted odd\u{fffd}.hindsight"),
        "{deleted}"
    );
    assert!(!folder.path("").join(odd).exists());
    assert_eq!(asked(&["runs"], None).lines().count(), 3);
}

/// The tables that are exported unless others are named.
fn exported() -> impl Iterator<Item = &'static str> {
    let all = query::TABLES.iter().map(|table| table.name);
    all.filter(|table| !query::runs_again(table))
}

/// Runs a script of Python with DuckDB in the folder, and returns what it prints.
fn duckdb(folder: &Folder, script: &str, input: &str) -> String {
    let mut child = Command::new(python::python_with_duckdb())
        .args(["-c", script])
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success());
    String::from_utf8(ended.stdout).unwrap()
}

/// The page's own statements, about the only call of `main` in each recording.
#[test]
fn the_query_of_the_fleet_page_is_answered() {
    let folder = Folder::with_frozen(&["orders", "shop"]);
    folder.transcript(&["runs", "scan", "."]);
    for (run, label) in [("orders", "build=b1"), ("shop", "build=b2")] {
        let labelled = folder.transcript(&["runs", "label", run, label]);
        assert_eq!(labelled, format!("{label}\n"));
    }
    folder.transcript(&["export", "*", "--to", "lake"]);
    let page = include_str!("../../docs/fleet.md");
    let statements = page.split("```sql\n").nth(1).unwrap();
    let statements = statements.split("```").next().unwrap();
    assert!(statements.contains("'sqlite3Step'"), "{statements}");
    let script = "
import duckdb, json, sys
for statement in sys.stdin.read().split(';'):
    if statement.strip():
        answer = duckdb.sql(statement)
        rows = sorted(answer.fetchall()) if answer is not None else []
print(json.dumps(rows))
";
    let answer = duckdb(&folder, script, &statements.replace("sqlite3Step", "main"));
    assert_eq!(answer, "[[\"b1\", 288386274], [\"b2\", 167449]]\n");
}

#[test]
fn what_is_exported_is_read_by_duckdb_as_sql_shows_it() {
    let folder = folder();
    let told = folder.transcript(&["export", "*", "--to", "lake"]);
    let files = 3 * exported().count();
    let begins = format!("lake: 3 recordings, {files} files, ");
    assert!(told.starts_with(&begins), "{told}");
    let mut questions = BTreeMap::new();
    for table in exported() {
        let count = format!("select run, count(*) as n from {table} group by run order by run");
        questions.insert(table, vec![count]);
    }
    for (table, columns) in [
        (
            "calls",
            "start_seq, end_seq, function, file, line, module, args, ret_text, outs, ret, dur_ns",
        ),
        ("events", "seq, kind, function, text"),
        ("functions", "name, short_name, params, returns, calls"),
        ("output", "seq, stream, text"),
        (
            "runs",
            "program, arguments, calls, exit_code, labels, state",
        ),
    ] {
        let rows = format!("select run, {columns} from {table} order by run, 2");
        questions.get_mut(table).unwrap().push(rows);
    }
    let python = "
import duckdb, json, sys
for table, questions in json.load(sys.stdin).items():
    duckdb.sql(f\"create view {table} as from read_parquet('lake/table={table}/**/*.parquet', hive_partitioning=true)\")
    for question in questions:
        answer = duckdb.sql(question)
        for row in answer.fetchall():
            print(json.dumps(dict(zip(answer.columns, row)), ensure_ascii=False, separators=(',', ':')))
";
    let theirs = duckdb(&folder, python, &serde_json::to_string(&questions).unwrap());
    let mut ours = String::new();
    for question in questions.values().flatten() {
        ours += &folder.transcript(&["sql", "*", "-f", "jsonl", question]);
    }
    let values = |text: &str| -> Vec<serde_json::Value> {
        // Notes about what was not recorded are between the answers.
        text.lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let (theirs, mut ours) = (values(&theirs), values(&ours));
    // Without a row there is no group, and a view of empty files has no run either.
    ours.retain(|row| row["n"] != 0);
    assert!(ours.len() > 200, "{} rows", ours.len());
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
}

/// Their recordings have the same names.
#[test]
fn sets_are_exported_one_after_another_to_one_place() {
    let folder = Folder::empty();
    for name in ["web-1", "web-2"] {
        let set = ProcessLog::create(&folder.path(name), true).unwrap();
        folder.add_frozen("shop");
        let member = set.dir().join("shop.hindsight");
        fs::rename(folder.path("shop.hindsight"), member).unwrap();
        set.add(&Fact::Recorded {
            pid: 7,
            recording: "shop.hindsight".to_owned(),
        })
        .unwrap();
    }
    let export = |words: &[&str]| {
        let words = [&["export", "--table", "runs"], words].concat();
        folder.transcript(&words)
    };
    for words in [
        &["web-1", "--to", "lake"][..],
        &["web-2", "--to", "lake"],
        &["web-1", "web-2", "--to", "together"],
    ] {
        let told = export(words);
        let all = format!("{} recording", words.len() - 2);
        assert!(told.contains(&all), "{told}");
        assert!(!told.contains("stderr"), "{told}");
    }
    for lake in ["lake", "together"] {
        let found = fs::read_dir(folder.path(lake).join("table=runs")).unwrap();
        let mut found: Vec<_> = found.map(|entry| entry.unwrap().file_name()).collect();
        found.sort();
        let expected = ["run=web-1.children%2Fshop", "run=web-2.children%2Fshop"];
        assert_eq!(found, expected, "{lake}");
    }
}

#[test]
fn exports_are_refused_where_they_would_mislead() {
    let folder = folder();
    let export = |args: &[&str]| {
        let mut words = vec!["export"];
        words.extend(args);
        folder.transcript(&words)
    };
    let other = export(&["app", "--to", "gs://bucket/prefix"]);
    assert!(other.contains("not to gs://bucket/prefix"), "{other}");
    assert!(other.ends_with("--- exit code 2\n"), "{other}");
    assert!(!folder.path("gs:").exists());
    assert!(export(&["app", "--to", "lake", "--table", "cals"]).contains("there is no table cals"));
    let one = export(&["app", "--to", "lake", "--table", "calls"]);
    assert!(one.starts_with("lake: 1 recording, 1 file, "), "{one}");
    let again = export(&["app", "--to", "lake"]);
    assert!(again.contains("part-0.parquet exists already"), "{again}");
    folder.damage("shop.hindsight/columns/calls-000000.parquet", 8);
    let damaged = export(&["shop", "orders", "--to", "lake"]);
    assert!(damaged.contains("warning: shop is left out: "), "{damaged}");
    let files = exported().count();
    let begins = format!("lake: 1 recording, {files} files, ");
    assert!(damaged.starts_with(&begins), "{damaged}");
    assert!(damaged.ends_with("--- exit code 1\n"), "{damaged}");
    assert!(
        !folder.path("lake/table=calls/run=shop").exists(),
        "nothing of half a recording"
    );
    assert!(!folder.path("lake/table=functions/run=shop").exists());
}
