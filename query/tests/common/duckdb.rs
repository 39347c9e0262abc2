//! A Python with DuckDB, for tests that compare with another engine. Other crates' tests include this file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a Python that has DuckDB, made the first time.
pub fn python_with_duckdb() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(folder).unwrap();
    // Other tests may make it too.
    let lock = File::create(folder.join("duckdb-venv.lock")).unwrap();
    lock.lock().unwrap();
    let venv = folder.join("duckdb-venv");
    let python = venv.join("bin/python");
    let ready = Command::new(&python).args(["-c", "import duckdb"]).status();
    if !ready.is_ok_and(|status| status.success()) {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "duckdb==2.0.0"]));
    }
    python
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(|s| s.success()),
        "{command:?}: {status:?}"
    );
}
