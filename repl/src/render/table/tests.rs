//! Goal: tables are aligned, cut to a terminal, or shown as one record below the other. Method: compare the output as
//! text.

use super::*;
use expect_test::{Expect, expect};

fn sample() -> Table {
    let column = |name: &str, align| Column {
        name: name.to_owned(),
        align,
    };
    let mut table = Table::new(vec![
        column("seq", Align::Right),
        column("function", Align::Left),
        column("args", Align::Left),
    ]);
    let text = |s: &str| Some(s.to_owned());
    table.push(vec![
        text("7"),
        text("parse"),
        text("n=5, s=0x55d0c3a4b2a0"),
    ]);
    table.push(vec![text("48211"), text("json::run"), None]);
    table.push(vec![None, text("NULL"), text("a\nb\x1b[2J")]);
    table
}

fn check(mut table: Table, layout: Layout, expected: Expect) {
    let mut out = Vec::new();
    table.flush(&mut out, layout, Colour::Off).unwrap();
    expected.assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn a_pipe_gets_whole_cells() {
    check(
        sample(),
        Layout::Whole,
        expect![[r#"
               seq | function  | args
            -------+-----------+-----------------------
                 7 | parse     | n=5, s=0x55d0c3a4b2a0
             48211 | json::run | NULL
              NULL | "NULL"    | a\nb\x1b[2J
        "#]],
    );
}

#[test]
fn a_terminal_cuts_text_but_never_numbers() {
    check(
        sample(),
        Layout::Fit(40),
        expect![[r#"
               seq | function  | args
            -------+-----------+--------------------
                 7 | parse     | n=5, s=0x55d0c3...
             48211 | json::run | NULL
              NULL | "NULL"    | a\nb\x1b[2J
        "#]],
    );
}

#[test]
fn what_does_not_fit_becomes_records() {
    check(
        sample(),
        Layout::Fit(30),
        expect![[r#"
            -[ 1 ]--------
            seq      | 7
            function | parse
            args     | n=5, s=0x55d0c3a...
            -[ 2 ]--------
            seq      | 48211
            function | json::run
            args     | NULL
            -[ 3 ]--------
            seq      | NULL
            function | "NULL"
            args     | a\nb\x1b[2J
        "#]],
    );
}

#[test]
fn records_in_a_pipe_are_whole() {
    check(
        sample(),
        Layout::Records(None),
        expect![[r#"
            -[ 1 ]--------
            seq      | 7
            function | parse
            args     | n=5, s=0x55d0c3a4b2a0
            -[ 2 ]--------
            seq      | 48211
            function | json::run
            args     | NULL
            -[ 3 ]--------
            seq      | NULL
            function | "NULL"
            args     | a\nb\x1b[2J
        "#]],
    );
}

#[test]
fn no_rows_still_have_a_heading() {
    let table = Table::new(vec![Column {
        name: "a".into(),
        align: Align::Right,
    }]);
    check(
        table,
        Layout::Whole,
        expect![[r#"
             a
            ---
        "#]],
    );
}

#[test]
fn wide_characters_take_two_columns() {
    let column = |name: &str| Column {
        name: name.to_owned(),
        align: Align::Left,
    };
    let mut table = Table::new(vec![column("a"), column("b")]);
    for text in ["\u{4e16}\u{754c}", "xyz"] {
        table.push(vec![Some(text.to_owned()), Some("end".to_owned())]);
    }
    let mut out = Vec::new();
    table.flush(&mut out, Layout::Whole, Colour::Off).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains(" \u{4e16}\u{754c} | end\n xyz  | end\n"),
        "{text}"
    );
}

#[test]
fn later_rows_keep_the_first_widths() {
    let mut table = Table::new(vec![Column {
        name: "a".into(),
        align: Align::Left,
    }]);
    let mut out = Vec::new();
    table.push(vec![Some("x".into())]);
    table.flush(&mut out, Layout::Whole, Colour::Off).unwrap();
    table.push(vec![Some("wider".into())]);
    table.flush(&mut out, Layout::Whole, Colour::Off).unwrap();
    expect![[r#"
         a
        ---
         x
         wider
    "#]]
    .assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn every_terminal_line_fits() {
    for columns in 24..90 {
        let mut out = Vec::new();
        sample()
            .flush(&mut out, Layout::Fit(columns), Colour::Off)
            .unwrap();
        for line in String::from_utf8(out).unwrap().lines() {
            assert!(width(line) <= columns, "{columns} columns: {line:?}");
        }
    }
}

#[test]
fn a_cell_may_be_longer_than_any_format_width() {
    let column = |name: &str, align| Column {
        name: name.to_owned(),
        align,
    };
    let long = "x".repeat(70_000);
    let shown = |layout| {
        let mut table = Table::new(vec![
            column("seq", Align::Right),
            column("command", Align::Left),
            column("labels", Align::Left),
        ]);
        for (seq, command) in [("1", &*long), ("2", "short")] {
            let cells = [seq, command, "a=b"].map(|cell| Some(cell.to_owned()));
            table.push(cells.into());
        }
        let mut out = Vec::new();
        table.flush(&mut out, layout, Colour::Off).unwrap();
        String::from_utf8(out).unwrap()
    };
    let whole = shown(Layout::Whole);
    let lengths: Vec<usize> = whole.lines().map(str::len).collect();
    assert!(whole.contains(&format!(" {long} | a=b")));
    assert!(lengths[0] < 1100 && lengths[3] < 1100, "{lengths:?}");
    for layout in [Layout::Fit(80), Layout::Records(Some(80))] {
        let cut = shown(layout);
        let widest = cut.lines().map(str::len).max();
        assert!(widest <= Some(80) && cut.contains("xxx..."), "{cut}");
    }
    assert!(shown(Layout::Records(None)).contains(&long));
}
