//! Goal: `record --regs`, `--stack`, `--strings` and `--watch` capture what they name at each enter and leave, change nothing in
//! the program, and read no unmapped memory. Method: fixtures whose values are known, asked by SQL over state.

mod copies;

use e2e::{Comparison, Hindsight, Nesting, Program, Recording, Scratch, fixture_artifact};

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
    for artifact in ["captured_O0", "captured_O2"] {
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

#[test]
fn texts_of_c_are_known_where_functions_are_entered() {
    for artifact in ["captured_O0", "captured_O2"] {
        let comparison = recorded(artifact, &["--strings"]);
        let recording = &comparison.recording;
        let seen = values(recording, "push", "start_seq", "text");
        let ends: Vec<&str> = seen
            .iter()
            .map(|text| text.split_once(' ').unwrap().1)
            .collect();
        let expected = [
            "\"alpha\"",
            "\"beta\"",
            "\"\"",
            "\"a text that is longer than the others\"",
        ];
        assert_eq!(ends, expected, "{artifact}");
        // A null pointer is shown as a pointer; a string without an end is known as far as it was captured.
        let odd = values(recording, "odd_pointer", "start_seq", "text");
        assert_eq!(odd[0], "0x0");
        assert!(odd[1].starts_with("0x10"), "{odd:?}");
        let length = "SELECT mem(start_seq, a0, 256) IS NOT NULL AS value FROM calls \
                      WHERE function = 'odd_pointer' AND a0 > 4096";
        assert_eq!(texts(recording, length), ["true"]);
    }
}

#[test]
fn texts_of_cxx_and_rust_are_known_where_functions_are_entered() {
    let comparison = recorded("captured_cxx", &["--strings"]);
    let long = format!("\"{}\"", "y".repeat(40));
    for (function, expected) in [
        ("by_reference", vec!["\"brief\"".to_owned(), long.clone()]),
        ("by_value", vec![long]),
        ("view", vec!["\"a view\"".to_owned()]),
        ("view_second", vec!["\"second\"".to_owned()]),
    ] {
        let seen = values(&comparison.recording, function, "start_seq", "text");
        assert_eq!(seen, expected, "{function}");
    }
    for artifact in ["captured_rust_O0", "captured_rust"] {
        let comparison = recorded(artifact, &["--strings"]);
        for (name, expected) in [
            ("slice", "\"sliced\""),
            ("second", "\"grüße\""),
            ("borrowed", "&\"borrowed text\""),
            ("owned", "\"owned text\""),
        ] {
            let sql = format!(
                "SELECT value(start_seq, 'text') AS value FROM calls WHERE function LIKE '%::{name}'"
            );
            let seen = texts(&comparison.recording, &sql);
            assert_eq!(seen, [expected], "{artifact}: {name}");
        }
    }
}

/// The rest of the array is not known.
#[test]
fn a_watched_part_of_an_array_is_known_at_every_event() {
    let part = "counts[6..10]";
    let comparison = recorded("captured_O0", &["--watch", part]);
    let recording = &comparison.recording;
    let unknown = format!("SELECT count(*) FROM calls WHERE value(start_seq, '{part}') IS NULL");
    assert_eq!(recording.number(&unknown), 0);
    assert_eq!(
        values(recording, "push", "start_seq", part),
        [
            "{0, 1, 0, 0}",
            "{0, 1, 1, 0}",
            "{0, 2, 1, 0}",
            "{0, 2, 2, 0}"
        ]
    );
    let why = format!("SELECT explain_value(max(end_seq), '{part}') FROM calls");
    assert_eq!(
        texts(recording, &why.replace("FROM", "AS value FROM")),
        ["known"]
    );
    let whole = "SELECT explain_value(max(end_seq), 'counts') AS value FROM calls";
    let whole = texts(recording, whole);
    assert!(whole[0].starts_with("stale since event "), "{whole:?}");
}

/// A part of a value: the expression to watch, and the column in which the program prints it.
struct Part(&'static str, &'static str, usize);

/// Parts that are watched without the rest of their values equal the program's output after each step.
fn parts_are_what_the_program_prints(artifact: &str, function: &str, parts: &[Part]) {
    let scratch = Scratch::new(artifact);
    let program = Program::new(fixture_artifact("watched", artifact), scratch.path());
    let options = parts.iter().flat_map(|part| ["--watch", part.0]);
    let options: Vec<&str> = options.collect();
    let (recorded, recording) = Hindsight::record(&scratch, &options, &program);
    let text = recorded.text();
    let lines = text.lines().filter(|line| !line.starts_with("hindsight: "));
    let printed: Vec<Vec<&str>> = lines.map(|line| line.split('|').collect()).collect();
    assert_eq!(printed.len(), 8);
    for Part(_, part, column) in parts {
        let mut wanted: Vec<&str> = printed.iter().map(|line| line[*column]).collect();
        let found = values(&recording, function, "end_seq", part);
        assert_eq!(found, wanted, "{artifact}: {part}");
        let sql = format!("SELECT new AS value FROM history('{part}') ORDER BY seq");
        let followed = texts(&recording, &sql);
        wanted.dedup();
        // The first value is the one before the first step.
        let followed = &followed[followed.len().saturating_sub(wanted.len())..];
        assert_eq!(followed, wanted, "{artifact}: history of {part}");
    }
}

#[test]
fn watched_elements_and_members_are_known_after_each_step() {
    let c = [
        Part("numbers[5]", "numbers[5]", 0),
        Part("firsts[0..4]", "firsts[1]", 1),
        Part("reals[1]", "reals[1]", 2),
        Part("table[1][2]", "table[1][2]", 3),
        Part("pairs[2]", "pairs[2]", 4),
        Part("pairs[2]", "pairs[2].b", 5),
        Part("couples[4].a", "couples[4].a", 6),
        Part("big.in.z[3]", "big.in.z[3]", 7),
        Part("to_big->in.z[5]", "to_big->in.z[5]", 8),
        Part("flags.middle", "flags.middle", 9),
        Part("many[2].middle", "many[2].middle", 10),
        Part("many[1].room[4]", "many[1].room[4]", 11),
        Part("letters[3]", "letters[3]", 12),
        Part("pointer[6]", "pointer[6]", 13),
    ];
    parts_are_what_the_program_prints("elements", "step", &c);
    let cxx = [
        Part("fixed[3]", "fixed[3]", 0),
        Part("small.b", "small.b", 1),
        Part("smalls[1].a", "smalls[1].a", 2),
        Part("derived[3].held", "derived[3].held", 3),
        Part("other.own", "other.own", 4),
        Part("pairs[3].second", "pairs[3].second", 5),
        Part("vec[2]", "vec[2]", 6),
        Part("vec[2]", "vec[2].b", 7),
        Part("wides[1].count", "wides[1].count", 8),
        Part("rows[2][7]", "rows[2][7]", 9),
        Part("row[2]", "row[2]", 10),
    ];
    parts_are_what_the_program_prints("elements_cxx", "step", &cxx);
    let rust = [
        Part("NUMBERS[5]", "NUMBERS[5]", 0),
        Part("POINTS[2]", "POINTS[2].y", 2),
        Part("TUPLE.2", "TUPLE.2", 3),
        Part("TUPLE.1[4]", "TUPLE.1[4]", 4),
        Part("PAIRS[3].1", "PAIRS[3].1", 5),
        Part("VEC[2].x", "VEC[2].x", 9),
    ];
    parts_are_what_the_program_prints("elements_rust", "elements::step", &rust);
}

#[test]
fn watched_values_are_known_at_every_event() {
    let comparison = recorded(
        "captured_O0",
        &[
            "--watch",
            "queue->length",
            "--watch",
            "flag",
            "--watch",
            "queue->first->text",
            "--watch",
            "counts[flag]",
        ],
    );
    let recording = &comparison.recording;
    let printed = comparison.native.text();
    let lengths: Vec<&str> = printed.lines().collect();
    assert_eq!(lengths, ["1", "3", "4", "6"]);
    assert_eq!(
        values(recording, "push", "end_seq", "queue->length"),
        lengths
    );
    assert_eq!(
        values(recording, "push", "start_seq", "queue->length"),
        ["0", "1", "3", "4"]
    );
    assert_eq!(
        values(recording, "push", "start_seq", "flag"),
        ["7 '\\a'", "8 '\\b'", "7 '\\a'", "8 '\\b'"]
    );
    // An element of an array, selected by a number: all elements are captured.
    assert_eq!(
        values(recording, "push", "start_seq", "counts[flag]"),
        ["1", "1", "2", "2"]
    );
    // Before the first push there is no item.
    let first = values(recording, "push", "start_seq", "queue->first->text");
    assert_eq!(first[0], "?");
    assert!(
        first[1..].iter().all(|text| text.starts_with("0x")),
        "{first:?}"
    );
    // It is known at the enter and leave of every function.
    let unknown = "SELECT count(*) FROM calls WHERE value(start_seq, 'queue->length') IS NULL \
                   OR value(end_seq, 'queue->length') IS NULL";
    assert_eq!(recording.number(unknown), 0);
}

#[test]
fn parameters_are_watched_where_their_functions_are_entered() {
    for artifact in ["captured_O0", "captured_O2"] {
        let watches = ["to->length", "push::to->first->text[0..4]"];
        let options: Vec<&str> = watches.iter().flat_map(|w| ["--watch", w]).collect();
        let comparison = recorded(artifact, &options);
        let recording = &comparison.recording;
        assert_eq!(
            values(recording, "push", "start_seq", "to->length"),
            ["0", "1", "3", "4"],
            "{artifact}"
        );
        let first = values(recording, "push", "start_seq", "to->first->text[0]");
        assert_eq!(first[0], "?", "{artifact}: there is no first item yet");
        let letters = ["97 'a'", "98 'b'", "0 '\\000'"];
        assert_eq!(first[1..], letters, "{artifact}");
        // Other functions have no such parameter, and nothing is captured for them.
        let others = "SELECT count(*) FROM calls WHERE function <> 'push' \
                      AND value(start_seq, 'to->length') IS NOT NULL";
        assert_eq!(recording.number(others), 0, "{artifact}");
    }
    let comparison = recorded("captured_cxx", &["--watch", "by_reference::text"]);
    let length = values(
        &comparison.recording,
        "by_reference",
        "start_seq",
        "text._M_string_length",
    );
    assert_eq!(length, ["5", "40"]);
}

/// The value of a member of a line that the program printed.
fn printed(line: &str, index: usize) -> &str {
    line.split('|').nth(index).expect("so many members")
}

/// Checks that at each return of `function` the watched expressions equal the program's output.
fn assert_watched(artifact: &str, function: &str, expressions: &[(&str, usize)], more: &[&str]) {
    let watches = expressions.iter().map(|(expression, _)| *expression);
    let watches = watches.chain(more.iter().copied());
    let options: Vec<&str> = watches.flat_map(|watch| ["--watch", watch]).collect();
    let scratch = Scratch::new(artifact);
    let program = Program::new(fixture_artifact("watched", artifact), scratch.path());
    let comparison = Comparison::of_program(scratch, &program, &options, Nesting::Proper);
    let text = comparison.native.text();
    let lines: Vec<&str> = text.lines().collect();
    for (expression, index) in expressions {
        let expected: Vec<&str> = lines.iter().map(|line| printed(line, *index)).collect();
        let seen = values(&comparison.recording, function, "end_seq", expression);
        // Pointers to texts are shown with their address.
        let is_text = |text: &String| text.starts_with("0x");
        let seen: Vec<&str> = seen
            .iter()
            .map(|text| match is_text(text) {
                true => text.split_once(' ').map_or("?", |(_, text)| text),
                false => text,
            })
            .collect();
        assert_eq!(seen, expected, "{artifact}: {expression}");
    }
    for expression in more {
        let index = lines[0].split('|').count() - 1;
        let expected: Vec<&str> = lines.iter().map(|line| printed(line, index)).collect();
        let (_, name) = expression
            .rsplit_once("::")
            .expect("a function's parameter");
        let seen = values(&comparison.recording, function, "start_seq", name);
        assert_eq!(seen, expected, "{artifact}: {expression}");
    }
}

#[test]
fn texts_elements_and_thread_variables_are_watched() {
    for artifact in ["watched_O0", "watched_O2"] {
        let expressions = [
            ("depth", 0),
            ("where", 1),
            ("order.size()", 2),
            ("order[0]", 3),
            ("name", 4),
            ("wide.count", 5),
            ("behind->count", 6),
            ("wide.label", 7),
            ("names[0]", 8),
            ("owned->count", 9),
            ("title", 10),
        ];
        assert_watched(artifact, "step", &expressions, &["step::text"]);
    }
    let expressions = [
        ("ORDER.len()", 0),
        ("ORDER", 1),
        ("NAME", 2),
        ("NAMES[0]", 3),
        ("WIDE.count", 4),
        ("WIDE.label", 5),
    ];
    assert_watched(
        "watched_rust",
        "watched::step",
        &expressions,
        &["step::text"],
    );
}

/// Runs a program of a fixture natively, and recorded with these watches.
fn watching(folder: &str, artifact: &str, watches: impl Iterator<Item = String>) -> Comparison {
    let options: Vec<String> = watches.flat_map(|w| ["--watch".to_owned(), w]).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let scratch = Scratch::new(artifact);
    let program = Program::new(fixture_artifact(folder, artifact), scratch.path());
    Comparison::of_program(scratch, &program, &options, Nesting::Proper)
}

/// Checks that at both ends of each call of `callee`, the variables of `caller` equal the values that the program
/// printed after it.
fn assert_kept(artifact: &str, caller: &str, callee: &str, expressions: &[(&str, usize)]) {
    let name = caller.rsplit("::").next().expect("a name has a last part");
    let watches = expressions.iter().map(|(e, _)| format!("{name}::{e}"));
    let comparison = watching("scopes", artifact, watches);
    let text = comparison.native.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 10, "{artifact}");
    for (expression, index) in expressions {
        let expected: Vec<&str> = lines.iter().map(|line| printed(line, *index)).collect();
        for column in [
            format!("value(end_seq, '{expression}')"),
            format!("frame_value(start_seq, 1, '{expression}')"),
        ] {
            // The call's own changes are not visible at its start.
            if column.starts_with("frame") && expression.contains("len") {
                continue;
            }
            let sql = format!(
                "SELECT {column} AS value FROM calls WHERE function = '{callee}' ORDER BY start_seq"
            );
            let seen = texts(&comparison.recording, &sql);
            assert_eq!(seen, expected, "{artifact}: {column}");
        }
    }
    // The sequence of different values.
    let (expression, index) = expressions[0];
    let mut expected: Vec<&str> = lines.iter().map(|line| printed(line, index)).collect();
    expected.dedup();
    let sql = format!("SELECT new AS value FROM history('{expression}', '{caller}') ORDER BY seq");
    let seen = texts(&comparison.recording, &sql);
    assert_eq!(seen, expected, "{artifact}: history");
}

