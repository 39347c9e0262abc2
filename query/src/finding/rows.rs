//! Rows by the names of their columns.

use serde_json::{Map, Value};

use crate::answer::Stopper;
use crate::error::Result;
use crate::output::{self, Format};
use crate::session::Session;

/// A row: its columns by name, without those that are NULL.
pub type Record = Map<String, Value>;

/// Rows of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// The rows.
    pub rows: Vec<Record>,
    /// There are more.
    pub more: bool,
}

/// Asks a recording and returns up to `limit` rows. `begun` receives what stops the question.
///
/// # Errors
/// The question is wrong; the recording cannot be read; [`crate::Error::Stopped`].
pub fn rows(
    session: &Session,
    sql: &str,
    limit: usize,
    begun: impl FnOnce(Stopper),
) -> Result<Rows> {
    let mut answer = session.sql_up_to(sql, limit)?;
    begun(answer.stopper());
    let mut json = Vec::new();
    output::write(&mut answer, Format::JsonLines, &mut json)?;
    let lines = json.split(|byte| *byte == b'\n');
    let rows = lines.filter_map(|line| serde_json::from_slice::<Record>(line).ok());
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

/// The recording that is asked, and who learns what stops each question.
pub(super) struct Asking<'a> {
    pub session: &'a Session,
    pub begun: &'a dyn Fn(Stopper),
}

impl Asking<'_> {
    pub fn rows(&self, sql: &str, limit: usize) -> Result<Rows> {
        rows(self.session, sql, limit, self.begun)
    }

    /// The number in the column `n` of the only row.
    pub fn number(&self, sql: &str) -> Result<Option<usize>> {
        let counted = self.rows(sql, 1)?;
        let number = counted.rows.first().and_then(|row| row.get("n")?.as_u64());
        Ok(number.and_then(|number| usize::try_from(number).ok()))
    }
}
