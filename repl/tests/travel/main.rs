//! `hindsight repl` on a synthetic debugging session: moves, looks, refusals, JSON and scripts, as transcripts.

mod growing;
mod lines;
mod looks;
mod moves;
mod notes;
mod terminal;
mod values;

#[path = "../common/mod.rs"]
mod common;

use common::Folder;
use expect_test::Expect;

/// Runs lines through `--cmd`, starting at the first event, since the recording opens at its crash.
fn check(lines: &[&str], expected: Expect) {
    let folder = Folder::with_debugged();
    let mut args = vec!["repl", "debugged", "--cmd", "goto first"];
    for line in lines {
        args.extend(["--cmd", line]);
    }
    expected.assert_eq(&folder.transcript(&args));
}
