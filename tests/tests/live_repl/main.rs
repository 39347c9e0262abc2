//! Goal: at a live prompt every verb does what the command does, Ctrl-C stops the program, and the user can enter the past
//! and leave it again. Method: lines of `hindsight repl` through `--cmd`, a file, a pipe and a pseudo terminal, to a daemon
//! of each test's own; a verb's reply is compared with that of the command of the same name.

mod past;
mod scripts;
mod start;
mod terminal;

use e2e::{Ended, Live, fixture_artifact};

fn program() -> String {
    let path = fixture_artifact("control", "control_O0");
    path.to_str().expect("paths of tests are text").to_owned()
}

/// Runs lines at a prompt that is opened with these words.
fn repl(live: &Live, words: &[&str], lines: &[&str]) -> Ended {
    let lines = lines.iter().flat_map(|line| ["--cmd", line]);
    let words: Vec<&str> = ["repl"]
        .into_iter()
        .chain(words.iter().copied())
        .chain(lines)
        .collect();
    live.command(&words).run()
}

/// The errors, without the prompt's messages about its position and the program's fate.
fn errors(ended: &Ended) -> String {
    let errors = ended.errors();
    let lines = errors
        .lines()
        .filter(|line| !line.starts_with("  at ") && !line.starts_with("hindsight: "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Asserts that all parts are there, one after the other.
fn assert_in_order(text: &str, parts: &[&str]) {
    let mut from = 0;
    for part in parts {
        match text[from..].find(part) {
            Some(at) => from += at + part.len(),
            None => panic!("\"{part}\" is not there, or not behind the one before:\n{text}"),
        }
    }
}

/// A text without the numbers of values: each `print` has the next one.
fn unnumbered(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let rest = line
            .strip_prefix('$')
            .and_then(|rest| rest.split_once(" = "));
        match rest.filter(|(number, _)| number.parse::<u64>().is_ok()) {
            Some((_, value)) => format!("$ = {value}\n"),
            None => format!("{line}\n"),
        }
    });
    lines.collect()
}

fn code(ended: &Ended) -> i32 {
    ended.status.as_shell_code()
}

/// The daemon has no session, or there is no daemon.
fn assert_no_session(live: &Live) {
    let (_, response) = live.response(&["status"]);
    let code = &response["error"]["code"];
    let sessions = response["result"]["sessions"].as_array();
    assert!(
        code == "NO_SESSION" || sessions.is_some_and(Vec::is_empty),
        "{response:#}"
    );
}
