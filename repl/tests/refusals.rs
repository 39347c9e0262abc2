//! Wrong queries, names and files: transcripts of `hindsight sql`, with one clear line and the next step.

mod common;

use common::Folder;
use expect_test::{Expect, expect};

/// Runs each query and concatenates the transcripts.
fn check(questions: &[&str], expected: Expect) {
    let folder = Folder::with_shop();
    let ask = |question: &&str| folder.transcript(&["sql", "shop", question]);
    expected.assert_eq(&questions.iter().map(ask).collect::<Vec<_>>().join("\n"));
}

fn check_args(folder: &Folder, args: &[&str], expected: Expect) {
    expected.assert_eq(&folder.transcript(args));
}

#[test]
fn a_syntax_error_is_shown_with_its_place() {
    let questions = [
        "selec 1",
        "select * from calls where",
        "select (1",
        "select 'a",
        "select 1,\n  2 3",
    ];
    check(
        &questions,
        expect![[r#"
        --- stderr
        error: expected an SQL statement, found selec
          1 | selec 1
            | ^^^^^
        --- exit code 2

        --- stderr
        error: expected an expression, found the end
          1 | select * from calls where
            |                          ^
        --- exit code 2

        --- stderr
        error: expected ), found the end
          1 | select (1
            |          ^
        --- exit code 2

        --- stderr
        error: unterminated string literal
          1 | select 'a
            |        ^
        --- exit code 2

        --- stderr
        error: expected end of statement, found 3
          2 |   2 3
            |     ^
        --- exit code 2
    "#]],
    );
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let questions = [
        "select functon from calls",
        "select nope from calls",
        "select * from cals",
        "select cuont(*) from calls",
        "select c.functon from calls c",
        "select x.function from calls c",
        "select \"Function\" from calls",
    ];
    check(
        &questions,
        expect![[r#"
        --- stderr
        error: there is no column "functon"
          1 | select functon from calls
            |        ^^^^^^^
        help: did you mean function?
        --- exit code 2

        --- stderr
        error: there is no column "nope"
          1 | select nope from calls
            |        ^^^^
        --- exit code 2

        --- stderr
        error: there is no table "cals"
          1 | select * from cals
            |               ^^^^
        help: did you mean calls?
        --- exit code 2

        --- stderr
        error: there is no function "cuont"
          1 | select cuont(*) from calls
            |        ^^^^^
        help: did you mean count or cot?
        --- exit code 2

        --- stderr
        error: there is no column "functon"
          1 | select c.functon from calls c
            |        ^^^^^^^^^
        help: did you mean function?
        --- exit code 2

        --- stderr
        error: there is no table "x" in this question
          1 | select x.function from calls c
            |        ^^^^^^^^^^
        help: did you mean c?
        --- exit code 2

        --- stderr
        error: there is no column "Function"
          1 | select "Function" from calls
            |        ^^^^^^^^^^
        help: did you mean function or function_id?
        --- exit code 2
    "#]],
    );
}

#[test]
fn a_text_in_double_quotes_is_explained() {
    check(
        &["select * from calls where function = \"main\""],
        expect![[r#"
            --- stderr
            error: there is no column "main"
              1 | select * from calls where function = "main"
                |                                      ^^^^^^
            help: text is written in single quotes: 'main'
            --- exit code 2
        "#]],
    );
}

#[test]
fn wrong_types_are_told_in_words() {
    let questions = [
        "select sum(function) from calls",
        "select cast('x' as int)",
        "select 1 / 0",
        "select count(*) from calls where args = 3",
        "select function from calls group by tid",
    ];
    check(
        &questions,
        expect![[r#"
        --- stderr
        error: there is no sum(text), only sum(Decimal), sum(UInt64), sum(Int64), sum(Float64), sum(Duration), sum(Interval)
          1 | select sum(function) from calls
            |        ^^^
        --- exit code 2

        --- stderr
        error: cannot cast string 'x' to value of Int32 type
          1 | select cast('x' as int)
            |             ^^^
        --- exit code 2

        --- stderr
        error: cannot compute the answer: divide by zero error
        --- exit code 1

        --- stderr
        error: cannot compute the answer: cannot cast string 'items=2, each=1.25' to value of Int64 type
        --- exit code 1

        --- stderr
        error: 'calls.function' must appear in GROUP BY clause because it's not an aggregate expression
          1 | select function from calls group by tid
            |        ^^^^^^^^
        --- exit code 2
    "#]],
    );
}

#[test]
fn nothing_can_be_changed() {
    let questions = [
        "insert into calls values (1)",
        "delete from calls",
        "drop table calls",
        "create table t as select 1",
        "copy (select 1) to 'x.csv'",
        "set x = 1",
    ];
    check(
        &questions,
        expect![[r#"
        --- stderr
        error: INSERT INTO is refused: recordings are read-only
        help: ask with SELECT
        --- exit code 2

        --- stderr
        error: DELETE FROM is refused: recordings are read-only
        help: ask with SELECT
        --- exit code 2

        --- stderr
        error: DROP TABLE is refused: recordings are read-only
        help: ask with SELECT
        --- exit code 2

        --- stderr
        error: CREATE TABLE is refused: recordings are read-only
        help: ask with SELECT
        --- exit code 2

        --- stderr
        error: COPY is refused: recordings are read-only
        help: ask with SELECT
        --- exit code 2

        --- stderr
        error: SET is refused: recordings are read-only
        help: ask with SELECT
        --- exit code 2
    "#]],
    );
}

#[test]
fn an_empty_question_is_answered_with_an_example() {
    check(
        &["", "  \n ", " -- nothing\n;"],
        expect![[r#"
        --- stderr
        error: the question is empty
        help: for example: hindsight sql app "select * from calls limit 10"
        --- exit code 2

        --- stderr
        error: the question is empty
        help: for example: hindsight sql app "select * from calls limit 10"
        --- exit code 2

        --- stderr
        error: the question is empty
        help: for example: hindsight sql app "select * from calls limit 10"
        --- exit code 2
    "#]],
    );
}

#[test]
fn the_second_of_two_statements_is_named_by_its_line() {
    check(
        &["select 1 as a;\n\nselect nope from calls"],
        expect![[r#"
         a
        ---
         1

        --- stderr
        error: there is no column "nope"
          3 | select nope from calls
            |        ^^^^
        --- exit code 2
    "#]],
    );
}

#[test]
fn a_slip_in_a_command_is_answered_with_the_nearest() {
    check(
        &["helo", "\\timng", "\\d cals", "\\format xml", "\\rows many"],
        expect![[r#"
            --- stderr
            error: there is no command helo
            help: did you mean help?
            --- exit code 2

            --- stderr
            error: there is no command \timng
            help: did you mean \timing? "help" lists the commands
            --- exit code 2

            --- stderr
            error: there is no table cals
            help: did you mean calls?
            --- exit code 2

            --- stderr
            error: there is no format "xml"
            help: the formats are table, csv, json, jsonl, parquet
            --- exit code 2

            --- stderr
            error: \rows takes a number, not "many"
            --- exit code 2
        "#]],
    );
}

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

#[test]
fn the_command_line_itself_may_be_wrong() {
    let folder = Folder::with_shop();
    check_args(
        &folder,
        &["sql"],
        expect![[r#"
            --- stderr
            error: the following required arguments were not provided:
              <RECORDING>...

            Usage: hindsight sql [OPTIONS] <RECORDING>... [QUERY]

            For more information, try '--help'.
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["sql", "shop", "select 1", "-f", "xml"],
        expect![[r#"
            --- stderr
            error: invalid value 'xml' for '--format <FORMAT>'
              [possible values: table, csv, json, jsonl, parquet]

            For more information, try '--help'.
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["ask", "shop"],
        expect![[r#"
            --- stderr
            error: unrecognized subcommand 'ask'

            Usage: hindsight [OPTIONS] <COMMAND>

            For more information, try '--help'.
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["run", "./app"],
        expect![[r#"
            --- stderr
            error: there is no command "run"
            help: here that is: hindsight start PROGRAM, or restart to begin again
            --- exit code 2
        "#]],
    );
}

#[test]
fn a_program_that_cannot_be_recorded_is_told_with_the_reason() {
    let folder = Folder::empty();
    std::fs::create_dir(folder.path("folder")).unwrap();
    std::fs::write(folder.path("notes.txt"), "text").unwrap();
    check_args(
        &folder,
        &["record", "./missing"],
        expect![[r#"
            --- stderr
            error: cannot start ./missing: No such file or directory
            help: name a program by its path, or one in PATH by its name
            --- exit code 4
        "#]],
    );
    // A file name is not one of Hindsight's messages, so nothing is cut from it.
    check_args(
        &folder,
        &["record", "--", "./a; b"],
        expect![[r#"
            --- stderr
            error: cannot start ./a; b: No such file or directory
            help: name a program by its path, or one in PATH by its name
            --- exit code 4
        "#]],
    );
    check_args(
        &folder,
        &["record", "./note.txt"],
        expect![[r#"
            --- stderr
            error: cannot start ./note.txt: No such file or directory
            help: did you mean ./notes.txt?
            --- exit code 4
        "#]],
    );
    check_args(
        &folder,
        &["record", "./notes.txt 5"],
        expect![[r#"
            --- stderr
            error: cannot start ./notes.txt 5: No such file or directory
            help: leave the quotes out, if these are arguments: ./notes.txt 5
            --- exit code 4
        "#]],
    );
    check_args(
        &folder,
        &["record", "."],
        expect![[r#"
            --- stderr
            error: cannot start .: No such file or directory
            help: it is a folder: name a program in it
            --- exit code 4
        "#]],
    );
    check_args(
        &folder,
        &["record", "--full", "total", "--", "./orders"],
        expect![[r#"
            --- stderr
            error: there is no program total
            help: for the calls of total: hindsight record --full=total -- ./orders
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["record", "no-such-command"],
        expect![[r#"
        --- stderr
        error: cannot start no-such-command: No such file or directory
        help: it is not in PATH
        --- exit code 4
    "#]],
    );
    check_args(
        &folder,
        &["record", "notes.txt"],
        expect![[r#"
        --- stderr
        error: cannot start notes.txt: No such file or directory
        help: it is not in PATH; for the one in this folder write ./notes.txt
        --- exit code 4
    "#]],
    );
    check_args(
        &folder,
        &["record", "./notes.txt"],
        expect![[r#"
        --- stderr
        error: cannot start ./notes.txt: Permission denied
        help: make it executable: chmod +x ./notes.txt
        --- exit code 4
    "#]],
    );
    check_args(
        &folder,
        &["record", "./folder"],
        expect![[r#"
        --- stderr
        error: cannot start ./folder: Permission denied
        help: it is a folder
        --- exit code 4
    "#]],
    );
    check_args(
        &folder,
        &["record", ""],
        expect![[r#"
        --- stderr
        error: the name of the program is empty
        --- exit code 2
    "#]],
    );
    check_args(
        &folder,
        &["record"],
        expect![[r#"
        --- stderr
        error: the following required arguments were not provided:
          <PROGRAM>...

        Usage: hindsight record <PROGRAM>...

        For more information, try '--help'.
        --- exit code 2
    "#]],
    );
    assert_eq!(
        std::fs::read_dir(folder.path(".")).unwrap().count(),
        2,
        "no recording is left behind"
    );
}

#[test]
fn a_recording_is_never_overwritten() {
    check_args(
        &Folder::with_shop(),
        &["record", "-o", "shop", "true"],
        expect![[r#"
            --- stderr
            error: cannot record: shop.hindsight exists already
            help: choose another name or remove it
            --- exit code 2
        "#]],
    );
}

#[test]
fn a_process_that_cannot_be_attached_to_is_told_with_the_reason() {
    let folder = Folder::empty();
    check_args(
        &folder,
        &["record", "--attach", "2147483647"],
        expect![[r#"
            --- stderr
            error: cannot attach to process 2147483647: there is no such process
            --- exit code 4
        "#]],
    );
    check_args(
        &folder,
        &["record", "--attach", "web"],
        expect![[r#"
        --- stderr
        error: invalid value 'web' for '--attach <PID>': write the number of a process, as ps shows it

        For more information, try '--help'.
        --- exit code 2
    "#]],
    );
    check_args(
        &folder,
        &["record", "--attach", "1", "--for", "bogus"],
        expect![[r#"
            --- stderr
            error: invalid value 'bogus' for '--for <SECONDS>': "bogus" is not a unit; use ms, s, m, h or d

            For more information, try '--help'.
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["record", "--for", "10", "true"],
        expect![[r#"
        --- stderr
        error: --for needs --attach
        help: name a running process: hindsight record --attach PID --for 10
        --- exit code 2
    "#]],
    );
    let itself = "exec \"$0\" record --attach $$ 2>&1";
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", itself]).arg(common::binary());
    folder.at_home(&mut shell);
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = said.replace(|c: char| c.is_ascii_digit(), "");
    expect![[r#"
        error: cannot attach to process : it is Hindsight itself
    "#]]
    .assert_eq(&said);
}
