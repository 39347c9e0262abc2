//! Goal: `record --regs`, `--stack`, `--strings` and `--watch` capture what they name at each enter and leave, change nothing in
//! the program, and read no unmapped memory. Method: fixtures whose values are known, asked by SQL over state.
//! Of long lists of programs each run takes a third; `WHOLE=1` all.

mod copies;
mod frames;
mod strings;
mod watched;

use e2e::{Comparison, Hindsight, Nesting, Program, Recording, Scratch, fixture_artifact, in_turn};

fn recorded(artifact: &str, options: &[&str]) -> Comparison {
    let scratch = Scratch::new(artifact);
    let program = Program::new(fixture_artifact("captured", artifact), scratch.path());
    Comparison::of_program(scratch, &program, options, Nesting::Proper)
}

/// The answer of SQL, one string per row; `?` if there is no value.
fn texts(recording: &Recording, sql: &str) -> Vec<String> {
    let rows = recording.rows(sql);
    let text = |row: &serde_json::Map<String, serde_json::Value>| match &row["value"] {
        serde_json::Value::Null => "?".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    rows.iter().map(text).collect()
}

/// A value of each call of a function at its enter, or at its leave.
fn values(recording: &Recording, function: &str, at: &str, expression: &str) -> Vec<String> {
    let sql = format!(
        "SELECT value({at}, '{expression}') AS value FROM calls WHERE function = '{function}' ORDER BY {at}"
    );
    texts(recording, &sql)
}

#[test]
fn registers_that_calls_keep_are_the_same_at_both_ends() {
    for artifact in in_turn(["captured_O0", "captured_O2"]) {
        let comparison = recorded(artifact, &["--regs"]);
        let recording = &comparison.recording;
        for name in ["rbx", "rbp", "r12", "r13", "r14", "r15"] {
            let sql = format!(
                "SELECT count(*) FROM calls WHERE NOT unwound \
                 AND reg(start_seq, '{name}') IS DISTINCT FROM reg(end_seq, '{name}')"
            );
            assert_eq!(recording.number(&sql), 0, "{artifact}: {name}");
        }
        let known = "SELECT count(*) FROM calls WHERE reg(start_seq, 'r15') IS NULL \
                     OR reg(end_seq, 'r10') IS NULL OR reg(end_seq, 'rsp') <> sp + 8";
        assert_eq!(recording.number(known), 0, "{artifact}");
        let calls = recording.number("SELECT count(*) FROM calls WHERE function = 'push'");
        assert_eq!(calls, 4, "{artifact}");
    }
}

/// The value of a member of a line that the program printed.
fn printed(line: &str, index: usize) -> &str {
    line.split('|').nth(index).expect("so many members")
}

#[test]
fn what_cannot_be_captured_is_refused_or_told() {
    let scratch = Scratch::new("captured_refusals");
    let program = fixture_artifact("captured", "captured_O0");
    let program = program.to_str().expect("paths of tests are text");
    let run = |options: &[&str]| {
        let mut args = vec!["record"];
        args.extend_from_slice(options);
        args.extend(["--", program]);
        Hindsight::command(&scratch, &args).run()
    };
    for (options, wanted) in [
        (&["--stack", "20000"][..], "16384"),
        (&["--watch", "queue->"], "watch 'queue->'"),
        (
            &["--watch", "queue->first->text[flag]"],
            "depends on a number",
        ),
        (&["--watch", "$rbx"], "--regs captures them"),
        (&["--watch", "1 + 1"], "no variable in memory"),
        (
            &["--watch", "push::nobody"],
            "in push: no variable \"nobody\"",
        ),
        (&["--watch", "push::to->nobody"], "no member nobody"),
        (
            &["--watch", "to->first->text[times]"],
            "depends on a number",
        ),
    ] {
        let ended = run(options);
        assert!(
            ended.errors().contains(wanted),
            "{options:?}: {}",
            ended.errors()
        );
        assert!(ended.text().is_empty(), "{options:?}: the program ran");
        assert_eq!(ended.status.as_shell_code(), 2, "{options:?}");
    }
    let ended = run(&["--watch", "nobody"]);
    assert!(ended.errors().contains("nobody"), "{}", ended.errors());
    assert_eq!(ended.text(), "1\n3\n4\n6\n");
    let info = Hindsight::command(&scratch, &["info", "captured_O0"]).run();
    assert!(info.text().contains("watch nobody"), "{}", info.text());
    let ended = run(&["--watch", "nothing::here"]);
    let wanted = "no function nothing is recorded";
    assert!(ended.errors().contains(wanted), "{}", ended.errors());
}

#[test]
fn programs_behave_the_same_with_everything_captured() {
    let options = ["--regs", "--stack", "256", "--strings"];
    let none: &[&str] = &[];
    for (fixture, artifact, args) in in_turn([
        ("cpp_exceptions", "cpp_exceptions_O2", none),
        ("rust_panic", "rust_panic_O2", none),
        ("longjmp", "longjmp_O2", none),
        ("signals", "signals_O0", &["alt"]),
        ("signals", "signals_O2", &["threads"]),
        ("tail_calls", "tail_calls", none),
        ("fork", "fork", none),
        ("spawn", "spawn", none),
        ("many_threads", "many_threads", &["200", "200"]),
        ("varargs", "varargs_O2", none),
        ("deep_recursion", "deep_recursion", none),
    ]) {
        let scratch = Scratch::new(&format!("{artifact}-captured"));
        let program = Program::new(fixture_artifact(fixture, artifact), scratch.path()).args(args);
        let program = match fixture {
            "fork" => program.ending(3),
            _ => program,
        };
        let comparison = Comparison::of_program(scratch, &program, &options, Nesting::Proper);
        let unknown = "SELECT count(*) FROM calls WHERE reg(start_seq, 'rbx') IS NULL";
        let few = format!("{unknown} AND start_seq < 20000");
        assert_eq!(comparison.recording.number(&few), 0, "{artifact}");
    }
}

/// The query in its usual form: `seq` of `calls`, and a value at each.
#[test]
fn values_at_the_calls_of_a_function_are_asked_by_seq() {
    let comparison = recorded("captured_O0", &["--watch", "queue->length"]);
    let recording = &comparison.recording;
    let sql =
        "SELECT seq, value(seq, 'queue->length') FROM calls WHERE function='push' ORDER BY seq";
    let rows = recording.rows(sql);
    let lengths: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.values().find_map(serde_json::Value::as_str))
        .collect();
    assert_eq!(lengths, ["0", "1", "3", "4"]);
    let seqs: Vec<i64> = rows.iter().filter_map(|row| row["seq"].as_i64()).collect();
    assert!(seqs.is_sorted() && seqs.len() == 4, "{rows:?}");
    let other = "SELECT count(*) FROM calls WHERE seq <> start_seq";
    assert_eq!(recording.number(other), 0);
}

