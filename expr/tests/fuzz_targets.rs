//! Goal: the fuzz targets compile and run, although only a nightly toolchain can fuzz with them. Method: a stand-in for
//! libfuzzer's macro makes a function of each target.
#![allow(
    unused_attributes,
    reason = "the targets are crates of their own elsewhere"
)]

extern crate self as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/expression.rs"]
mod expression;

/// Like the macro of `libfuzzer_sys`, for one input.
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
    for bytes in [&b""[..], b"\0", b"a[0]->b", b"\xff{x:"] {
        expression::run(bytes);
    }
}
