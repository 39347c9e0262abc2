//! Recordings for SQL queries: each is opened once for all calls, and again when it has grown.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use query::compare::{self, Asked};
use query::finding::{self, Rows};
use query::{Answer, Options, Overview, Session, Stopper, overview};
use server::protocol::{Code, Failure};
use store::recording::RecordingState;

use crate::context::{Cancel, lock};

/// As many recordings are kept open.
const KEPT: usize = 8;

/// Opened recordings.
#[derive(Default)]
pub struct Recordings {
    opened: Mutex<HashMap<PathBuf, Arc<Session>>>,
    compared: Mutex<Option<Compared>>,
    /// The last recording that was examined as a whole, and what was found.
    examined: Mutex<Option<(Arc<Session>, Arc<Overview>)>>,
}

/// The last comparison: a client requests the pages of its text one by one.
struct Compared {
    of: (Arc<Session>, Arc<Session>),
    asked: String,
    text: Arc<str>,
}

impl Recordings {
    /// Opens a recording, or returns the opened one if it cannot have grown.
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

    /// Returns the overview of a recording, which is `name` in its questions.
    ///
    /// # Errors
    /// It cannot be read; the caller has gone.
    pub fn overview(
        &self,
        cancel: &Cancel,
        session: &Arc<Session>,
        name: &str,
    ) -> Result<Arc<Overview>, Failure> {
        let last = lock(&self.examined).clone();
        if let Some((of, found)) = last
            && Arc::ptr_eq(&of, session)
        {
            return Ok(found);
        }
        let stop = overview::Cancel::default();
        let asked = stop.clone();
        cancel.while_waiting(move || asked.cancel());
        let found = overview::cancellable(session, name, &stop).map_err(failure)?;
        let found = Arc::new(found);
        *lock(&self.examined) = Some((Arc::clone(session), Arc::clone(&found)));
        Ok(found)
    }

    /// Compares two recordings, each with the name that the caller gave it, and returns the text; `is_full` has all calls.
    ///
    /// # Errors
    /// They cannot be compared; the caller has gone.
    pub fn compare(
        &self,
        cancel: &Cancel,
        (a, name_a): (&Arc<Session>, &str),
        (b, name_b): (&Arc<Session>, &str),
        (asked, is_full): (&Asked, bool),
    ) -> Result<Arc<str>, Failure> {
        let key = format!("{name_a:?} {name_b:?} {asked:?} {is_full}");
        if let Some(last) = lock(&self.compared).as_ref() {
            let is_of = Arc::ptr_eq(&last.of.0, a) && Arc::ptr_eq(&last.of.1, b);
            if is_of && last.asked == key {
                return Ok(Arc::clone(&last.text));
            }
        }
        let stop = asked.stop.clone();
        cancel.while_waiting(move || stop.stop());
        let found = compare::compare((a, name_a), (b, name_b), asked).map_err(failure)?;
        let text: Arc<str> = found.text(is_full).into();
        *lock(&self.compared) = Some(Compared {
            of: (Arc::clone(a), Arc::clone(b)),
            asked: key,
            text: Arc::clone(&text),
        });
        Ok(text)
    }
}

/// Queries a recording and returns up to `limit` rows.
///
/// # Errors The query is wrong, or was interrupted.
pub fn rows(session: &Session, cancel: &Cancel, sql: &str, limit: usize) -> Result<Rows, Failure> {
    let begun = |stopper: Stopper| cancel.while_waiting(move || stopper.stop());
    finding::rows(session, sql, limit, begun).map_err(failure)
}

/// Begins to answer a query.
///
/// # Errors The query is wrong.
pub fn ask(session: &Session, cancel: &Cancel, sql: &str) -> Result<Answer, Failure> {
    let answer = session.sql(sql).map_err(failure)?;
    let stopper = answer.stopper();
    cancel.while_waiting(move || stopper.stop());
    Ok(answer)
}

/// Makes the failure of an error of the query engine.
pub fn failure(error: query::Error) -> Failure {
    let code = match &error {
        query::Error::Sql(_) | query::Error::ReadOnly { .. } | query::Error::Rule { .. } => {
            Code::BadRequest
        }
        _ => Code::Failed,
    };
    let message = match &error {
        query::Error::Sql(_)
        | query::Error::ReadOnly { .. }
        | query::Error::NotComparable { .. } => error.to_string(),
        _ => format!("cannot {error}"),
    };
    let failure = Failure::new(code, message);
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
