//! Goal: memory that changes by other addresses, by calls or by another process, and the processor's trap flag, end no program otherwise
//! than natively, and what is recorded of it runs again, forwards and backwards. Method: small programs are run natively and recorded.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use exact::{Options, Replay, Summary, record, verify};
use tempfile::TempDir;

/// Compares a program's output and exit code; returns how its recording went.
fn recorded(what: &str, folder: &Path) -> Summary {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/shared.c");
    let program = folder.join("shared");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-g", "-w", "-o"]).arg(&program);
    let status = compiler.arg(&source).status();
    assert!(status.expect("the compiler is installed").success());
    let native = Command::new(&program).arg(what).output();
    let native = native.expect("it can be started");
    let output = folder.join("output");
    let options = Options {
        output: Some(output.clone()),
        input: Some(PathBuf::from("/dev/null")),
        ..Options::default()
    };
    let command = [OsString::from(&program), OsString::from(what)];
    let summary = record(&program, &command, folder, options).expect("it can be recorded");
    let text = fs::read(&output).expect("the output is there");
    assert_eq!(
        (String::from_utf8_lossy(&text), summary.code),
        (
            String::from_utf8_lossy(&native.stdout),
            native.status.code()
        ),
        "{what}"
    );
    summary
}

fn runs_again(folder: &Path) {
    let verdict = verify(folder, &mut |_, _| true).expect("it can be run again");
    assert_eq!(verdict.contradiction, None);
    assert!(verdict.whole && verdict.registers > 0, "{verdict:?}");
    let mut replay = Replay::open(folder).expect("it can be opened");
    let end = replay.end();
    let mut seen = Vec::new();
    for place in [
        end,
        end - 3000,
        end - 1000,
        end - 3000,
        end / 2,
        end - 1000,
        end,
    ] {
        replay.goto(place).expect("the position can be reached");
        let registers = replay.registers().expect("registers");
        seen.push((place, format!("{registers:?}")));
    }
    for (place, registers) in &seen {
        let same = seen.iter().filter(|(other, _)| other == place);
        same.for_each(|(_, others)| assert_eq!(others, registers, "at {place}"));
    }
}

fn same(what: &str) {
    let folder = TempDir::new().expect("a folder");
    let summary = recorded(what, folder.path());
    assert_eq!((summary.lost, summary.doubt), (None, None), "{what}");
    runs_again(folder.path());
}

#[test]
fn code_is_written_where_it_is_not_executed() {
    same("twice");
}

#[test]
fn code_is_written_where_nothing_was_when_it_was_executed() {
    same("late");
}

#[test]
fn memory_is_mapped_twice_and_written_by_calls() {
    same("memory");
}

#[test]
fn a_file_is_mapped_twice_and_written_by_calls() {
    same("file");
}

#[test]
fn a_private_page_of_a_file_is_written_by_calls() {
    same("private");
}

#[test]
fn a_segment_is_attached_twice() {
    same("segment");
}

#[test]
fn calls_that_fail_have_done_a_part() {
    same("parts");
}

#[test]
fn what_is_moved_leaves_empty_memory() {
    same("moved");
}

#[test]
fn what_drops_nothing_is_not_copied() {
    let length = |what: &str| {
        let folder = TempDir::new().expect("a folder");
        let summary = recorded(what, folder.path());
        assert_eq!((summary.lost, summary.doubt), (None, None), "{what}");
        runs_again(folder.path());
        let log = fs::metadata(folder.path().join("log.zst"));
        log.expect("the log is there").len()
    };
    // Its 192 calls are about 32 KiB each, which cannot be compressed.
    let (kept, nothing) = (length("kept"), length("nothing"));
    assert!(kept < nothing + (1 << 20), "{kept} {nothing}");
}

#[test]
fn the_program_writes_to_its_own_memory_by_calls() {
    same("own");
}

#[test]
fn a_file_grows_at_its_end() {
    same("appended");
}

#[test]
fn a_process_beside_the_program_is_doubted() {
    let folder = TempDir::new().expect("a folder");
    let summary = recorded("beside", folder.path());
    assert_eq!(summary.lost, None);
    let doubt = summary.doubt.expect("its writes are not known");
    assert!(doubt.contains("clone with CLONE_VM"), "{doubt}");
}

#[test]
fn what_a_child_wrote_before_a_call_is_seen_and_doubted() {
    let folder = TempDir::new().expect("a folder");
    let summary = recorded("child", folder.path());
    assert_eq!(summary.lost, None);
    let doubt = summary
        .doubt
        .expect("another process may write at any moment");
    assert!(
        doubt.contains("shares memory with another process"),
        "{doubt}"
    );
    runs_again(folder.path());
}

#[test]
fn a_program_that_traps_behind_each_instruction_goes_on_natively() {
    let folder = TempDir::new().expect("a folder");
    let summary = recorded("steps", folder.path());
    let lost = summary.lost.expect("that is not recorded");
    assert!(lost.contains("trap flag"), "{lost}");
    let mut replay = Replay::open(folder.path()).expect("it can be opened");
    let end = replay.end();
    replay.goto(end).expect("the end can be reached");
}
