//! What `hindsight` says of whole recordings and of itself: `info`, `check`, `--help` and `--version`, as transcripts on whole,
//! incomplete and damaged recordings, with exit codes; and where output cannot go.

mod check;
mod help;
mod info;
mod output;

#[path = "../common/mod.rs"]
mod common;

use common::Folder;
use expect_test::Expect;

/// Runs `hindsight ARGS` and compares all that can be seen of it.
fn check(folder: &Folder, args: &[&str], expected: Expect) {
    expected.assert_eq(&folder.transcript(args));
}
