//! Clients of `hindsight mcp`: a Python with the protocol's SDK, and the scripts of `tests/mcp/` that it runs.

use crate::hindsight::Hindsight;
use crate::live::Live;
use crate::scratch::target_dir;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A Python with the protocol's SDK and a tokenizer, installed on first use.
fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let packages = ["mcp==2.3.0", "rs-bpe==0.1.0"];
        python_with("mcp", &packages, "mcp.client, rs_bpe")
    })
}

/// A Python with packages, in an environment of this name that is created on first use. It can then import `modules`.
///
/// # Panics
/// If it cannot be made.
#[must_use]
pub fn python_with(name: &str, packages: &[&str], modules: &str) -> PathBuf {
    let folder = target_dir().join("tmp");
    fs::create_dir_all(&folder).expect("the target folder is writable");
    let lock = File::create(folder.join(format!("{name}-venv.lock")));
    let lock = lock.expect("a file for the lock");
    // Tests of other files may make it too.
    lock.lock().expect("files can be locked");
    let venv = folder.join(format!("{name}-venv"));
    let python = venv.join("bin/python");
    let ready = Command::new(&python)
        .args(["-c", &format!("import {modules}")])
        .stderr(Stdio::null())
        .status();
    if !ready.is_ok_and(|status| status.success()) {
        install(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        install(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet"])
                .args(packages),
        );
    }
    python
}

/// Runs a command that installs something for the tests.
///
/// # Panics
/// If it fails.
pub fn install(command: &mut Command) {
    let status = command.status();
    let well = status.as_ref().is_ok_and(|status| status.success());
    assert!(well, "{command:?}: {status:?}");
}

/// Runs a script of `tests/mcp/` in the environment of the test's own daemon, and returns what it prints.
///
/// # Panics
/// With its errors, if it fails.
#[must_use]
pub fn mcp_script(live: &Live, script: &str, args: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/mcp")
        .join(script);
    let script = script.to_str().expect("paths of tests are text");
    let words = [&[script], args].concat();
    let ended = live
        .program(python(), &words)
        .env("HINDSIGHT_BIN", Hindsight::path())
        .run();
    assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
    ended.text()
}
