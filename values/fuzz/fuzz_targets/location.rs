//! Fuzzes the evaluator of DWARF expressions through `debuginfo::fuzzing::location`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| debuginfo::fuzzing::location(data, &values::fuzzing::show));
