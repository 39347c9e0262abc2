//! Goal: with `--json` every command answers in JSON on one stream, also when it fails, and a failure always has the same
//! shape. Method: each command with a mistake of its own, and docs/json.md.

use e2e::{Ended, Hindsight, Program, Scratch, compiled, fixture_artifact, workspace_dir};
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
        &["ls", "--json=yes"],
        &["info", "nothing", "--json="],
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
        &["record", "--json=yes", "./nothing"],
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

/// Commands whose standard output is the recorded program's.
const ON_STANDARD_ERROR: [&str; 3] = ["record", "rerun", "test"];

/// The commands whose manual page has --json.
fn commands_with_json() -> Vec<String> {
    let pages = workspace_dir().join("packaging/man");
    let pages = std::fs::read_dir(pages).expect("the pages are there");
    let names = pages.filter_map(|page| {
        let path = page.expect("an entry").path();
        let name = path.file_stem()?.to_str()?.strip_prefix("hindsight-")?;
        let text = std::fs::read_to_string(&path).expect("it is text");
        text.contains("\\fB\\-\\-json\\fR").then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn each_command_that_knows_json_fails_in_json() {
    let scratch = Scratch::new("json_commands");
    let commands = commands_with_json();
    assert!(commands.len() > 80, "{commands:?}");
    for command in &commands {
        let words = [command.as_str(), "--frob", "--json"];
        let ended = Hindsight::command(&scratch, &words).run();
        let streams = (ended.text(), ended.errors());
        let (answer, other) = match ON_STANDARD_ERROR.contains(&command.as_str()) {
            true => (streams.1, streams.0),
            false => streams,
        };
        let answer = json(&answer, &words);
        assert_failure(&answer, &words);
        assert_eq!(other, "", "{words:?}");
        // Where an expression may stand, `--frob` is one: it is a session that is missing.
        let code = match answer["error"]["code"] == "NO_SESSION" {
            true => 1,
            false => 2,
        };
        assert_eq!(ended.status.as_shell_code(), code, "{words:?}");
    }
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
    let call = "SELECT start_seq FROM calls ORDER BY start_seq LIMIT 1";
    let call = recording.number(call).to_string();
    for words in [
        &["info", path, "--json"][..],
        &["overview", path, "--json"],
        &["report", path, "--json"],
        &["report", path, "fib", "--json"],
        &["report", path, "--tree", "--json"],
        &["report", path, "--tree", "--call", &call, "--json"],
        &["report", path, "--memory", "--json"],
        &["report", path, "--locks", "--json"],
        &["object", path, "0x1000", "--json"],
        &["notes", path, "--json"],
        &["pack", path, "--json"],
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

/// Standard error also has what the program and the recorder say.
#[test]
fn the_document_of_record_is_the_last_line() {
    let scratch = Scratch::new("json_warnings");
    let program = Program::new(fixture_artifact("fib", "fib_O2"), scratch.path());
    let options = ["--json", "-f", "no_such_function"];
    let ended = Hindsight::record_command(&scratch, "rec", &options, &program).run();
    let errors = ended.errors();
    assert!(
        errors.contains("'no_such_function' matches no function"),
        "{errors}"
    );
    let last = errors.lines().next_back().expect("a line");
    assert_eq!(json(last, &options)["success"], true, "{errors}");
}

/// The summary of the recording is a line before it.
#[test]
fn logged_writes_of_a_rerun_are_the_last_line() {
    let scratch = Scratch::new("json_rerun");
    let source = "int sold;\nint main(void) { sold = 1; sold = 2; return 0; }\n";
    let program = Program::new(
        compiled(&scratch, "app.c", source, &["-g", "-O0"]),
        scratch.path(),
    );
    let recording = Hindsight::recorded(&scratch, "app", &[], &program);
    let path = recording.path().to_str().expect("text");
    let words = ["rerun", path, "--log-writes", "sold", "--json"];
    let errors = Hindsight::command(&scratch, &words).run().errors();
    let mut lines = errors.lines().rev();
    let writes = json(lines.next().expect("a line"), &words);
    assert_eq!(writes["result"]["log_writes"][0]["writes"], 2, "{errors}");
    let summary = json(lines.next().expect("a line"), &words);
    assert_eq!(summary["result"]["exit_code"], 0, "{errors}");
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
