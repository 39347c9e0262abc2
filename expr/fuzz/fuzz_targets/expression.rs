//! Fuzzes the parsers of expressions and log messages through `expr::fuzzing::expression`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| expr::fuzzing::expression(data));