/// `value` finds the innermost frame from data shared with earlier events, `frame_value` from scratch.
#[test]
fn values_are_the_same_by_the_short_way_and_the_long_one() {
    let everything = [
        "--regs",
        "--stack",
        "4096",
        "--strings",
        "--watch",
        "queue->length",
    ];
    let c = [
        "to",
        "to->length",
        "to->first->text",
        "*to",
        "text",
        "times",
        "i",
        "item",
        "queue->length",
        "queue",
        "flag",
        "counts[7]",
        "$rbx",
        "$rip",
        "times + 1",
        "&to->length",
        "number",
        "texts[1]",
    ];
    let cxx = [
        "text",
        "text._M_string_length",
        "number",
        "number + 1",
        "$rsp",
        "brief",
        "lengthy",
    ];
    let rust = ["text", "number", "text.len()", "sum", "$r12"];
    for (artifact, expressions) in in_turn([
        ("captured_O0", &c[..]),
        ("captured_O2", &c[..]),
        ("captured_cxx", &cxx[..]),
        ("captured_rust", &rust[..]),
        ("captured_rust_O0", &rust[..]),
    ]) {
        let watch = if artifact.starts_with("captured_O") {
            6
        } else {
            4
        };
        for options in [
            &[][..],
            &["--snapshot", "every=3events"][..],
            &everything[..watch],
        ] {
            let comparison = recorded(artifact, options);
            let recording = &comparison.recording;
            let columns: Vec<String> = (0..)
                .zip(expressions)
                .map(|(at, expression)| {
                    format!(
                        "value(seq, '{expression}') AS short{at}, \
                         frame_value(seq, 0, '{expression}') AS long{at}"
                    )
                })
                .collect();
            let rows = recording.rows(&format!("SELECT {} FROM events", columns.join(", ")));
            let mut known = 0;
            for (at, expression) in expressions.iter().enumerate() {
                for row in &rows {
                    let (short, long) = (&row[&format!("short{at}")], &row[&format!("long{at}")]);
                    assert_eq!(short, long, "{artifact} {options:?} {expression}");
                    known += usize::from(!short.is_null());
                }
            }
            assert!(known > 4, "{artifact} {options:?}: only {known} are known");
        }
    }
}
