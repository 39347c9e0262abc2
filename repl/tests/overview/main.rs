//! `hindsight` on whole recordings and about itself: `info`, `check`, `--help` and `--version`, as transcripts on
//! complete, incomplete and damaged recordings, with exit codes. Also failures to write the output.

mod check;
mod help;
mod info;
mod output;

#[path = "../common/mod.rs"]
mod common;

use common::Folder;
use expect_test::Expect;

/// Runs `hindsight ARGS` and compares the transcript.
fn check(folder: &Folder, args: &[&str], expected: Expect) {
    expected.assert_eq(&folder.transcript(args));
}
