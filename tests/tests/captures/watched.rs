//! Watched values: whole, by part and by element, at every event and where functions are entered.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Comparison, Hindsight, Nesting, Program, Scratch, fixture_artifact, in_turn};

use super::{printed, recorded, texts, values};

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
    for artifact in in_turn(["captured_O0", "captured_O2"]) {
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
    for artifact in in_turn(["watched_O0", "watched_O2"]) {
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