#[test]
fn variables_of_callers_are_watched_at_their_calls() {
    let of_c = [
        ("round", 0),
        ("sum", 1),
        ("to->length", 2),
        ("on_stack", 3),
        ("part.before + part.at", 4),
    ];
    for artifact in ["scopes_O0", "scopes_O2"] {
        assert_kept(artifact, "fill", "put", &of_c);
    }
    let of_rust = [
        ("round", 0),
        ("sum", 1),
        ("to.items.len()", 2),
        ("to.label", 3),
    ];
    for artifact in ["scopes_rust", "scopes_rust_O2"] {
        assert_kept(artifact, "scopes::fill", "scopes::put", &of_rust);
    }
}

/// Checks that at each return of `change`, which `work` calls indirectly, the variables of `work` equal its output; and that
/// their history has each change.
fn assert_kept_further_in(artifact: &str, path: &str, expressions: &[(&str, usize)]) {
    let named = |expression: &str| match expression.strip_prefix('*') {
        Some(pointer) => format!("*work::{pointer}"),
        None => format!("work::{expression}"),
    };
    let watches = expressions.iter().map(|(e, _)| named(e));
    let comparison = watching("outer", artifact, watches);
    let text = comparison.native.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 12, "{artifact}");
    let recording = &comparison.recording;
    for (expression, index) in expressions {
        let printed: Vec<&str> = lines.iter().map(|line| printed(line, *index)).collect();
        let sql = format!(
            "SELECT frame_value(end_seq, 1, '{expression}') AS value FROM calls \
             WHERE function = '{path}change' ORDER BY end_seq"
        );
        assert_eq!(texts(recording, &sql), printed, "{artifact}: {expression}");
        // At the start of the second call of `change` it has the value that the first one left.
        let sql = format!(
            "SELECT frame_value(start_seq, 2, '{expression}') AS value FROM calls \
             WHERE function = '{path}change' ORDER BY start_seq"
        );
        let entered = texts(recording, &sql);
        let (seconds, lefts) = (entered.iter().skip(1).step_by(2), printed.iter().step_by(2));
        assert!(seconds.eq(lefts), "{artifact}: {expression}: {entered:?}");
        // All values, with those that `work` itself begins with: its parameter, and 7.
        let sql = format!(
            "SELECT new AS value FROM history('{}') ORDER BY seq",
            named(expression)
        );
        let mut expected = Vec::new();
        for (round, printed) in printed.chunks(4).enumerate() {
            expected.push(if *index == 0 {
                (round + 1).to_string()
            } else {
                "7".to_owned()
            });
            expected.extend(printed.iter().map(|value| (*value).to_owned()));
        }
        expected.dedup();
        assert_eq!(texts(recording, &sql), expected, "{artifact}: {expression}");
    }
}

