//! Builds fixtures, once per content.
//!
//! A fixture is a folder below `fixtures/` with a file `build` of lines `ARTIFACT: COMMAND`. Commands run in order with
//! `sh -e` in the fixture's folder; `$OUT` is where artifacts go. `$SQLITE_SOURCE` and `$LUA_SOURCE` are the folders of
//! those programs' C files, for fixtures that mention them.

use crate::scratch::{target_dir, workspace_dir};
use std::collections::HashMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// Returns the built file `artifact` of the fixture `name`, building the fixture if it changed.
///
/// # Panics
/// With the compiler's output, if a command fails or the fixture has no such artifact.
#[must_use]
pub fn fixture_artifact(name: &str, artifact: &str) -> PathBuf {
    static BUILT: OnceLock<Mutex<HashMap<String, PathBuf>>> = OnceLock::new();
    let mut built = BUILT
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let out = built
        .entry(name.to_owned())
        .or_insert_with(|| build(name))
        .clone();
    let path = out.join(artifact);
    assert!(
        path.exists(),
        "fixture {name} has no line for {artifact} in its build file"
    );
    path
}

/// Returns the folder with the sources of the fixture `name`.
#[must_use]
pub fn fixture_source(name: &str) -> PathBuf {
    workspace_dir().join("fixtures").join(name)
}

fn build(name: &str) -> PathBuf {
    let source = fixture_source(name);
    let recipe = fs::read_to_string(source.join("build"))
        .unwrap_or_else(|e| panic!("fixture {name}: build: {e}"));
    let out = target_dir().join("fixtures").join(name);
    fs::create_dir_all(&out).expect("the target folder is writable");
    let lock = File::create(out.join(".lock")).expect("the target folder is writable");
    lock.lock().expect("files can be locked");
    let stamp = content_hash(&source).to_string();
    let stamp_file = out.join(".stamp");
    if fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        return out;
    }
    for line in recipe
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        let (artifact, command) = line
            .split_once(": ")
            .expect("a build line is `ARTIFACT: COMMAND`");
        run_line(&source, &out, command);
        assert!(
            out.join(artifact).exists(),
            "fixture {name}: {command} did not make {artifact}"
        );
    }
    fs::write(stamp_file, stamp).expect("the target folder is writable");
    out
}

fn run_line(source: &Path, out: &Path, line: &str) {
    let mut command = Command::new("sh");
    command
        .args(["-ec", line])
        .current_dir(source)
        .env("OUT", out);
    if line.contains("$SQLITE_SOURCE") {
        command.env("SQLITE_SOURCE", sqlite_source());
    }
    if line.contains("$LUA_SOURCE") {
        command.env("LUA_SOURCE", lua_source());
    }
    let done = command.output().expect("sh can be started");
    assert!(
        done.status.success(),
        "building in {} failed: {line}\n{}{}",
        source.display(),
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Returns the folder of Lua's C files, in the crate from which the fixtures build it.
///
/// # Panics
/// If cargo does not have it.
#[must_use]
pub fn lua_source() -> PathBuf {
    crate_folder("lua-src").join("lua-5.4.9")
}

/// Returns the folder of SQLite's C files, in the crate from which the fixtures build it.
///
/// # Panics
/// If cargo does not have it.
#[must_use]
pub fn sqlite_source() -> PathBuf {
    crate_folder("libsqlite3-sys").join("sqlite3")
}

/// Cargo's folder of the source of a crate that this one names as a dependency (and never compiles).
fn crate_folder(name: &str) -> PathBuf {
    let manifest = workspace_dir().join("Cargo.toml");
    let done = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--manifest-path",
        ])
        .arg(manifest)
        .output()
        .expect("cargo can be started");
    assert!(
        done.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    let metadata: serde_json::Value =
        serde_json::from_slice(&done.stdout).expect("cargo metadata prints JSON");
    let package = metadata["packages"]
        .as_array()
        .and_then(|all| all.iter().find(|p| p["name"] == name))
        .unwrap_or_else(|| panic!("{name} is not among the dependencies of the tests"));
    let path = package["manifest_path"]
        .as_str()
        .expect("a package has a manifest");
    Path::new(path)
        .parent()
        .expect("a manifest lies in a folder")
        .to_path_buf()
}

fn content_hash(folder: &Path) -> u64 {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the fixture's folder")
        .map(|e| e.expect("a folder entry").path())
        .collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files.iter().filter(|f| !f.ends_with("README.md")) {
        file.hash(&mut hasher);
        fs::read(file)
            .expect("a fixture has only files")
            .hash(&mut hasher);
    }
    hasher.finish()
}
