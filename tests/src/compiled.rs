//! Programs of one file, which a test compiles for itself.

use crate::process::{Program, Status};
use crate::scratch::Scratch;
use std::path::PathBuf;

/// Compiles a program of one file in the test's folder: `app.c` with gcc, `app.cc` with g++, to `app`. Returns its path.
///
/// # Panics
/// If it does not compile.
pub fn compiled(scratch: &Scratch, file: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (name, compiler) = match file.rsplit_once('.') {
        Some((name, "c")) => (name, "/usr/bin/gcc"),
        Some((name, "cc")) => (name, "/usr/bin/g++"),
        _ => panic!("{file} is neither C nor C++"),
    };
    std::fs::write(scratch.join(file), source).expect("the test's folder is writable");
    // Libraries among the flags must stand behind the file.
    let built = Program::new(compiler, scratch.path())
        .args(["-o", name, file])
        .args(flags)
        .run();
    assert_eq!(
        built.status,
        Status::Code(0),
        "{file} does not compile: {}",
        built.errors()
    );
    scratch.join(name)
}
