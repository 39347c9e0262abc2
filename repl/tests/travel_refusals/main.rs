//! The refusals of `hindsight repl` in a recording. Each message that can be reached appears once.

mod frames;
mod lines;
mod moves;
mod recordings;
mod values;

#[path = "../common/mod.rs"]
mod common;

use common::Folder;
use expect_test::Expect;
use store::seal::{Ending, SealOptions, Sealer};
use store::synth::Synth;

fn check(recording: &str, lines: &[&str], expected: Expect) {
    let folder = Folder::with_frozen(&["orders", "shop"]);
    expected.assert_eq(&folder.repl(recording, lines));
}

/// The end of the synthetic threads' stacks.
const SLOT: u64 = 0x7f00_0000_8000;

/// Makes a folder with a synthetic recording `made.hindsight`, closed and sealed.
fn made(synth: &Synth) -> Folder {
    let folder = Folder::empty();
    let recording = synth.record(&folder.path("made.hindsight")).unwrap();
    let sealer = Sealer::own(&recording, SealOptions::default()).unwrap();
    sealer.finish(Ending::Close, |_| {}).unwrap();
    folder
}
