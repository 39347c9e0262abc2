//! Clients of `hindsight mcp`: a Python with the protocol's SDK, and the scripts of `tests/mcp/` that it runs.

use crate::hindsight::Hindsight;
use crate::live::Live;
use crate::process::{Program, wait_until};
use crate::scratch::target_dir;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use tempfile::TempDir;

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
    let program = live.program(&scripts().join(script), args);
    let job = Job::begin(&program.env("HINDSIGHT_BIN", Hindsight::path()));
    let status = wait_until(script, || job.read("status"));
    assert_eq!(status, "0", "{}", job.read("errors").unwrap_or_default());
    job.read("output").expect("it is told where the status is")
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp")
}

/// A script that `warm.py` runs.
struct Job {
    told: TempDir,
}

impl Job {
    /// Begins to run a script, which is the path of the program.
    fn begin(program: &Program) -> Self {
        let told = tempfile::tempdir().expect("a folder for what it tells");
        let text = |text: &std::ffi::OsStr| text.to_str().expect("text").to_owned();
        let environment = program
            .env
            .iter()
            .map(|(name, value)| (text(name), text(value)));
        let job = json!({
            "script": text(program.path.as_os_str()),
            "arguments": program.args.iter().map(|arg| text(arg)).collect::<Vec<_>>(),
            "folder": text(program.dir().as_os_str()),
            "environment": environment.collect::<BTreeMap<_, _>>(),
            "told": text(told.path().as_os_str()),
        });
        let mut warm = warm().lock().unwrap_or_else(PoisonError::into_inner);
        let stdin = warm.stdin.as_mut().expect("it is a pipe");
        stdin
            .write_all(format!("{job}\n").as_bytes())
            .expect("warm.py runs as long as the tests");
        Self { told }
    }

    /// A file that it has written.
    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.told.path().join(name)).ok()
    }
}

impl Drop for Job {
    /// Ends a script that takes too long.
    fn drop(&mut self) {
        let pid = self.read("pid").and_then(|pid| pid.parse().ok());
        if let (None, Some(group)) = (self.read("status"), pid.and_then(Pid::from_raw)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// A Python with the protocol's SDK, which runs the scripts until the test program ends.
fn warm() -> &'static Mutex<Child> {
    static WARM: OnceLock<Mutex<Child>> = OnceLock::new();
    WARM.get_or_init(|| {
        let started = Command::new(python())
            .arg(scripts().join("warm.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        Mutex::new(started.expect("python can be started"))
    })
}
