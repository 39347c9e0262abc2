//! Goal: other programs can read the answers: CSV, JSON, JSON lines and Parquet, bytes and nulls included. Method:
//! one answer with every kind of value, written in each format.

mod common;

use common::{Asked, shop};
use expect_test::{Expect, expect};
use query::output::{Format, write};

const SQL: &str = "SELECT seq, kind, bytes, length(text) AS chars, 1.5 AS f, seq > 9 AS b, [1, NULL] AS l, NULL AS n, 'a,\"b\"' AS q
FROM events WHERE kind IN ('stdout', 'stderr', 'fork') ORDER BY seq";
const EMPTY: &str = "SELECT seq, bytes FROM events WHERE seq < 0";

fn check(sql: &str, format: Format, expect: Expect) {
    let asked = Asked::new(|path| shop().record(path));
    let mut answer = asked.session.sql(sql).unwrap();
    let mut out = Vec::new();
    write(&mut answer, format, &mut out).unwrap();
    expect.assert_eq(std::str::from_utf8(&out).unwrap());
}

#[test]
fn csv_quotes_and_shows_bytes() {
    let sql = SQL.replace("[1, NULL] AS l, ", "");
    check(
        &sql,
        Format::Csv,
        expect![[r#"
            seq,kind,bytes,chars,f,b,n,q
            12,stdout,"hello
            ",6,1.5,true,,"a,""b"""
            13,stderr,\xfffe78,3,1.5,true,,"a,""b"""
        "#]],
    );
    check(
        EMPTY,
        Format::Csv,
        expect![[r#"
        seq,bytes
    "#]],
    );
}

#[test]
fn json_is_one_array() {
    check(
        SQL,
        Format::Json,
        expect![[r#"
            [{"seq":12,"kind":"stdout","bytes":"hello\n","chars":6,"f":1.5,"b":true,"l":[1,null],"n":null,"q":"a,\"b\""},{"seq":13,"kind":"stderr","bytes":"\\xfffe78","chars":3,"f":1.5,"b":true,"l":[1,null],"n":null,"q":"a,\"b\""}]
        "#]],
    );
    check(
        EMPTY,
        Format::Json,
        expect![[r#"
        []
    "#]],
    );
}

#[test]
fn json_lines_are_objects() {
    check(
        SQL,
        Format::JsonLines,
        expect![[r#"
            {"seq":12,"kind":"stdout","bytes":"hello\n","chars":6,"f":1.5,"b":true,"l":[1,null],"n":null,"q":"a,\"b\""}
            {"seq":13,"kind":"stderr","bytes":"\\xfffe78","chars":3,"f":1.5,"b":true,"l":[1,null],"n":null,"q":"a,\"b\""}
        "#]],
    );
    check(EMPTY, Format::JsonLines, expect![[""]]);
}

#[test]
fn parquet_reads_back() {
    let asked = Asked::new(|path| shop().record(path));
    let mut answer = asked.session.sql(SQL).unwrap();
    let mut out = Vec::new();
    assert_eq!(write(&mut answer, Format::Parquet, &mut out).unwrap(), 2);
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(
        bytes::Bytes::from(out),
        1024,
    );
    let batches: Vec<_> = reader.unwrap().map(Result::unwrap).collect();
    let table = arrow::util::pretty::pretty_format_batches(&batches).unwrap();
    expect![[r#"
        +-----+--------+--------------+-------+-----+------+-------+---+-------+
        | seq | kind   | bytes        | chars | f   | b    | l     | n | q     |
        +-----+--------+--------------+-------+-----+------+-------+---+-------+
        | 12  | stdout | 68656c6c6f0a | 6     | 1.5 | true | [1, ] |   | a,"b" |
        | 13  | stderr | fffe78       | 3     | 1.5 | true | [1, ] |   | a,"b" |
        +-----+--------+--------------+-------+-----+------+-------+---+-------+"#]]
    .assert_eq(&table.to_string());
}

#[test]
fn numbers_that_are_none_and_large_numbers_in_json() {
    let sql = "SELECT 9223372036854775807 AS max, CAST('NaN' AS DOUBLE) AS nan, CAST('-inf' AS DOUBLE) AS inf, \
        CAST('inf' AS FLOAT) AS single, CAST(0.1 AS FLOAT) AS tenth, [CAST('NaN' AS DOUBLE), 2.5, NULL] AS l, \
        CAST(NULL AS DOUBLE) AS n";
    check(
        sql,
        Format::JsonLines,
        expect![[r#"
        {"max":9223372036854775807,"nan":"NaN","inf":"-inf","single":"inf","tenth":0.1,"l":["NaN",2.5,null],"n":null}
    "#]],
    );
    // Rows by name are without what is NULL, and NaN is not.
    let asked = Asked::new(|path| shop().record(path));
    let rows = query::finding::rows(&asked.session, sql, 1, |_| ()).unwrap();
    let row = &rows.rows[0];
    assert_eq!((&row["nan"], &row["inf"]), (&"NaN".into(), &"-inf".into()));
    assert!(!row.contains_key("n"), "{row:?}");
}

#[test]
fn bytes_in_lists_are_text_too() {
    let sql =
        "SELECT array_agg(bytes ORDER BY seq) AS b FROM events WHERE kind IN ('stdout', 'stderr')";
    check(
        sql,
        Format::JsonLines,
        expect![[r#"
        {"b":["hello\n","\\xfffe78"]}
    "#]],
    );
}

#[test]
fn columns_of_one_name_are_told_apart_in_json() {
    let sql = "SELECT p.function, c.function FROM calls c JOIN calls p ON c.parent = p.start_seq WHERE c.depth = 2";
    check(
        sql,
        Format::JsonLines,
        expect![[r#"
        {"function":"free","function_2":"parse"}
    "#]],
    );
    check(
        sql,
        Format::Csv,
        expect![[r#"
        function,function
        free,parse
    "#]],
    );
}
