//! Goal: code that shares its page with data, or that writes over itself, computes what it computes natively, and its recording runs
//! again. Method: small programs are run natively and recorded; output and end are compared, and the recording is run again.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use exact::{Options, Replay, record, verify};
use tempfile::TempDir;

fn compiled(name: &str, folder: &Path) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = programs.join(name).with_extension("c");
    let program = folder.join(name);
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-g", "-w", "-pthread", "-o"]);
    let status = compiler.arg(&program).arg(&source).status();
    assert!(status.expect("the compiler is installed").success());
    program
}

/// Compares a program's output, exit code and signal, and runs the recording again.
fn same(what: &str, count: u32) {
    same_of("own_code", what, count);
}

fn same_of(name: &str, what: &str, count: u32) {
    let folder = TempDir::new().expect("a folder");
    let program = compiled(name, folder.path());
    let arguments = [String::from(what), count.to_string()];
    let native = Command::new(&program).args(&arguments).output();
    let native = native.expect("it can be started");
    let output = folder.path().join("output");
    let options = Options {
        output: Some(output.clone()),
        input: Some(PathBuf::from("/dev/null")),
        ..Options::default()
    };
    let mut command = vec![OsString::from(&program)];
    command.extend(arguments.iter().map(OsString::from));
    let summary = record(&program, &command, folder.path(), options).expect("it can be recorded");
    assert_eq!(summary.lost, None, "{what}");
    let text = fs::read(&output).expect("the output is there");
    assert_eq!(
        (String::from_utf8_lossy(&text), summary.code, summary.signal),
        (
            String::from_utf8_lossy(&native.stdout),
            native.status.code(),
            native.status.signal()
        ),
        "{what}"
    );
    let verdict = verify(folder.path(), &mut |_, _| true).expect("it can be run again");
    assert_eq!(verdict.contradiction, None, "{what}");
    assert!(verdict.whole && verdict.registers > 0, "{verdict:?}");
    let mut replay = Replay::open(folder.path()).expect("it can be opened");
    let end = replay.end();
    for place in [end, end - 1000, end - 2000, end / 2, end] {
        replay.goto(place).expect("the position can be reached");
        assert_eq!(replay.position(), place);
    }
}

#[test]
fn a_counter_lies_beside_the_code_that_increments_it() {
    same("data", 2000);
}

#[test]
fn code_changes_the_instruction_that_follows() {
    same("itself", 50);
}

#[test]
fn code_changes_itself_across_the_border_of_a_page() {
    same("border", 50);
}

#[test]
fn a_repeated_instruction_writes_over_what_follows_it() {
    same("filled", 50);
}

#[test]
fn the_kernel_writes_beside_code_and_over_it() {
    same("kernel", 30);
}

#[test]
fn frames_of_handlers_lie_beside_code() {
    same("frames", 30);
}

#[test]
fn threads_write_beside_code_that_they_execute() {
    same("threads", 300);
}

#[test]
fn a_write_to_code_has_a_fault_of_its_own() {
    same("faulted", 1);
}

#[test]
fn a_child_writes_beside_code_that_its_parent_has_executed() {
    same("forked", 20);
}

#[test]
fn code_changes_where_it_was_moved_or_is_mapped_twice() {
    for way in ["moved", "twice", "again", "part", "over", "sent"] {
        same_of("moved_code", way, 30);
    }
}
