//! Goal: with `--json` every command answers in JSON on one stream, also when it fails, and a failure always has the same
//! shape. Method: each command with a mistake of its own, and docs/json.md.

use e2e::{Ended, Hindsight, Program, Scratch, fixture_artifact};
use serde_json::Value;

fn json(text: &str, words: &[&str]) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"))
}

fn assert_failure(answer: &Value, words: &[&str]) {
    assert_eq!(answer["success"], false, "{words:?}: {answer:#}");
    let error = &answer["error"];
    assert!(error["code"].is_string(), "{words:?}: {answer:#}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(
        !message.is_empty() && !message.contains('\n'),
        "{words:?}: {answer:#}"
    );
}

#[test]
fn failures_have_one_shape_on_the_stream_of_the_answer() {
    let scratch = Scratch::new("json_failures");
    let run = |words: &[&str]| -> Ended { Hindsight::command(&scratch, words).run() };
    for words in [
        &["info", "nothing", "--json"][..],
        &["overview", "nothing", "--json"],
        &["report", "nothing", "--json"],
        &["check", "nothing", "--json"],
        &["compare", "nothing", "nobody", "--json"],
        &["processes", "nothing", "--json"],
        &["symbols", "list", "nothing", "--json"],
        &["runs", "list", "--frob", "--json"],
        &["ls", "--frob", "--json"],
        &["info", "--json"],
        &["print", "x", "--json"],
        &["backtrace", "--json"],
        &["status", "--frob", "--json"],
        &["goto", "--json"],
        &["export", "nothing", "--to", "lake", "--json"],
        &["rm", "nothing", "--yes", "--json"],
        &["repl", "nothing", "--json"],
    ] {
        let ended = run(words);
        assert_failure(&json(&ended.text(), words), words);
        assert_eq!(ended.errors(), "", "{words:?}");
        assert_ne!(ended.status.as_shell_code(), 0, "{words:?}");
    }
    // Standard output is the recorded program's: there, answers and failures are on standard error.
    for words in [
        &["record", "--json", "./nothing"][..],
        &["record", "--json"],
        &["record", "-o", "rec", "--json", "--frob", "./nothing"],
        &["test", "--record-to", "runs", "--json", "./nothing"],
    ] {
        let ended = run(words);
        assert_failure(&json(&ended.errors(), words), words);
        assert_eq!(ended.text(), "");
    }
    let words = ["start", "--json"];
    let ended = run(&words);
    assert_failure(&json(&ended.text(), &words), &words);
    assert_eq!(ended.errors(), "");
    // The program's own output is not checked.
    let ended = run(&["record", "./nothing", "--json"]);
    assert!(ended.errors().starts_with("error: "), "{}", ended.errors());
}

#[test]
fn answers_are_one_document() {
    let scratch = Scratch::new("json_answers");
    let program = Program::new(fixture_artifact("fib", "fib_O2"), scratch.path());
    let (_, recording) = Hindsight::record(&scratch, &["-f", "fib"], &program);
    let path = recording.path().to_str().expect("text");
    let other = Hindsight::recorded(&scratch, "other", &["-f", "fib"], &program);
    let other = other.path().to_str().expect("text");
    let lake = scratch.join("lake");
    let lake = lake.to_str().expect("text");
    for words in [
        &["info", path, "--json"][..],
        &["overview", path, "--json"],
        &["report", path, "--json"],
        &["check", path, "--json"],
        &["ls", path, "--json"],
        &["runs", "list", "--json"],
        &["symbols", "list", path, "--json"],
        &["calls", path, "--json"],
        &["compare", path, other, "--json"],
        &["sql", path, "select count(*) as n from calls", "--json"],
        &["export", path, other, "--to", lake, "--json"],
        &["rm", other, "--yes", "--json"],
    ] {
        let ended = Hindsight::command(&scratch, words).run();
        let answer = json(&ended.text(), words);
        assert_eq!(answer["success"], true, "{words:?}: {answer:#}");
        let result = &answer["result"];
        assert!(
            result.is_object() || result.is_array(),
            "{words:?}: {answer:#}"
        );
        assert_eq!(ended.errors(), "", "{words:?}");
    }
}

#[test]
fn what_was_written_and_deleted_is_in_the_answer() {
    let scratch = Scratch::new("json_changes");
    let program = Program::new(fixture_artifact("fib", "fib_O2"), scratch.path());
    for name in ["a", "b"] {
        Hindsight::recorded(&scratch, name, &["-f", "fib"], &program);
    }
    std::fs::write(scratch.join("b.hindsight/columns/definitions.seg"), "no").expect("writable");
    let words = [
        "export", "a", "b", "--to", "lake", "--table", "calls", "--json",
    ];
    let exported = Hindsight::command(&scratch, &words).run();
    assert_eq!(exported.status.as_shell_code(), 1);
    let result = exported.result();
    assert_eq!(
        (&result["recordings"], &result["files"]),
        (&1.into(), &1.into())
    );
    assert_eq!(result["left_out"][0]["run"], "b", "{result:#}");
    assert_eq!(exported.errors(), "");
    let deleted = Hindsight::command(&scratch, &["rm", "a", "b", "--yes", "--json"]).run();
    let result = deleted.result();
    let count = result["deleted"].as_array().map(Vec::len);
    assert_eq!(
        (count, &result["failed"]),
        (Some(2), &serde_json::json!([]))
    );
    let words = [
        "test",
        "--record-to",
        "runs",
        "--json",
        "sh",
        "-c",
        "true; (exit 3)",
    ];
    let tested = Hindsight::command(&scratch, &words).run();
    assert_eq!(tested.status.as_shell_code(), 3);
    let answer = json(&tested.errors(), &words);
    assert_eq!(answer["result"]["exit_code"], 3, "{answer:#}");
    assert_eq!(answer["result"]["removed"], 0, "{answer:#}");
}
