//! Goal: a signal whose handler has no room on the stack ends the program as it does without recording, and the recording runs again
//! to there. Method: a program overflows its stack with a handler for SIGSEGV.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use exact::{Options, Replay, record, verify};
use tempfile::TempDir;

#[test]
fn a_handler_without_room_ends_the_program() {
    let folder = TempDir::new().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/no_room.c");
    let program = folder.path().join("no_room");
    let mut compiler = Command::new("gcc");
    let compiled = compiler
        .args(["-O1", "-g", "-o"])
        .arg(&program)
        .arg(&source);
    assert!(
        compiled
            .status()
            .expect("the compiler is installed")
            .success()
    );
    let native = Command::new(&program).status().expect("it runs");
    assert_eq!(native.signal(), Some(libc::SIGSEGV));

    let options = Options {
        output: Some(folder.path().join("output")),
        input: Some(PathBuf::from("/dev/null")),
        ..Options::default()
    };
    let command = [OsString::from(&program)];
    let recording = folder.path().join("recording");
    std::fs::create_dir(&recording).expect("the folder can be written");
    let summary = record(&program, &command, &recording, options).expect("it can be recorded");
    assert_eq!((summary.lost, summary.signal), (None, Some(libc::SIGSEGV)));
    let verdict = verify(&recording, &mut |_, _| true).expect("it runs again");
    assert!(
        verdict.whole && verdict.contradiction.is_none(),
        "{verdict:?}"
    );
    let mut replay = Replay::open(&recording).expect("the recording can be opened");
    let end = replay.end();
    replay.goto(end).expect("the end is reached");
    let fatal = summary.fatal.expect("a signal ended it");
    assert_eq!(fatal.signal, libc::SIGSEGV);
    let deepest = replay.registers().expect("registers").rsp;
    replay.goto(0).expect("a position");
    let first = replay.registers().expect("registers").rsp;
    assert!(first - deepest > 400 << 10, "{first:#x} {deepest:#x}");
}
