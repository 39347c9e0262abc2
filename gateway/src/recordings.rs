//! Recordings that are asked in SQL: each is opened once for all calls, and again when it has grown.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use query::output::{self, Format};
use query::{Answer, Options, Session};
use serde_json::{Map, Value};
use server::protocol::{Code, Failure};
use store::recording::RecordingState;

use crate::context::{Cancel, lock};

/// As many recordings are kept open.
const KEPT: usize = 8;

/// Opened recordings.
#[derive(Default)]
pub struct Recordings {
    opened: Mutex<HashMap<PathBuf, Arc<Session>>>,
}

/// Rows of an answer.
pub struct Rows {
    /// Each with its columns by name; those that are NULL are left out.
    pub rows: Vec<Map<String, Value>>,
    /// There are more.
    pub more: bool,
}

impl Recordings {
    /// Opens a recording, or returns it as it was opened before if it cannot have grown.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(&self, folder: &Path) -> Result<Arc<Session>, Failure> {
        if let Some(session) = lock(&self.opened).get(folder) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(Session::open_with(folder, Options::default()).map_err(failure)?);
        if session.extent().state != RecordingState::Live {
            let mut opened = lock(&self.opened);
            if opened.len() >= KEPT {
                opened.clear();
            }
            opened.insert(folder.to_owned(), Arc::clone(&session));
        }
        Ok(session)
    }
}

/// Asks a recording and returns up to `limit` rows.
///
/// # Errors
/// The question is wrong, or was ended.
pub fn rows(session: &Session, cancel: &Cancel, sql: &str, limit: usize) -> Result<Rows, Failure> {
    let mut answer = ask(session, cancel, sql, Some(limit))?;
    let mut json = Vec::new();
    output::write(&mut answer, Format::JsonLines, &mut json).map_err(failure)?;
    let lines = json.split(|byte| *byte == b'\n');
    let rows = lines.filter_map(|line| serde_json::from_slice::<Map<String, Value>>(line).ok());
    let rows = rows.map(|row| {
        row.into_iter()
            .filter(|(_, cell)| !cell.is_null())
            .collect()
    });
    Ok(Rows {
        rows: rows.collect(),
        more: answer.was_cut(),
    })
}

/// Begins to answer a question.
///
/// # Errors
/// The question is wrong.
pub fn ask(
    session: &Session,
    cancel: &Cancel,
    sql: &str,
    limit: Option<usize>,
) -> Result<Answer, Failure> {
    let answer = match limit {
        Some(limit) => session.sql_up_to(sql, limit),
        None => session.sql(sql),
    };
    let answer = answer.map_err(failure)?;
    let stopper = answer.stopper();
    cancel.while_waiting(move || stopper.stop());
    Ok(answer)
}

/// Makes the failure of an error of the query engine.
pub fn failure(error: query::Error) -> Failure {
    let code = match &error {
        query::Error::Sql(_) | query::Error::ReadOnly { .. } => Code::BadRequest,
        _ => Code::Failed,
    };
    let message = match &error {
        query::Error::Sql(_) | query::Error::ReadOnly { .. } => error.to_string(),
        _ => format!("cannot {error}"),
    };
    let failure = Failure::new(code, message);
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
