//! Wrong SQL: syntax, names, types, and what a query must not do.

use expect_test::expect;

use super::check;

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
        help: did you mean select?
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
fn a_wrong_type_of_an_argument_is_one_line() {
    check(
        &["select date_bin(ts_ns, 5) from calls"],
        expect![[r#"
        --- stderr
        error: there is no date_bin(Int64, Int64), only date_bin(interval, timestamp, timestamp), date_bin(interval, timestamp), date_bin(interval, time, time), date_bin(interval, time)
          1 | select date_bin(ts_ns, 5) from calls
            |        ^^^^^^^^
        help: times here are numbers of nanoseconds: ts_ns / 1000000000 is the second, to_timestamp_nanos(ts_ns) a timestamp
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
