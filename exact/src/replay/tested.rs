//! For tests: programs in C, recorded.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::record::{Options, Summary, record};

/// Records a program that ends with an exit code. Returns what it prints.
pub(super) fn printed(source: &str, code: i32, folder: &Path) -> String {
    let (summary, output) = run(source, folder);
    assert_eq!((summary.lost, summary.code), (None, Some(code)));
    output
}

/// Records a program, however it ends. Returns that, and what it prints.
pub(super) fn run(source: &str, folder: &Path) -> (Summary, String) {
    let (file, program) = (folder.join("program.c"), folder.join("program"));
    fs::write(&file, source).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-pthread", "-o"]);
    compiler.arg(&program).arg(&file);
    assert!(compiler.status().unwrap().success());
    let options = Options {
        output: Some(folder.join("output")),
        input: Some(PathBuf::from("/dev/null")),
        ..Options::default()
    };
    let command = [OsString::from(&program)];
    let summary = record(&program, &command, folder, options).unwrap();
    (summary, fs::read_to_string(folder.join("output")).unwrap())
}

/// Records a program that prints one address. Returns that.
pub(super) fn recorded(source: &str, folder: &Path) -> u64 {
    let output = printed(source, 0, folder);
    u64::from_str_radix(output.trim().trim_start_matches("0x"), 16).unwrap()
}
