//! Watched variables of callers, in every frame of a recursion and further out.
//! Of several builds of a program each run takes a part; `WHOLE=1` all.

use e2e::{Comparison, Nesting, Program, Scratch, fixture_artifact, in_turn};

use super::{printed, recorded, texts};

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
    for artifact in in_turn(["scopes_O0", "scopes_O2"]) {
        assert_kept(artifact, "fill", "put", &of_c);
    }
    let of_rust = [
        ("round", 0),
        ("sum", 1),
        ("to.items.len()", 2),
        ("to.label", 3),
    ];
    for artifact in in_turn(["scopes_rust", "scopes_rust_O2"]) {
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
    for artifact in in_turn(["outer_O0", "outer_O2"]) {
        assert_kept_further_in(artifact, "", &[("total", 0), ("box->held", 1)]);
    }
    for artifact in in_turn(["outer_rust", "outer_rust_O2"]) {
        assert_kept_further_in(
            artifact,
            "outer::",
            &[("held.total", 0), ("*held.inside", 1)],
        );
    }
}

#[test]
fn each_frame_of_a_recursion_has_its_own_watched_variables() {
    for artifact in in_turn(["scopes_O0", "scopes_O2"]) {
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
