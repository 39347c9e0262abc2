//! Goal: a parameter's place is where the callee really gets it, a result's place is where the caller finds it.
//! Method: the programs print every value just before they pass it; gdb stops at the callee's first instruction and
//! after its return; the registers and stack bytes at the stated places must be the printed ones.

mod common;

use std::path::Path;

use common::observed::{compare, observe, summaries_agree};
use common::{Bench, open, program};

/// Functions of the C program that optimisers may change.
const CHANGED: [&str; 3] = ["changed", "pure_unused", "ignored_result"];
/// Older versions of DWARF cannot state that a type is aligned to 32 bytes.
const OVERALIGNED: [&str; 1] = ["pass_wide"];

fn check(path: &Path, lenient: &[&str], at_least: usize) {
    let module = open(path);
    let main = module.symbols().into_iter().find(|s| s.linkage == "main");
    let main = main.expect("every program has a main").svma.0;
    let observed = observe(path, &module, main);
    let compared = compare(&module, &observed, lenient);
    assert!(compared >= at_least, "only {compared} values compared");
    summaries_agree(&module.functions().list);
}

fn c(options: &[&str], lenient: &[&str]) {
    let bench = Bench::new();
    let options = [&["-g", "-w", "-Wno-psabi"], options].concat();
    let path = bench.compile("gcc", &program("arguments.c"), "arguments", &options);
    check(&path, lenient, 150);
}

#[test]
fn c_without_optimisation() {
    c(&["-O0"], &[]);
}

#[test]
fn c_dwarf_4_at_a_fixed_address() {
    c(&["-O1", "-gdwarf-4", "-no-pie"], &CHANGED);
}

#[test]
fn c_dwarf_3() {
    c(&["-O0", "-gdwarf-3", "-gstrict-dwarf"], &OVERALIGNED);
}

#[test]
fn c_dwarf_2() {
    c(&["-O0", "-gdwarf-2", "-gstrict-dwarf"], &OVERALIGNED);
}

#[test]
fn c_optimised_with_changed_signatures() {
    c(&["-O2"], &CHANGED);
}

#[test]
fn c_optimised_at_link_time() {
    c(&["-O2", "-flto", "-no-pie"], &CHANGED);
}

fn cxx(options: &[&str]) {
    let bench = Bench::new();
    let options = [&["-g", "-w"], options].concat();
    let path = bench.compile("g++", &program("arguments.cpp"), "arguments", &options);
    check(&path, &[], 95);
}

#[test]
fn cxx_without_optimisation() {
    cxx(&["-O0"]);
}

#[test]
fn cxx_dwarf_4_tells_trivial_classes_by_their_members() {
    cxx(&["-O0", "-gdwarf-4"]);
}

#[test]
fn cxx_with_type_units() {
    cxx(&["-O1", "-gdwarf-4", "-fdebug-types-section"]);
}

#[test]
fn cxx_dwarf_5_with_type_units() {
    cxx(&["-O1", "-gdwarf-5", "-fdebug-types-section"]);
}