#[test]
fn variables_further_out_are_watched_at_every_event() {
    for artifact in ["outer_O0", "outer_O2"] {
        assert_kept_further_in(artifact, "", &[("total", 0), ("box->held", 1)]);
    }
    for artifact in ["outer_rust", "outer_rust_O2"] {
        assert_kept_further_in(
            artifact,
            "outer::",
            &[("held.total", 0), ("*held.inside", 1)],
        );
    }
}

#[test]
fn each_frame_of_a_recursion_has_its_own_watched_variables() {
    for artifact in ["scopes_O0", "scopes_O2"] {
        let scratch = Scratch::new(artifact);
        let program = Program::new(fixture_artifact("scopes", artifact), scratch.path());
        let options = ["--watch", "down::mine"];
        let comparison = Comparison::of_program(scratch, &program, &options, Nesting::Proper);
        // Outermost first: down(4) calls down(3), and its own is 40 then.
        let sql = "SELECT frame_value(start_seq, 1, 'mine') AS value FROM calls \
                   WHERE function = 'down' AND start_seq > (SELECT min(start_seq) FROM calls WHERE function = 'down') \
                   ORDER BY start_seq";
        let own = texts(&comparison.recording, sql);
        assert_eq!(own, ["40", "30", "20", "10"], "{artifact}");
        let sql = "SELECT value(end_seq, 'mine') AS value FROM calls \
                   WHERE function = 'down' ORDER BY end_seq";
        let back = texts(&comparison.recording, sql);
        assert_eq!(back, ["10", "20", "30", "40", "?"], "{artifact}");
    }
}

#[test]
fn the_stack_of_callers_is_known() {
    let comparison = recorded("captured_O0", &["--stack", "512", "--regs"]);
    let recording = &comparison.recording;
    // The caller's variables are in its frame.
    let sql = "SELECT frame_value(start_seq, 1, 'i') AS value FROM calls WHERE function = 'push' ORDER BY start_seq";
    assert_eq!(texts(recording, sql), ["0", "1", "0", "1"]);
    let seq = recording.number("SELECT min(start_seq) FROM calls WHERE function = 'push'");
    let frames = format!("SELECT function AS value FROM backtrace({seq}) ORDER BY frame");
    assert_eq!(texts(recording, &frames)[..2], ["push", "run"]);
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
    for (fixture, artifact, args) in [
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
    ] {
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
    for (artifact, expressions) in [
        ("captured_O0", &c[..]),
        ("captured_O2", &c[..]),
        ("captured_cxx", &cxx[..]),
        ("captured_rust", &rust[..]),
        ("captured_rust_O0", &rust[..]),
    ] {
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
