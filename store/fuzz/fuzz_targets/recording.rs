//! Fuzzes every reader of recordings through `store::fuzzing::entry`.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use store::fuzzing;
use tempfile::TempDir;

static DIR: LazyLock<TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a folder for temporary files exists"));

fuzz_target!(|data: &[u8]| {
    if data
        .first()
        .is_some_and(|way| way % fuzzing::WAYS >= fuzzing::FIRST_SEALED_WAY)
    {
        return;
    }
    fuzzing::entry(data, DIR.path()).expect("the temporary folder can be written");
});
