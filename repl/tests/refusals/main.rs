//! Wrong queries, names and files: transcripts of `hindsight sql`, with one clear line and the next step.

mod files;
mod programs;
mod queries;
mod words;

#[path = "../common/mod.rs"]
mod common;

use common::Folder;
use expect_test::Expect;

/// Runs each query and concatenates the transcripts.
fn check(questions: &[&str], expected: Expect) {
    let folder = Folder::with_shop();
    let ask = |question: &&str| folder.transcript(&["sql", "shop", question]);
    expected.assert_eq(&questions.iter().map(ask).collect::<Vec<_>>().join("\n"));
}

fn check_args(folder: &Folder, args: &[&str], expected: Expect) {
    expected.assert_eq(&folder.transcript(args));
}
