//! Goal: a file that is not a 64-bit program for x86-64 is refused with an error that names it and states the reason.
//! Method: the compiler makes such files if it can; the others are made by changing the header.

mod common;

use std::path::Path;

use common::{Bench, program};
use debuginfo::{Error, Module};

fn refused(bytes: Vec<u8>) -> Error {
    let error = Module::from_bytes("/some/file", bytes).expect_err("it is no program");
    let text = error.to_string();
    assert!(text.starts_with("open /some/file: "), "{text}");
    error
}

fn library(bench: &Bench) -> Vec<u8> {
    let options = ["-g", "-shared", "-fPIC", "-nostdlib"];
    let path = bench.compile("gcc", &program("small.c"), "small.so", &options);
    std::fs::read(path).expect("a file that gcc wrote")
}

#[test]
fn other_files() {
    let script = || b"#!/bin/sh\necho hello\n".to_vec();
    for bytes in [Vec::new(), b"\x7fEL".to_vec(), script(), b"MZ\x90".to_vec()] {
        let error = refused(bytes);
        assert!(matches!(error, Error::NotElf { .. }), "{error:?}");
        assert!(error.to_string().contains("not an ELF file"));
    }
}

#[test]
fn a_file_that_is_not_there_a_folder_and_a_pipe() {
    let bench = Bench::new();
    let pipe = bench.path("pipe");
    common::run(std::process::Command::new("mkfifo").arg(&pipe));
    for path in [&bench.path("absent"), bench.dir(), &pipe] {
        let error = Module::open(path).expect_err("it is no file");
        assert!(matches!(error, Error::Open { .. }), "{error:?}");
        assert!(
            error.to_string().contains(&*path.to_string_lossy()),
            "{error}"
        );
    }
}

#[test]
fn another_class_byte_order_or_machine() {
    let bench = Bench::new();
    let changed = |at: usize, value: u8| {
        let mut bytes = library(&bench);
        bytes[at] = value;
        refused(bytes)
    };
    let error = changed(4, 1);
    assert!(
        matches!(error, Error::WrongClass { what: "32-bit", .. }),
        "{error:?}"
    );
    let error = changed(5, 2);
    assert!(
        matches!(
            error,
            Error::WrongClass {
                what: "big-endian",
                ..
            }
        ),
        "{error:?}"
    );
    let error = changed(18, 183);
    assert!(
        matches!(error, Error::WrongMachine { machine: 183, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("183"), "{error}");
}

#[test]
fn objects_and_core_dumps() {
    let bench = Bench::new();
    let object = bench.compile("gcc", &program("small.c"), "small.o", &["-c"]);
    let error = refused(std::fs::read(object).unwrap());
    assert!(
        matches!(
            error,
            Error::NotLoadable {
                what: "an object file",
                ..
            }
        ),
        "{error:?}"
    );
    let mut core = library(&bench);
    core[16] = 4;
    let error = refused(core);
    assert!(
        matches!(
            error,
            Error::NotLoadable {
                what: "a core dump",
                ..
            }
        ),
        "{error:?}"
    );
}

/// Files cut inside their headers, or before their section headers, which are at the end.
#[test]
fn cut_files() {
    let bench = Bench::new();
    let whole = library(&bench);
    for length in [16, 40, 63, 100, 5000, whole.len() - 1] {
        let error = refused(whole[..length].to_vec());
        assert!(
            matches!(error, Error::Damaged { .. }),
            "{length}: {error:?}"
        );
        assert!(
            error.to_string().contains("damaged ELF headers: "),
            "{error}"
        );
    }
}

/// Damage inside a unit is reported with the unit's offset. The functions before the damage remain.
#[test]
fn a_unit_that_is_cut() {
    let bench = Bench::new();
    let path = bench.compile(
        "gcc",
        &program("small.c"),
        "small.so",
        &["-g", "-shared", "-fPIC", "-nostdlib"],
    );
    let all = common::open(&path).functions().list.len();
    let info = section(&path, ".debug_info", &bench);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes
        .windows(info.len())
        .position(|w| w == info)
        .expect("the section lies in the file");
    // No abbreviation has this number.
    let middle = info.len() / 2;
    bytes[at + middle..at + info.len()].fill(0x7e);
    let module = Module::from_bytes("cut", bytes).unwrap();
    let functions = module.functions();
    assert!(
        functions.list.len() < all,
        "{} of {all} functions",
        functions.list.len()
    );
    let [warning] = &functions.warnings[..] else {
        panic!("{:?}", functions.warnings);
    };
    assert!(
        warning
            .to_string()
            .contains("the unit at offset 0x0 of cut is damaged: "),
        "{warning}"
    );
}

fn section(path: &Path, name: &str, bench: &Bench) -> Vec<u8> {
    let dumped = bench.path("dumped");
    let option = format!("{name}={}", dumped.display());
    let mut objcopy = std::process::Command::new("objcopy");
    common::run(
        objcopy
            .arg("--dump-section")
            .arg(option)
            .arg(path)
            .arg(bench.path("copy")),
    );
    std::fs::read(dumped).unwrap()
}
