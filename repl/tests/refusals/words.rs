//! Slips in commands and on the command line.

use expect_test::expect;

use super::common::Folder;
use super::{check, check_args};

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
            error: there is no command "ask"
            help: hindsight help lists the commands
            --- exit code 2
        "#]],
    );
    check_args(
        &folder,
        &["brek", "main"],
        expect![[r#"
            --- stderr
            error: there is no command "brek"
            help: did you mean break? hindsight help lists the commands
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
