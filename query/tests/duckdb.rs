//! Goal: our rules and functions change the speed of an answer, never the answer. Method: another engine, DuckDB,
//! answers the same questions from the same Parquet files. The harness installs it into its own Python environment
//! the first time, and fails when it cannot.

#[path = "common/duckdb.rs"]
mod python;
#[path = "../benches/workload.rs"]
mod workload;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use query::Session;
use query::output::{Format, write};
use serde_json::{Value, json};

const CALLS: u64 = 60_000;

/// Questions that both engines understand; each has one order of rows only.
const QUESTIONS: &[&str] = &[
    "SELECT count(*), min(start_seq), max(end_seq), sum(dur_ns), sum(self_ns), count(ret) FROM calls",
    "SELECT function, count(*), sum(dur_ns), sum(self_ns), min(ret), max(ret) FROM calls GROUP BY function ORDER BY 1",
    "SELECT function, file, tid, count(*) FROM calls GROUP BY function, file, tid ORDER BY 1, 2, 3",
    "SELECT file, depth, max(dur_ns) FROM calls GROUP BY file, depth ORDER BY 1, 2",
    "SELECT function, sum(dur_ns) AS t FROM calls GROUP BY function ORDER BY t DESC, function LIMIT 10",
    "SELECT function, quantile_cont(dur_ns, 0.99), quantile_cont(dur_ns, 0.5) FROM calls GROUP BY function ORDER BY 1",
    "SELECT start_seq, ret, a0 FROM calls WHERE ret = -1 AND function = 'module_03::function_075' ORDER BY 1",
    "SELECT start_seq, ret FROM calls WHERE function = 'shared_0' AND ret < 5 ORDER BY 1",
    "SELECT start_seq, ret FROM calls WHERE function_id = 75 AND (ret = -1 OR ret < 5 AND dur_ns > 1000) ORDER BY 1",
    "SELECT start_seq, ret FROM calls WHERE ret = 7 AND function LIKE 'module_03::function_07%' ORDER BY 1",
    "SELECT function, count(*) FROM calls WHERE function LIKE '%function_1%' AND file <> 'src/file9.c' GROUP BY 1 ORDER BY 1",
    "SELECT dur_ns FROM calls WHERE dur_ns > 90000 ORDER BY 1",
    "SELECT max(start_seq) FROM calls WHERE function LIKE '%function_1%' AND file <> 'src/file9.c'",
    "SELECT count(*) FROM calls WHERE function LIKE 'module_0%' OR dur_ns > 100000",
    "SELECT count(*) FROM calls WHERE NOT (function LIKE 'module_0%' AND tid = 4001)",
    "SELECT function, count(*) FROM calls WHERE file IN ('src/file1.c', 'src/file6.c') GROUP BY 1 ORDER BY 1",
    "SELECT start_seq, ts_ns - lag(ts_ns) OVER (PARTITION BY function ORDER BY start_seq) FROM calls ORDER BY 1",
    "SELECT start_seq, end_seq, function FROM calls WHERE start_seq BETWEEN 30000 AND 30999 ORDER BY 1",
    "SELECT p.function AS caller, c.function, count(*), sum(c.dur_ns) FROM calls c JOIN calls p ON c.parent = p.start_seq
     GROUP BY p.function, c.function ORDER BY 1, 2",
    "SELECT count(DISTINCT function), count(DISTINCT file), count(DISTINCT a1) FROM calls",
    "SELECT function, tid, dur_ns FROM calls ORDER BY dur_ns DESC, start_seq LIMIT 25",
    "SELECT function, count(*) AS n FROM calls GROUP BY function HAVING count(*) > 200 ORDER BY n, function",
];

#[test]
fn duckdb_gives_the_same_answers() {
    let dir = tempfile::tempdir().unwrap();
    let recording = workload::recording(dir.path(), CALLS).unwrap();
    let session = Session::open(recording.dir()).unwrap();
    let functions = rows(&session, "SELECT function_id, name, file FROM functions");
    let asked = json!({
        "calls": recording.columns_dir().join("calls-*.parquet"),
        "functions": functions,
        "questions": QUESTIONS,
    });
    let theirs = duckdb_answers(&asked);
    assert_eq!(theirs.len(), QUESTIONS.len());
    for (question, theirs) in QUESTIONS.iter().zip(theirs) {
        let ours = rows(&session, question);
        assert!(!ours.is_empty(), "{question}: no rows");
        assert_eq!(ours.len(), theirs.len(), "{question}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!(same(ours, theirs), "{question}: {ours} is not {theirs}");
        }
    }
}

/// Compares rows; floats may differ in their last digits.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-5 * a.abs().max(1.0)
        }
        _ => ours == theirs,
    }
}

/// Returns our answer as arrays of values in the order of the columns, whose names differ.
fn rows(session: &Session, sql: &str) -> Vec<Value> {
    let mut answer = session.sql(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let schema = answer.schema().clone();
    let mut out = Vec::new();
    write(&mut answer, Format::JsonLines, &mut out).unwrap();
    let values = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let names = schema.fields().iter().map(|field| field.name());
        Value::Array(names.map(|name| row[name].clone()).collect())
    };
    std::str::from_utf8(&out)
        .unwrap()
        .lines()
        .map(values)
        .collect()
}

fn duckdb_answers(asked: &Value) -> Vec<Vec<Value>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/duckdb_answers.py");
    let mut child = Command::new(python::python_with_duckdb())
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(asked.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "duckdb failed");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator("---\n")
        .map(|answer| {
            answer
                .lines()
                .map(|l| serde_json::from_str(l).unwrap())
                .collect()
        })
        .collect()
}
