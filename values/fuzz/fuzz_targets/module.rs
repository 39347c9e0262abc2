//! Fuzzes every reader of modules and their debug files through `debuginfo::fuzzing::entry`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static DIR: LazyLock<TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a folder for temporary files exists"));

fuzz_target!(|data: &[u8]| {
    debuginfo::fuzzing::entry(data, DIR.path(), &values::fuzzing::show)
        .expect("the temporary folder can be written");
});
