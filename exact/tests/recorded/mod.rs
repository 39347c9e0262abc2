//! Programs that print addresses, recorded.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use exact::{Options, record};

/// Records a program in C, which prints addresses. Returns them.
pub fn recorded<const N: usize>(source: &str, folder: &Path) -> [u64; N] {
    let (file, program) = (folder.join("program.c"), folder.join("program"));
    fs::write(&file, source).expect("the folder is writable");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-o"]).arg(&program).arg(&file);
    assert!(compiler.status().expect("gcc is installed").success());
    let options = Options {
        output: Some(folder.join("output")),
        input: Some(PathBuf::from("/dev/null")),
        ..Options::default()
    };
    let command = [OsString::from(&program)];
    let summary = record(&program, &command, folder, options).expect("it can be recorded");
    assert_eq!((summary.lost, summary.code), (None, Some(0)));
    let output = fs::read_to_string(folder.join("output")).expect("the output is there");
    let words = output.split_whitespace();
    let addresses = words.map(|word| {
        let digits = word.trim_start_matches("0x");
        u64::from_str_radix(digits, 16).expect("an address")
    });
    let addresses: Vec<u64> = addresses.collect();
    addresses.try_into().expect("so many addresses")
}
