//! Goal: `hindsight test` keeps the recordings of the tests that fail, whichever program runs them, and says so. Method: a
//! passing and a failing test under a shell, ctest, `cargo test` and cargo-nextest; make and pytest are in `children/`. Of
//! Cargo's ways each run takes one; `WHOLE=1` both.

use std::fs;
use std::path::PathBuf;

use e2e::{Hindsight, Program, Recording, Row, Scratch, Status, compiled, in_turn};

/// The programs of a set.
fn programs(scratch: &Scratch, dir: &str) -> (PathBuf, Vec<Row>) {
    let dir = scratch.join("runs").join(dir);
    let listed = Hindsight::command(scratch, &["processes", "--json"])
        .args([&dir])
        .run();
    assert_eq!(listed.status, Status::Code(0), "{}", listed.errors());
    let rows = serde_json::from_value(listed.result()).expect("an array of objects");
    (dir, rows)
}

/// Runs the tests, and returns what `judge` returned in the failing program, whose name begins with "fails".
fn judged(scratch: &Scratch, command: &[&str], set: &str, code: i32) -> Vec<i64> {
    let args = [&["test", "--record-to", "runs", "--"], command].concat();
    let target = scratch.join("target");
    let ended = Hindsight::command(scratch, &args)
        .env("CARGO_TARGET_DIR", &target)
        .run();
    let told = format!("{}{}", ended.text(), ended.errors());
    assert_eq!(ended.status, Status::Code(code), "{told}");
    let (dir, rows) = programs(scratch, set);
    let begins = |row: &Row, with: &str| {
        let program = row["argv"][0].as_str().unwrap_or_default();
        program
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with(with))
    };
    let passed: Vec<&Row> = rows.iter().filter(|row| begins(row, "passes")).collect();
    assert!(!passed.is_empty(), "{rows:#?}");
    assert!(
        passed.iter().all(|row| row["recording"].is_null()),
        "{passed:#?}"
    );
    let failed = rows
        .iter()
        .filter(|row| begins(row, "fails") && row["exit_code"] != 0);
    let results = failed.map(|row| {
        let recording = Recording::new(dir.join(row["recording"].as_str().expect("it is kept")));
        let label = "select label(labels, 'result') as n from runs";
        assert_eq!(recording.row(label)["n"], "failed");
        recording.number("select cast(ret as int) from calls where function like '%judge'")
    });
    results.collect()
}

/// A folder with a program that passes and one that fails.
fn with_programs(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    for (name, code) in [("passes", "0"), ("fails", "n == 6 ? 4 : 0")] {
        let source = format!(
            "int judge(int n) {{ return {code}; }}\nint main(void) {{ return judge(6); }}\n"
        );
        compiled(&scratch, &format!("{name}.c"), &source, &["-O0", "-g"]);
    }
    scratch
}

#[test]
fn the_summary_tells_what_was_recorded_then_what_was_removed() {
    let scratch = with_programs("runner-summary");
    let test = ["test", "--record-to", "runs", "--", "/bin/sh", "-c"];
    let ended = Hindsight::command(&scratch, &test)
        .args(["./passes; ./fails; exit 0"])
        .run();
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let told = ended.errors();
    let (summary, rest) = told.split_once('\n').expect("more than a line");
    let begins = "hindsight: runs/sh.children: 3 processes, 3 recordings, ";
    assert!(summary.starts_with(begins), "{told}");
    assert!(
        summary.ends_with("; list them: hindsight processes runs/sh.children"),
        "{told}"
    );
    let kept = scratch.join("runs/sh.children/fails.hindsight");
    let removed = format!(
        "hindsight: removed 2 recordings of what passed\n\
         hindsight: ./fails ended with 4: {}\n",
        kept.display()
    );
    assert_eq!(rest, removed);
}

