//! Goal: `compare` calls two runs of a deterministic program the same, finds the function with a planted bug, and refuses what
//! cannot be compared. Method: real programs with address randomisation; a list of edits (`bugs.txt`), each built, recorded and
//! compared with the unchanged build; damaged and mismatched recordings.

mod accepted;
mod addresses;
mod alike;
mod blame;
mod bugs;
mod builds;
mod captured;
mod compilers;
mod data;
mod in_place;
mod inserted;
mod kinds;
mod of_runs;
mod page;
mod pairs;
mod prompt;
mod same;
mod verdicts;

use std::path::Path;

use e2e::{Ended, Hindsight, Program, Scratch, Status};

/// Records a program as `NAME.hindsight` in the test's folder.
fn record(scratch: &Scratch, name: &str, options: &[&str], program: &Program) -> Ended {
    let ended = Hindsight::record_command(scratch, name, options, program).run();
    let folder = scratch.join(&format!("{name}.hindsight"));
    assert!(folder.is_dir(), "no recording was made: {}", ended.errors());
    ended
}

/// Compares two recordings of the test's folder.
fn compare(scratch: &Scratch, args: &[&str]) -> Ended {
    Hindsight::command(scratch, &[&["compare"], args].concat()).run()
}

#[track_caller]
fn ends_with(ended: &Ended, code: i32) {
    assert_eq!(
        ended.status,
        Status::Code(code),
        "{}{}",
        ended.text(),
        ended.errors()
    );
}

/// Runs a compiler in a folder.
fn build(folder: &Path, command: &str) {
    let ended = Program::new("/bin/sh", folder).args(["-ec", command]).run();
    assert_eq!(
        ended.status,
        Status::Code(0),
        "{command}\n{}",
        ended.errors()
    );
}
