//! Goal: a distributed engine reads the export, and answers as `hindsight sql` does from the recordings. Method: Ballista's
//! wheel, one scheduler and two executors as processes on loopback addresses (`ballista/cluster.py`), answers the same
//! queries; the executors' logs show which of them did what.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::{Hindsight, Program, Scratch, fixture_artifact, install};
use serde_json::{Value, json};

const WHEEL: &str = "ballista==54.1.0";

/// The queries for every engine. They name their columns, because engines generate different names.
const QUESTIONS: [&str; 4] = [
    "select run, count(*) as calls, count(distinct function) as functions, min(start_seq) as first_seq, max(end_seq) as last_seq,
     sum(dur_ns) as total_ns from calls group by run order by run",
    "select r.run, r.labels, r.exit_code, c.function, count(*) as calls, max(c.depth) as deepest from calls c
     join runs r on c.run = r.run where r.labels like '%\"build\":\"old\"%' group by r.run, r.labels, r.exit_code, c.function
     order by r.run, calls desc, c.function",
    "select function, count(*) as calls from calls where run = 'fib-15' group by function order by function",
    "select run, start_seq, args, ret_text from calls where function = 'fib' order by run, start_seq",
];

/// A Python with the engine and its client, installed on first use.
fn python() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let lock = File::create(folder.join("ballista-venv.lock")).expect("a file for the lock");
    lock.lock().expect("files can be locked");
    let venv = folder.join("ballista-venv");
    let python = venv.join("bin/python");
    if !venv.join("installed").exists() {
        install(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        let pip = |args: &[&str]| {
            let words = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:"];
            install(Command::new(&python).args(words).args(args));
        };
        pip(&["datafusion==54.0.0", "pyarrow==26.0.1"]);
        // Named with its platform, because pip considers this machine's C library too old; `loads.py` explains why it is
        // not.
        let packages = packages(&python);
        let into = packages.to_str().expect("paths of tests are text");
        let platform = ["--platform", "manylinux_2_39_x86_64", "--target", into];
        pip(&[&platform[..], &["--no-deps", WHEEL]].concat());
        let library = packages.join("ballista/_internal_ballista.abi3.so");
        install(Command::new(&python).arg(script("loads.py")).arg(library));
        File::create(venv.join("installed")).expect("the environment is writable");
    }
    python
}

/// The folder of an environment's packages.
fn packages(python: &Path) -> PathBuf {
    let ask = "import sysconfig; print(sysconfig.get_path('purelib'), end='')";
    let said = Command::new(python)
        .args(["-c", ask])
        .output()
        .expect("python starts");
    PathBuf::from(String::from_utf8(said.stdout).expect("paths of tests are text"))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/ballista")
        .join(name)
}

/// Records four runs of two programs and exports them to the folder `lake`.
fn export(scratch: &Scratch) -> PathBuf {
    for (name, build, fixture, args) in [
        ("fib-12", "old", "fib", "12"),
        ("fib-15", "new", "fib", "15"),
        ("fib-16", "old", "fib", "16"),
        ("sqlite", "new", "sqlite", "50"),
    ] {
        let program = fixture_artifact(fixture, fixture);
        let program = Program::new(program, scratch.path()).args([args]);
        let label = format!("build={build}");
        let options = ["--label", &label];
        Hindsight::recorded(scratch, name, &options, &program);
    }
    let ended = Hindsight::command(scratch, &["export", "*", "--to", "lake"]).run();
    assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
    scratch.join("lake")
}

/// The answers of the recordings themselves.
fn recordings_say(scratch: &Scratch, question: &str) -> Value {
    let ended = Hindsight::command(scratch, &["sql", "*", question, "--json"]).run();
    assert_eq!(ended.status.as_shell_code(), 0, "{}", ended.errors());
    ended.result()
}

#[test]
fn two_executors_answer_as_the_recordings_do() {
    let scratch = Scratch::new("export-ballista");
    let lake = export(&scratch);
    let said = Program::new(python(), scratch.path())
        .args([script("ask.py"), lake, scratch.join("logs")])
        .stdin(json!(QUESTIONS).to_string())
        .run();
    assert_eq!(said.status.as_shell_code(), 0, "{}", said.errors());
    let said: Vec<Value> = serde_json::from_slice(&said.stdout).expect("it prints JSON");
    assert_eq!(said.len(), QUESTIONS.len());
    for (question, answer) in QUESTIONS.iter().zip(&said) {
        let expected = recordings_say(&scratch, question);
        assert!(!expected.as_array().expect("rows").is_empty(), "{question}");
        assert_eq!(answer["rows"], expected, "{question}");
    }

    // Each run is a separate task, and neither executor runs two at a time: both read.
    let everything = json!(["fib-12", "fib-15", "fib-16", "sqlite"]);
    for at in [0, 3] {
        assert_eq!(said[at]["runs"], everything, "{}", said[at]);
        let tasks = &said[at]["stages"]["1"];
        let of = |executor: usize| tasks[executor].as_u64().expect("a count");
        assert!(of(0) >= 1 && of(1) >= 1 && of(0) + of(1) == 4, "{tasks}");
    }
    // Both have rows of the join, too.
    let stages = said[1]["stages"].as_object().expect("stages");
    let both = stages.values().filter(|done| done[0] != 0 && done[1] != 0);
    assert!(both.count() >= 2, "{stages:?}");
    // With a condition on the run, the files of the others are not read.
    assert_eq!(said[2]["runs"], json!(["fib-15"]), "{}", said[2]);
}