/// What passed has no recording any more, and is known all the same.
#[test]
fn sql_and_the_catalog_know_what_was_removed() {
    let scratch = with_programs("runner-removed");
    let hindsight = |args: &[&str]| {
        let command = Hindsight::command(&scratch, args);
        command.env("XDG_DATA_HOME", scratch.join("data")).run()
    };
    let test = ["test", "--record-to", "runs", "--", "/bin/sh", "-c"];
    hindsight(&[&test[..], &["./passes; ./fails; exit 0"]].concat());
    let (_, rows) = programs(&scratch, "sh.children");
    assert_eq!(rows.len(), 3, "{rows:#?}");
    let counted = "select count(*) as n, count(distinct pid) as pids from processes";
    let counted = hindsight(&["sql", "runs/sh.children", counted, "--json"]).result();
    assert_eq!(
        (&counted[0]["n"], &counted[0]["pids"]),
        (&3.into(), &3.into())
    );

    let ended = hindsight(&[&test[..], &["./passes; exit 0"]].concat());
    assert_eq!(ended.status, Status::Code(0), "{}", ended.errors());
    let set = "runs/sh-2.children";
    let refused = hindsight(&["sql", set, "select * from processes"]);
    assert_eq!(refused.status, Status::Code(2));
    assert!(
        refused.errors().contains("a set without recordings"),
        "{}",
        refused.errors()
    );
    let overview = hindsight(&["overview", set]).text();
    let next = overview.lines().last().unwrap_or_default();
    assert_eq!(next, format!("  hindsight processes {set}"), "{overview}");
    let runs = || hindsight(&["runs", "--json"]).result();
    let names = |runs: &serde_json::Value| -> Vec<String> {
        let rows = runs.as_array().expect("runs").iter();
        rows.map(|row| row["run"].to_string()).collect()
    };
    let listed = names(&runs());
    assert!(
        listed.iter().any(|name| name.contains("sh-2")),
        "{listed:?}"
    );
    let shown = hindsight(&["runs", "show", "sh-2.children"]);
    assert_eq!(shown.status, Status::Code(0), "{}", shown.errors());
    // A lost catalog is made again from the folder.
    fs::remove_dir_all(scratch.join("data")).expect("the folder is ours");
    let added = hindsight(&["runs", "scan", "runs"]).text();
    assert!(added.contains("and 1 set without recordings"), "{added}");
    assert_eq!(names(&runs()).len(), listed.len());
}

/// Tests may remove what git does not know.
#[test]
fn the_commands_status_counts_even_if_its_set_disappears() {
    let scratch = with_programs("runner-disappears");
    let test = ["test", "--record-to", "runs", "--", "/bin/sh", "-c"];
    let ended = Hindsight::command(&scratch, &test)
        .args(["./passes; rm -rf runs; exit 3"])
        .run();
    assert_eq!(ended.status, Status::Code(3), "{}", ended.errors());
    assert!(!ended.errors().contains("error:"), "{}", ended.errors());
}

#[test]
fn ctest() {
    let scratch = with_programs("runner-ctest");
    let tests = "add_test(passes \"./passes\")\nadd_test(fails \"./fails\")\n";
    fs::write(scratch.join("CTestTestfile.cmake"), tests).expect("the folder is ours");
    assert_eq!(judged(&scratch, &["ctest"], "ctest.children", 8), [4]);
}

/// A crate with a test program that passes and one that fails, built.
fn crate_with_tests(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let write =
        |name: &str, text: &str| fs::write(scratch.join(name), text).expect("the folder is ours");
    for folder in ["src", "tests"] {
        fs::create_dir(scratch.join(folder)).expect("the folder is ours");
    }
    write(
        "Cargo.toml",
        "[package]\nname = \"judges\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    write(
        "src/lib.rs",
        "#[inline(never)]\npub fn judge(n: i32) -> i32 { if n == 6 { 4 } else { 0 } }\n",
    );
    write(
        "tests/passes.rs",
        "#[test]\nfn passes() { assert_eq!(judges::judge(5), 0); }\n",
    );
    write(
        "tests/fails.rs",
        "#[test]\nfn fails() { assert_eq!(judges::judge(6), 0); }\n",
    );
    let built = Program::new("cargo", scratch.path())
        .args(["test", "--offline", "--no-run"])
        .env("CARGO_TARGET_DIR", scratch.join("target"))
        .run();
    assert_eq!(built.status, Status::Code(0), "{}", built.errors());
    scratch
}

/// One of them in each run.
#[test]
fn cargo_test_and_nextest() {
    let test = ["test", "--offline", "--no-fail-fast", "--tests"];
    let nextest = ["nextest", "run", "--offline", "--no-fail-fast"];
    for (words, code) in in_turn([(test, 101), (nextest, 100)]) {
        let scratch = crate_with_tests(&format!("runner-{}", words[0]));
        let command = [&["cargo"], &words[..]].concat();
        assert_eq!(judged(&scratch, &command, "cargo.children", code), [4]);
    }
}
