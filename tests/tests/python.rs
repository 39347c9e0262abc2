//! Goal: a Python script drives live sessions and queries recordings, with the package as a user installs it. Method: pip
//! installs `server/python` and the libraries of data frames into an environment; `python/shop.py` checks them.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use e2e::{Hindsight, Live, fixture_artifact, install, workspace_dir};

#[test]
fn a_script_controls_a_program_and_asks_its_recording() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let lock = File::create(folder.join("python-venv.lock")).expect("a file for the lock");
    lock.lock().expect("files can be locked");
    let venv = folder.join("python-venv");
    let python = venv.join("bin/python");
    if !venv.join("installed").exists() {
        install(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        let libraries = ["pyarrow==21.0.0", "pandas==2.3.3", "polars==1.34.0"];
        let mut pip = Command::new(&python);
        install(
            pip.args(["-m", "pip", "install", "--quiet"])
                .args(libraries),
        );
        File::create(venv.join("installed")).expect("the environment is writable");
    }
    // A copy: setuptools writes beside the sources.
    let copy = folder.join("python-package");
    let mut package = Command::new("cp");
    install(
        package
            .arg("-rT")
            .arg(workspace_dir().join("server/python"))
            .arg(&copy),
    );
    let mut pip = Command::new(&python);
    install(
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--force-reinstall",
            "--no-deps",
        ])
        .arg(&copy),
    );

    let live = Live::new("python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/shop.py");
    let fib = fixture_artifact("fib", "fib");
    let words = [&script, &fib].map(|path| path.to_str().expect("paths of tests are text"));
    let ended = live
        .program(&python, &words)
        .env("HINDSIGHT_BIN", Hindsight::path())
        .run();
    assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
    assert_eq!(ended.text().lines().last(), Some("all checks passed"));
}
