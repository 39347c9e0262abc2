//! Answers to correct queries: transcripts of `hindsight sql` on a frozen recording, in every output format.

mod common;

use common::Folder;
use expect_test::{Expect, expect};

const OUTPUT: &str =
    "select seq, stream, text, bytes, null as nothing, 1.5e300 as big from output where seq > 100";

fn check(args: &[&str], expected: Expect) {
    let folder = Folder::with_shop();
    let mut all = vec!["sql", "shop"];
    all.extend(args);
    expected.assert_eq(&folder.transcript(&all));
}

#[test]
fn tables_align_numbers_and_wide_characters_and_show_null() {
    check(
        &[OUTPUT],
        expect![[r#"
             seq | stream | text                                         | bytes                                                  | nothing |     big
            -----+--------+----------------------------------------------+--------------------------------------------------------+---------+---------
             107 | stdout | order 3 for Ada: 7.50 €, 00042f17, 13 ways\n | order 3 for Ada: 7.50 €, 00042f17, 13 ways\n           | NULL    | 1.5e300
             128 | stdout | order 4 for Zoë: 3.75 €, 008d46e4, 3 ways\n  | order 4 for Zoë: 3.75 €, 008d46e4, 3 ways\n            | NULL    | 1.5e300
             135 | stderr | an order without items ��\n                  | \x616e206f7264657220776974686f7574206974656d7320fffe0a | NULL    | 1.5e300
             146 | stdout | order 6 for 世界: 1.25 €, 01c51683, 1 ways\n | order 6 for 世界: 1.25 €, 01c51683, 1 ways\n           | NULL    | 1.5e300
        "#]],
    );
}

#[test]
fn csv_quotes_what_must_be_quoted() {
    check(
        &[OUTPUT, "-f", "csv"],
        expect![[r#"
        seq,stream,text,bytes,nothing,big
        107,stdout,"order 3 for Ada: 7.50 €, 00042f17, 13 ways
        ","order 3 for Ada: 7.50 €, 00042f17, 13 ways
        ",,1.5e300
        128,stdout,"order 4 for Zoë: 3.75 €, 008d46e4, 3 ways
        ","order 4 for Zoë: 3.75 €, 008d46e4, 3 ways
        ",,1.5e300
        135,stderr,"an order without items ��
        ",\x616e206f7264657220776974686f7574206974656d7320fffe0a,,1.5e300
        146,stdout,"order 6 for 世界: 1.25 €, 01c51683, 1 ways
        ","order 6 for 世界: 1.25 €, 01c51683, 1 ways
        ",,1.5e300
    "#]],
    );
}

#[test]
fn json_is_one_array() {
    check(
        &[OUTPUT, "--json"],
        expect![[r#"
            {"id":1,"result":[{"seq":107,"stream":"stdout","text":"order 3 for Ada: 7.50 €, 00042f17, 13 ways\n","bytes":"order 3 for Ada: 7.50 €, 00042f17, 13 ways\n","nothing":null,"big":1.5e300},{"seq":128,"stream":"stdout","text":"order 4 for Zoë: 3.75 €, 008d46e4, 3 ways\n","bytes":"order 4 for Zoë: 3.75 €, 008d46e4, 3 ways\n","nothing":null,"big":1.5e300},{"seq":135,"stream":"stderr","text":"an order without items ��\n","bytes":"\\x616e206f7264657220776974686f7574206974656d7320fffe0a","nothing":null,"big":1.5e300},{"seq":146,"stream":"stdout","text":"order 6 for 世界: 1.25 €, 01c51683, 1 ways\n","bytes":"order 6 for 世界: 1.25 €, 01c51683, 1 ways\n","nothing":null,"big":1.5e300}],"success":true}
        "#]],
    );
}

#[test]
fn json_lines_are_one_object_each() {
    check(
        &[OUTPUT, "-f", "jsonl"],
        expect![[r#"
        {"seq":107,"stream":"stdout","text":"order 3 for Ada: 7.50 €, 00042f17, 13 ways\n","bytes":"order 3 for Ada: 7.50 €, 00042f17, 13 ways\n","nothing":null,"big":1.5e300}
        {"seq":128,"stream":"stdout","text":"order 4 for Zoë: 3.75 €, 008d46e4, 3 ways\n","bytes":"order 4 for Zoë: 3.75 €, 008d46e4, 3 ways\n","nothing":null,"big":1.5e300}
        {"seq":135,"stream":"stderr","text":"an order without items ��\n","bytes":"\\x616e206f7264657220776974686f7574206974656d7320fffe0a","nothing":null,"big":1.5e300}
        {"seq":146,"stream":"stdout","text":"order 6 for 世界: 1.25 €, 01c51683, 1 ways\n","bytes":"order 6 for 世界: 1.25 €, 01c51683, 1 ways\n","nothing":null,"big":1.5e300}
    "#]],
    );
}

#[test]
fn parquet_is_for_files_only() {
    check(
        &[OUTPUT, "-f", "parquet"],
        expect![[r#"
        --- stderr
        error: Parquet cannot be shown on a terminal
        help: write it to a file: hindsight sql RECORDING QUERY -o FILE.parquet
        --- exit code 2
    "#]],
    );
}

#[test]
fn nothing_is_cut_in_a_pipe() {
    let wide =
        "select path, build_id, path as again, build_id as twice from modules where module_id = 1";
    check(
        &[wide],
        expect![[r#"
             path                                | build_id                                 | again                               | twice
            -------------------------------------+------------------------------------------+-------------------------------------+------------------------------------------
             /usr/lib/x86_64-linux-gnu/libc.so.6 | 93ac61ec5a8eb1396f9fbd350e3169a558528a40 | /usr/lib/x86_64-linux-gnu/libc.so.6 | 93ac61ec5a8eb1396f9fbd350e3169a558528a40
        "#]],
    );
}

#[test]
fn no_rows_still_have_a_heading_in_every_form() {
    let none = "select seq, reason from gaps";
    check(
        &[none],
        expect![[r#"
         seq | reason
        -----+--------
    "#]],
    );
    check(
        &[none, "-f", "csv"],
        expect![[r#"
        seq,reason
    "#]],
    );
    check(
        &[none, "-f", "json"],
        expect![[r#"
        []
    "#]],
    );
    check(&[none, "-f", "jsonl"], expect![[""]]);
}

#[test]
fn several_statements_are_parted_and_commands_work_too() {
    check(
        &["select 1 as a; select 2 as b;\n\\d gaps\n"],
        expect![[r#"
             a
            ---
             1

             b
            ---
             2

             column | type  | meaning
            --------+-------+-----------------------------------------------------------
             seq    | int64 | number in the recording's order
             ts_ns  | int64 | time, ns since the recording began
             tid    | int32 | thread that lost them; null when not known
             lost   | int64 | how many events, or copies of memory; null when not known
             reason | text  | why
        "#]],
    );
}

#[test]
fn rows_are_limited_when_asked() {
    check(
        &[
            "--rows",
            "2",
            "select start_seq from calls order by start_seq",
        ],
        expect![[r#"
             start_seq
            -----------
                     8
                     9
            --- stderr
            hindsight: there are more rows; --rows 0 shows all
        "#]],
    );
}

#[test]
fn explain_shows_the_plan_in_lines() {
    check(
        &["explain select 1"],
        expect![[r#"
        logical_plan
          Projection: Int64(1)
            EmptyRelation: rows=1
        physical_plan
          ProjectionExec: expr=[1 as Int64(1)]
            PlaceholderRowExec
    "#]],
    );
}

#[test]
fn a_file_gets_the_form_of_its_name() {
    let folder = Folder::with_shop();
    let question = "select seq, stream from output order by seq limit 2";
    for name in ["a.csv", "a.json", "a.jsonl", "a.parquet"] {
        let output = folder.run_with(&["sql", "shop", question, "-o", name], "");
        assert!(output.status.success(), "{name}: {output:?}");
        assert!(output.stdout.is_empty(), "{name}: {output:?}");
    }
    let read = |name| std::fs::read_to_string(folder.path(name)).unwrap();
    expect![[r#"
        seq,stream
        21,stdout
        48,stdout
        [{"seq":21,"stream":"stdout"},{"seq":48,"stream":"stdout"}]
        {"seq":21,"stream":"stdout"}
        {"seq":48,"stream":"stdout"}
    "#]]
    .assert_eq(&(read("a.csv") + &read("a.json") + &read("a.jsonl")));
    let parquet = std::fs::read(folder.path("a.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
}

#[test]
fn a_file_is_announced_with_rows_and_bytes() {
    check(
        &["select 1 as a", "-o", "new.csv"],
        expect![[r#"
        --- stderr
        hindsight: new.csv: 1 row, 4 B
    "#]],
    );
}

#[test]
fn a_device_is_no_file_to_be_spared() {
    check(
        &["select 1 as a", "-o", "/dev/stdout", "-f", "csv"],
        expect![[r#"
            a
            1
            --- stderr
            hindsight: /dev/stdout: 1 row
        "#]],
    );
}

#[test]
fn a_live_or_interrupted_recording_is_noted() {
    let folder = Folder::with_interrupted_app();
    let transcript = folder.transcript(&["sql", "app", "select count(*) as calls from calls"]);
    expect![[r#"
         calls
        -------
             8
        --- stderr
        hindsight: note: this recording is incomplete: its end is missing; seen: 26 events in 5.0 ms
    "#]]
    .assert_eq(&transcript);
}

#[test]
fn losses_and_skipped_functions_are_rows() {
    let folder = Folder::with_app();
    let question = "select lost, reason from gaps; select function, state, reason from probes";
    expect![[r#"
         lost | reason
        ------+-----------
           17 | ring full

         function    | state   | reason
        -------------+---------+--------------------
         main        | armed   | NULL
         json::parse | armed   | NULL
         scale       | armed   | NULL
         tiny        | skipped | too short to patch
    "#]]
    .assert_eq(&folder.transcript(&["sql", "app", question]));
}
