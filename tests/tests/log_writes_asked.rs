//! Goal: questions about the last write to a variable name the line of the program's own code, from `--log-writes` and from every
//! instruction; the recording has everything that a second run needs to answer them. Method: fixtures whose writes are in
//! marked lines.

use e2e::{
    Comparison, Hindsight, Nesting, Program, Recording, Scratch, compiled, fixture_artifact,
    marked_line,
};

fn program(scratch: &Scratch) -> Program {
    Program::new(fixture_artifact("logged", "logged_O0"), scratch.path()).ending(3)
}

/// Records a program of the fixture with the writes to `counter`.
fn recorded() -> Comparison {
    let scratch = Scratch::new("logged_asked");
    let program = program(&scratch);
    let options = ["--log-writes", "counter"];
    Comparison::of_program(scratch, &program, &options, Nesting::Proper)
}

fn line(mark: &str) -> u64 {
    marked_line("logged", "logged.c", mark)
}

/// The line with a mark, in its displayed form.
fn place(mark: &str) -> String {
    let path = e2e::fixture_source("logged").join("logged.c");
    format!("{}:{}", path.display(), line(mark))
}

#[test]
fn last_write_and_history_name_the_line() {
    let comparison = recorded();
    let lines = ["goto last", "last-write counter", "history counter"];
    let ended = comparison.recording.prompt(&lines);
    let told = ended.text();
    assert!(
        told.contains("counter became 33, after 30 at event "),
        "{told}"
    );
    assert!(
        told.contains(&format!("(add at {})", place("add"))),
        "{told}"
    );
    assert!(told.contains("(instruction 0x"), "{told}");
    assert!(
        told.contains(&format!("(main at {}) wrote", place("again"))),
        "{told}"
    );
    assert!(told.contains("wrote the same value once more"), "{told}");
    assert!(told.contains("No later write to it is recorded"), "{told}");
    for value in ["10", "11", "20", "22", "30", "33"] {
        assert!(told.contains(&format!("| {value} ")), "{value}: {told}");
    }
    assert!(!told.contains("hindsight rerun"), "{told}");
}

/// Nobody has chosen a position: the question is about the whole run. At an early position the answer says that more follows.
#[test]
fn an_untouched_recording_is_asked_about_its_end() {
    let comparison = recorded();
    let recording = &comparison.recording;
    let told = recording.prompt(&["last-write counter"]).text();
    let add = place("add");
    let became = "counter became 33, after 30 at event ";
    assert!(told.contains(became) && told.contains(&add), "{told}");
    assert!(!told.contains("up to event"), "{told}");
    let told = recording.prompt(&["why counter"]).text();
    let became = "counter became 33, after 30, by add at ";
    assert!(told.contains(became), "{told}");
    let main = recording.number("select min(start_seq) from calls where function = 'main'");
    let early = format!("This is up to event {main}; 8 later writes, the last at event ");
    for asked in ["last-write counter", "why counter"] {
        let told = recording.prompt(&[&format!("goto {main}"), asked]).text();
        assert!(told.contains(&early), "{asked}: {told}");
        assert!(told.contains(": goto last"), "{asked}: {told}");
        // The writes are recorded: no second run is needed.
        assert!(!told.contains("hindsight rerun"), "{asked}: {told}");
    }
}

/// The recipe of docs/agents.md for the line that wrote a value, word for word.
#[test]
fn a_run_of_every_instruction_names_the_last_line_that_wrote() {
    let scratch = Scratch::new("recipe");
    let program = program(&scratch);
    let (_, first) = Hindsight::record(&scratch, &[], &program);
    let path = first.path().to_str().expect("paths of tests are text");
    let again = ["rerun", path, "--full", "-o", "full"];
    let again = [&again[..], &["--log-writes", "counter"]].concat();
    let rerun = Hindsight::command(&scratch, &again).run();
    assert_eq!(rerun.status.as_shell_code(), 3, "{}", rerun.errors());
    let shown = rerun.errors();
    assert!(shown.contains("writes to counter:"), "{shown}");
    assert!(shown.contains(" 33 "), "{shown}");
    let full = Recording::new(scratch.join("full.hindsight"));
    let add = place("add");
    let wrote_again = place("again");
    let told = full.prompt(&["last-write counter"]).text();
    let is_told = told.contains("counter became 33") && told.contains(&wrote_again);
    assert!(is_told && !told.contains("up to event"), "{told}");
    let why = Hindsight::command(&scratch, &["why", "full", "counter"]).run();
    let told = why.text();
    assert!(told.contains("counter became 33"), "{told}{}", why.errors());
    let calls = "select min(start_seq) from calls where function = 'main'";
    let main = full.number(calls);
    let told = full.prompt(&[&format!("goto {main}"), "last-write counter"]);
    let told = told.text();
    assert!(
        told.contains("No instruction has written counter yet"),
        "{told}"
    );
    assert!(told.contains(" later writes, the last at event "), "{told}");
    assert!(told.contains(&wrote_again) || told.contains(&add), "{told}");
}

