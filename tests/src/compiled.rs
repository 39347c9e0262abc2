//! Programs of one file, which a test compiles for itself.

use crate::process::{Program, Status};
use crate::scratch::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a program of one file in the test's folder: `app.c` and `app.s` with gcc, `app.cc` with g++, `app.rs` with rustc, to `app`.
/// Returns its path.
///
/// # Panics
/// If it does not compile.
pub fn compiled(scratch: &Scratch, file: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (name, compiler) = match file.rsplit_once('.') {
        Some((name, "c" | "s")) => (name, PathBuf::from("/usr/bin/gcc")),
        Some((name, "cc")) => (name, PathBuf::from("/usr/bin/g++")),
        Some((name, "rs")) => (name, rustc()),
        _ => panic!("{file} is neither C, assembler, C++ nor Rust"),
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

/// Returns the path of the Rust compiler itself, not of the program that chooses one.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn rustc() -> PathBuf {
    let asked = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .expect("there is a Rust toolchain");
    Path::new(String::from_utf8_lossy(&asked.stdout).trim()).join("bin/rustc")
}
