//! Goal: the fuzz targets compile and run, though only a nightly toolchain fuzzes with them. Method: a stand-in for libfuzzer's
//! macro makes a function of each target.
#![allow(
    unused_attributes,
    reason = "the targets are crates of their own elsewhere"
)]

extern crate self as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/recording.rs"]
mod recording;

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
fn the_target_reads_any_bytes_in_every_way() {
    recording::run(b"");
    for way in 0..store::fuzzing::WAYS {
        recording::run(&[way]);
        recording::run(&[way, b'P', b'A', b'R', b'1', 0xff, 0x80, 0]);
    }
}
