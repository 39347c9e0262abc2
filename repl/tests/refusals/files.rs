//! Files and folders that are wrong, missing or already there.

use expect_test::expect;

use super::check_args;
use super::common::Folder;

#[test]
fn an_existing_file_is_not_overwritten() {
    let folder = Folder::with_shop();
    std::fs::write(folder.path("old.csv"), "precious").unwrap();
    check_args(
        &folder,
        &["sql", "shop", "select 1", "-o", "old.csv"],
        expect![[r#"
            --- stderr
            error: old.csv exists already
            help: choose another name or remove it
            --- exit code 2
        "#]],
    );
    assert_eq!(
        std::fs::read_to_string(folder.path("old.csv")).unwrap(),
        "precious"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_told() {
    let folder = Folder::with_shop();
    check_args(
        &folder,
        &["sql", "shop", "select 1", "-o", "no/such/folder.csv"],
        expect![[r#"
            --- stderr
            error: cannot write no/such/folder.csv: No such file or directory
            --- exit code 1
        "#]],
    );
    check_args(
        &folder,
        &["sql", "shop", "select 1", "-o", "/dev/full", "-f", "csv"],
        expect![[r#"
            --- stderr
            error: cannot write /dev/full: No space left on device
            --- exit code 1
        "#]],
    );
}

#[test]
fn a_wrong_question_leaves_no_file() {
    let folder = Folder::with_shop();
    let output = folder.run_with(
        &["sql", "shop", "select nope from calls", "-o", "a.csv"],
        "",
    );
    assert_eq!(output.status.code(), Some(2));
    let output = folder.run_with(&["sql", "shop", "select 1/0", "-o", "a.csv"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(!folder.path("a.csv").exists());
}

#[test]
fn a_file_takes_one_answer_in_a_form_for_files() {
    let folder = Folder::with_shop();
    check_args(
        &folder,
        &["sql", "shop", "select 1", "-o", "answer"],
        expect![[r#"
            --- stderr
            error: the format table is for terminals; files take csv, json, jsonl or parquet
            help: choose one by --format or by the file's ending
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["sql", "shop", "select 1; select 2", "-o", "a.csv"],
        expect![[r#"
            --- stderr
            error: a file takes the answer to one question
            help: ask one at a time, each into a file of its own
            --- exit code 2
        "#]],
    );
}

#[test]
fn a_missing_recording_is_answered_with_the_nearest() {
    let folder = Folder::with_shop();
    check_args(
        &folder,
        &["sql", "shp", "select 1"],
        expect![[r#"
        --- stderr
        error: there is no recording shp
        help: did you mean shop.hindsight?
        --- exit code 2
    "#]],
    );
    check_args(
        &folder,
        &["info", "shop.hindsigth"],
        expect![[r#"
        --- stderr
        error: there is no recording shop.hindsigth
        help: did you mean shop.hindsight?
        --- exit code 2
    "#]],
    );
    check_args(
        &Folder::empty(),
        &["check", "shop"],
        expect![[r#"
        --- stderr
        error: there is no recording shop
        help: make one with `hindsight record PROGRAM`, or name its folder
        --- exit code 2
    "#]],
    );
}

#[test]
fn another_folder_is_no_recording() {
    let folder = Folder::with_shop();
    std::fs::create_dir(folder.path("empty")).unwrap();
    std::fs::write(folder.path("hello.c"), "text").unwrap();
    check_args(
        &folder,
        &["overview", "hello.c"],
        expect![[r#"
            --- stderr
            error: hello.c is not a recording: it is a file, and a recording is a folder
            help: name a folder made by `hindsight record`, like app.hindsight
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["sql", "shop", "hello.c", "select 1"],
        expect![[r#"
            --- stderr
            error: there is no recording hello.c
            help: the question comes last: hindsight sql RECORDING... QUERY
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["sql", "shop", "select * from backtrace"],
        expect![[r#"
            --- stderr
            error: backtrace is a function that gives a table
              1 | select * from backtrace
                |               ^^^^^^^^^
            help: write: select * from backtrace(seq)
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["history", "shp"],
        expect![[r#"
            --- stderr
            error: shp was taken as an expression, and there is no live session
            help: of a recording: hindsight history shop EXPRESSION
            --- exit code 1
        "#]],
    );
    check_args(
        &folder,
        &["sql", "empty", "select 1"],
        expect![[r#"
            --- stderr
            error: empty is not a recording: it has no manifest
            help: name a folder made by `hindsight record`, like app.hindsight
            --- exit code 2
        "#]],
    );
}