#[test]
fn a_second_run_answers_what_the_first_left_open() {
    let scratch = Scratch::new("rerun");
    std::fs::write(scratch.join("input"), "some words").expect("the folder can be written to");
    let program = program(&scratch).env("LOGGED", "yes");
    let (_, recording) = Hindsight::record(
        &scratch,
        &["-f", "work", "--snapshot", "every=5events"],
        &program,
    );
    let told = recording
        .prompt(&["goto last", "last-write counter"])
        .text();
    let stem = recording.path().with_extension("");
    let command = format!("hindsight rerun {} --log-writes 'counter'", stem.display());
    assert!(told.contains(&command), "{told}");
    let path = recording.path().to_str().expect("paths of tests are text");
    let rerun = Hindsight::command(
        &scratch,
        &["rerun", path, "--log-writes", "counter", "-o", "second"],
    )
    .run();
    assert_eq!(rerun.status.as_shell_code(), 3, "{}", rerun.errors());
    assert!(rerun.text().contains("counter 33"), "{}", rerun.text());
    let told = rerun.errors();
    assert!(told.contains("8 writes to counter:"), "{told}");
    assert!(told.contains(&place("again")), "{told}");
    let second = Recording::new(scratch.join("second.hindsight"));
    // The options are those of the first run, and so is the environment.
    let functions = second.rows("SELECT DISTINCT function FROM calls");
    assert_eq!(functions.len(), 1, "{functions:?}");
    let again = Hindsight::command(&scratch, &["rerun", path, "--log-writes", "countr"]).run();
    assert_eq!(again.status.as_shell_code(), 2, "{}", again.errors());
    assert!(again.errors().contains("counter"), "{}", again.errors());
}

/// Prints a variable of its environment, its folder and its standard input.
const AROUND: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main (void) {
  char folder[4096], line[256];
  const char *word = getenv ("WORD");
  printf ("%s in %s:\n", word ? word : "nothing", getcwd (folder, sizeof folder));
  while (fgets (line, sizeof line, stdin)) fputs (line, stdout);
  return 0;
}
"#;

#[test]
fn a_second_run_has_the_environment_the_folder_and_the_input_of_the_first() {
    let scratch = Scratch::new("rerun-around");
    let program = compiled(&scratch, "around.c", AROUND, &["-O0", "-g"]);
    let here = scratch.join("here");
    let there = scratch.join("there");
    for folder in [&here, &there] {
        std::fs::create_dir_all(folder).expect("the test's folder is writable");
    }
    std::fs::write(here.join("input"), "two\nlines\n").expect("the folder is writable");
    let record = r#"exec "$0" record -o ../first -- "$1" < input"#;
    let words = [Hindsight::path(), &program].map(|path| path.as_os_str().to_owned());
    let first = Program::new("/bin/sh", &here)
        .args(["-c", record])
        .args(words)
        .env("WORD", "first")
        .run();
    assert_eq!(first.status.as_shell_code(), 0, "{}", first.errors());
    let folder = here.canonicalize().expect("it is there");
    let expected = format!("first in {}:\ntwo\nlines\n", folder.display());
    assert_eq!(first.text(), expected, "{}", first.errors());
    let second = Program::new(Hindsight::path(), &there)
        .args(["rerun", "../first", "-o", "second"])
        .env("WORD", "second")
        .run();
    assert_eq!(second.status.as_shell_code(), 0, "{}", second.errors());
    assert_eq!(second.text(), expected, "{}", second.errors());
    assert!(there.join("second.hindsight").is_dir());
}

#[test]
fn a_second_run_of_every_instruction_tells_who_wrote_a_local_variable() {
    let scratch = Scratch::new("rerun-full");
    let program = program(&scratch);
    let (_, recording) = Hindsight::record(&scratch, &["-f", "work", "--strings"], &program);
    let asked = ["goto last", "last-write work::mine"];
    // A parameter is written by the caller, or where its watchpoint is not set yet.
    let parameter = ["goto last", "last-write work::rounds"];
    let told = recording.prompt(&parameter).text();
    let stem = recording.path().with_extension("");
    let name = stem.file_name().and_then(|name| name.to_str());
    let name = name.expect("paths of tests are text");
    let command = format!(
        "hindsight rerun {} --full -o {name}-full; hindsight last-write {name}-full 'work::rounds'",
        stem.display()
    );
    assert!(told.contains(&command), "{told}");
    let path = recording.path().to_str().expect("paths of tests are text");
    let rerun = Hindsight::command(&scratch, &["rerun", path, "--full", "-o", "second"]).run();
    assert_eq!(rerun.status.as_shell_code(), 3, "{}", rerun.errors());
    let second = Recording::new(scratch.join("second.hindsight"));
    let functions = second.rows("SELECT DISTINCT function FROM calls");
    assert_eq!(functions.len(), 1, "{functions:?}");
    // It lives no more at the end, but the way to where it did is told.
    let refused = second.prompt(&asked);
    let told = refused.errors();
    let call = told
        .split_once("goto ")
        .and_then(|(_, rest)| rest.split_once(", finish, step-back"))
        .map(|(call, _)| format!("goto {call}"));
    let call = call.unwrap_or_else(|| panic!("{told}"));
    let told = second
        .prompt(&[&call, "finish", "step-back", "last-write mine"])
        .text();
    let wrote = format!("(work at {})", place("mine"));
    assert!(
        told.contains("mine became 3") && told.contains(&wrote),
        "{told}"
    );
    let both = [
        "rerun",
        path,
        "--full",
        "--log-writes",
        "counter",
        "-o",
        "third",
    ];
    let both = Hindsight::command(&scratch, &both).run();
    let told = both.errors();
    assert!(told.contains("8 writes to counter:"), "{told}");
}
