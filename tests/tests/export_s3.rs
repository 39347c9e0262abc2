//! Goal: an export to an object store equals an export to a folder, and other engines read it there. Method: moto, a
//! third-party store, holds the objects; `s3/check.py` reads them with Amazon's and Arrow's clients and runs the same
//! DuckDB queries on both.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use e2e::{Ended, Hindsight, Program, Scratch, fixture_artifact, install};
use serde_json::Value;

/// A Python with the store and the clients, installed on first use.
fn python() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let lock = File::create(folder.join("s3-venv.lock")).expect("a file for the lock");
    lock.lock().expect("files can be locked");
    let venv = folder.join("s3-venv");
    let python = venv.join("bin/python");
    if !venv.join("installed").exists() {
        install(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        let packages = ["moto[server,s3]==5.2.5", "pyarrow==21.0.0", "duckdb==2.0.0"];
        let mut pip = Command::new(&python);
        install(pip.args(["-m", "pip", "install", "--quiet"]).args(packages));
        File::create(venv.join("installed")).expect("the environment is writable");
    }
    python
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/s3")
        .join(name)
}

/// The store, which ends when this value is dropped, because its standard input ends.
struct Store {
    child: Child,
    endpoint: String,
}

impl Store {
    fn start(python: &Path) -> Store {
        let mut child = Command::new(python)
            .arg(script("server.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python starts");
        let mut port = String::new();
        let out = child.stdout.take().expect("stdout is a pipe");
        BufReader::new(out)
            .read_line(&mut port)
            .expect("the store says its port");
        let endpoint = format!("http://127.0.0.1:{}", port.trim());
        Store { child, endpoint }
    }

    fn with_keys(&self, program: Program) -> Program {
        program
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            // Nothing but this store is asked.
            .env("AWS_EC2_METADATA_DISABLED", "true")
    }

    fn export(&self, scratch: &Scratch, args: &[&str]) -> Ended {
        let words = [&["export"], args].concat();
        self.with_keys(Hindsight::command(scratch, &words)).run()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn a_bucket_holds_what_a_folder_holds() {
    let scratch = Scratch::new("export-s3");
    for (name, fixture, artifact, args) in [
        ("small", "fib", "fib", &["12"][..]),
        ("a=b", "fib", "fib", &["27"][..]),
        ("sqlite", "sqlite", "sqlite", &["300"][..]),
    ] {
        let program = Program::new(fixture_artifact(fixture, artifact), scratch.path()).args(args);
        Hindsight::recorded(&scratch, name, &[], &program);
    }
    let python = python();
    let store = Store::start(&python);
    let missing = store.export(&scratch, &["small", "--to", "s3://lake/runs"]);
    assert_eq!(missing.status.as_shell_code(), 1);
    let told = missing.errors();
    assert!(told.contains("there is no bucket lake"), "{told}");
    let make = "import boto3; boto3.client('s3').create_bucket(Bucket='lake')";
    let made = Program::new(&python, scratch.path()).args(["-c", make]);
    let made = store.with_keys(made).run();
    assert_eq!(made.status.as_shell_code(), 0, "{}", made.errors());

    for to in ["s3://lake/runs", "lake"] {
        let ended = store.export(&scratch, &["*", "--to", to]);
        assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
        let told = ended.text();
        assert!(told.contains(": 3 recordings, "), "{told}");
    }
    let again = store.export(&scratch, &["small", "--to", "s3://lake/runs"]);
    assert_eq!(again.status.as_shell_code(), 2);
    let told = again.errors();
    assert!(told.contains("part-0.parquet exists already"), "{told}");

    let lake = scratch.join("lake");
    let lake = lake.to_str().expect("paths of tests are text");
    let check = script("check.py");
    let check = check.to_str().expect("paths of tests are text");
    let args = [check, &store.endpoint, "lake", "runs", lake];
    let checked = store
        .with_keys(Program::new(&python, scratch.path()).args(args))
        .run();
    assert_eq!(checked.status.as_shell_code(), 0, "{}", checked.errors());
    let found: Value = serde_json::from_slice(&checked.stdout).expect("it prints JSON");
    let tables = fs::read_dir(lake).expect("it was written").count();
    assert_eq!(found["objects"], 3 * tables, "{found}");
    for same in ["names", "rows", "answers"] {
        assert_eq!(found[same], true, "{same}: {found}");
    }
    // One of them was uploaded in parts, and no incomplete upload is left.
    assert!(found["largest"].as_u64() > Some(8 << 20), "{found}");
    assert_eq!(found["uploads"], 0, "{found}");
    assert!(found["calls"].as_u64() > Some(700_000), "{found}");
    // Nearly all are identical byte for byte.
    assert!(found["same"].as_u64() > Some(25), "{found}");
}
