//! Goal: the fuzz targets compile and run, though only a nightly toolchain fuzzes with them. Method: a stand-in for libfuzzer's
//! macro makes a function of each target.
#![allow(
    unused_attributes,
    reason = "the targets are crates of their own elsewhere"
)]

extern crate self as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/location.rs"]
mod location;
#[path = "../fuzz/fuzz_targets/module.rs"]
mod module;

/// As that of `libfuzzer_sys`, for one input.
#[macro_export]
macro_rules! fuzz_target {
    (|$data:ident: &[u8]| $body:expr) => {
        pub(crate) fn run($data: &[u8]) {
            $body
        }
    };
}

#[test]
fn the_targets_read_any_bytes() {
    for run in [location::run, module::run] {
        for bytes in [&b""[..], b"\0", b"\x7fELF\x02\x01\x01\0\xff\x80"] {
            run(bytes);
        }
    }
}
