//! Goal: states of a recording made with `hindsight record` show what the program did. Method: fixtures whose calls have known
//! values, queried by SQL over state and by lines of `hindsight repl`.

use e2e::{Comparison, Recording};

fn typed_args(artifact: &str) -> Comparison {
    Comparison::of("typed_args", artifact, &[])
}

/// Every queried value at the entries of a function.
fn values(recording: &Recording, function: &str, expression: &str) -> Vec<Option<String>> {
    let sql = format!(
        "SELECT value(start_seq, '{expression}') AS value FROM calls WHERE function = '{function}' ORDER BY start_seq"
    );
    let rows = recording.rows(&sql);
    rows.iter()
        .map(|row| row["value"].as_str().map(str::to_owned))
        .collect()
}

fn assert_parameters(recording: &Recording) {
    let one = |text: &str| vec![Some(text.to_owned())];
    assert_eq!(values(recording, "tiny", "a"), one("-3 '\\375'"));
    assert_eq!(values(recording, "tiny", "b"), one("200 '\\310'"));
    assert_eq!(values(recording, "narrow", "a"), one("-300"));
    assert_eq!(values(recording, "wide", "b"), one("4000000000"));
    assert_eq!(values(recording, "flip", "on"), one("true"));
    assert_eq!(values(recording, "seven", "f"), one("6"));
    // A sum is evaluated completely, and is known if its parts are.
    assert_eq!(values(recording, "tiny", "a + b"), one("197"));
    // Arguments on the stack were not captured.
    assert_eq!(values(recording, "seven", "g"), [None]);
}

#[test]
fn parameters_are_known_where_functions_are_entered() {
    assert_parameters(&typed_args("typed_args_O0").recording);
}

#[test]
fn parameters_are_known_where_optimised_functions_are_entered() {
    assert_parameters(&typed_args("typed_args_O2").recording);
}

#[test]
fn registers_at_a_return_hold_the_result() {
    let comparison = typed_args("typed_args_O0");
    let row = comparison.recording.row(
        "SELECT reg(end_seq, 'rax') = rax AS result, reg(end_seq, 'rip') = ret_addr AS back, \
         reg(end_seq, 'rbx') AS other, reg(start_seq, 'rdi') = a0 AS argument \
         FROM calls WHERE function = 'widest'",
    );
    assert_eq!(row["result"], true);
    assert_eq!(row["back"], true);
    assert_eq!(row["argument"], true);
    assert!(row["other"].is_null(), "nothing showed rbx");
}

#[test]
fn a_backtrace_at_an_entry_names_its_callers() {
    let comparison = typed_args("typed_args_O0");
    let recording = &comparison.recording;
    let seq = recording.row("SELECT start_seq FROM calls WHERE function = 'tiny'");
    let seq = seq["start_seq"].as_i64().expect("it was called");
    let frames = recording.rows(&format!(
        "SELECT function FROM backtrace({seq}) ORDER BY frame"
    ));
    let names: Vec<&str> = frames
        .iter()
        .filter_map(|f| f["function"].as_str())
        .collect();
    assert_eq!(names.first(), Some(&"tiny"), "{names:?}");
    assert!(names.contains(&"main"), "{names:?}");
}

#[test]
fn the_prompt_goes_to_a_call_and_back() {
    let comparison = typed_args("typed_args_O0");
    let lines = [
        "break tiny",
        "continue",
        "args",
        "finish",
        "step back",
        "print a",
    ];
    let ended = comparison.recording.prompt(&lines);
    let text = ended.text();
    assert!(text.contains("entry of tiny"), "{text}{}", ended.errors());
    assert!(text.contains("return from tiny"), "{text}");
    assert!(text.ends_with("$2 = -3 '\\375'\n"), "{text}");
}
