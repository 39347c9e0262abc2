//! Every verb of `hindsight repl` on `orders.hindsight`, a frozen recording of a live session, and on
//! `captured.hindsight`, one of the same program with captures. The tests compare what a user sees at stops, entries,
//! returns and lines of output, byte for byte.

mod json;
mod looks;
mod moves;
mod session;
mod state;

#[path = "../common/mod.rs"]
mod common;

use common::Folder;
use expect_test::Expect;

fn check(lines: &[&str], expected: Expect) {
    let folder = Folder::with_frozen(&["orders"]);
    expected.assert_eq(&folder.repl("orders", lines));
}

fn check_captured(lines: &[&str], expected: Expect) {
    let folder = Folder::with_frozen(&["captured"]);
    expected.assert_eq(&folder.repl("captured", lines));
}
