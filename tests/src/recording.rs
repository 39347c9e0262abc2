//! A recording, read through `hindsight sql`, `check` and `info`.

use crate::hindsight::Hindsight;
use crate::process::{Ended, Program, Status};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// One row of an answer, by column name.
pub type Row = Map<String, Value>;

/// A folder `NAME.hindsight`.
pub struct Recording {
    path: PathBuf,
}

impl Recording {
    /// The recording in that folder, which need not exist yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A command on it, such as `check`.
    #[must_use]
    pub fn command(&self, verb: &str, more: &[&str]) -> Ended {
        let dir = self.path.parent().expect("a recording lies in a folder");
        Program::new(Hindsight::path(), dir)
            .args([verb])
            .args([&self.path])
            .args(more)
            .run()
    }

    /// What these lines print at its prompt.
    #[must_use]
    pub fn prompt(&self, lines: &[&str]) -> Ended {
        let words: Vec<&str> = lines.iter().flat_map(|line| ["--cmd", line]).collect();
        self.command("repl", &words)
    }

    /// The rows of a query's answer, or standard error if it was refused.
    ///
    /// # Errors
    /// The error output of a failed `hindsight sql`.
    ///
    /// # Panics
    /// If the answer is not JSON.
    pub fn try_rows(&self, sql: &str) -> Result<Vec<Row>, Ended> {
        let ended = self.command("sql", &[sql, "--format", "jsonl"]);
        if ended.status != Status::Code(0) {
            return Err(ended);
        }
        Ok(ended
            .text()
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|e| panic!("not JSON ({e}): {line}"))
            })
            .collect())
    }

    /// The rows of a query's answer.
    ///
    /// # Panics
    /// If the query fails.
    #[must_use]
    pub fn rows(&self, sql: &str) -> Vec<Row> {
        self.try_rows(sql)
            .unwrap_or_else(|e| panic!("{sql}\nfailed: {:?} {}", e.status, e.errors()))
    }

    /// The one row of a query's answer.
    ///
    /// # Panics
    /// If there is not exactly one.
    #[must_use]
    pub fn row(&self, sql: &str) -> Row {
        let mut rows = self.rows(sql);
        assert_eq!(rows.len(), 1, "{sql} gave {} rows", rows.len());
        rows.remove(0)
    }

    /// The single number of a query's answer.
    ///
    /// # Panics
    /// If the answer is anything else.
    #[must_use]
    pub fn number(&self, sql: &str) -> i64 {
        let row = self.row(sql);
        row.values()
            .next()
            .and_then(Value::as_i64)
            .unwrap_or_else(|| panic!("{sql} gave {row:?}"))
    }

    /// Number of recorded calls of a function, whatever its parameter list.
    #[must_use]
    pub fn calls_of(&self, function: &str) -> i64 {
        self.number(&format!(
            "SELECT count(*) FROM calls WHERE {}",
            is_function(function)
        ))
    }

    /// Number of calls of a function that ended by unwinding.
    #[must_use]
    pub fn unwound_calls_of(&self, function: &str) -> i64 {
        self.number(&format!(
            "SELECT count(*) FROM calls WHERE unwound AND {}",
            is_function(function)
        ))
    }

    /// Everything that the program wrote to standard output (`stdout`) or error (`stderr`), as recorded.
    #[must_use]
    pub fn output(&self, stream: &str) -> Vec<u8> {
        let sql = format!("SELECT bytes FROM output WHERE stream = '{stream}' ORDER BY seq");
        self.rows(&sql)
            .iter()
            .flat_map(|row| shown_bytes(row["bytes"].as_str().expect("bytes are shown as text")))
            .collect()
    }
}

/// A condition on `function` that holds for `name`, `name(int)`, `name<T>(T)` and `some::path::name`.
pub(crate) fn is_function(name: &str) -> String {
    format!(
        "(function = '{name}' OR function LIKE '{name}(%' OR function LIKE '%::{name}' OR function LIKE '%::{name}(%')"
    )
}

/// UTF-8 is shown unchanged, other bytes as `\x` and hexadecimal digits.
fn shown_bytes(text: &str) -> Vec<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).expect("hexadecimal digits") as u8;
    match text.strip_prefix("\\x") {
        Some(hex) => hex
            .as_bytes()
            .chunks(2)
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect(),
        None => text.as_bytes().to_vec(),
    }
}
