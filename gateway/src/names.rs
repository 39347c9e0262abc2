//! Names of functions in answers: filters take the short and the full one, and answers show the short one, because templates of the
//! standard library make the full one pages long.

use std::collections::HashMap;

use query::Session;
use serde_json::{Map, Value};
use server::protocol::Failure;

use crate::context::Cancel;
use crate::recordings;

/// As many functions are listed in a question; more are asked for in it.
const LISTED: usize = 1_000;
/// As many functions may share the names of an answer.
const NAMESAKES: usize = 10_000;

/// The functions that a filter selects.
pub struct Matching {
    /// The filter, as a condition on the table `functions`.
    condition: String,
    functions: Vec<(i64, String)>,
    more: bool,
}

/// Finds the functions of a recording for which a condition on the table `functions` holds.
///
/// # Errors
/// The condition is wrong; the caller has gone.
pub fn matching(session: &Session, cancel: &Cancel, condition: &str) -> Result<Matching, Failure> {
    let sql = format!("select function_id, name from functions where {condition}");
    let found = recordings::rows(session, cancel, &sql, LISTED)?;
    let functions = found.rows.iter().filter_map(|row| {
        let name = row.get("name")?.as_str()?.to_owned();
        Some((row.get("function_id")?.as_i64()?, name))
    });
    Ok(Matching {
        condition: condition.to_owned(),
        functions: functions.collect(),
        more: found.more,
    })
}

impl Matching {
    /// These functions.
    pub fn of(functions: Vec<(u32, String)>) -> Matching {
        let functions = functions.into_iter();
        Matching {
            condition: "false".to_owned(),
            functions: functions.map(|(id, name)| (i64::from(id), name)).collect(),
            more: false,
        }
    }

    /// No function matches.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The condition on a table with the column `function_id`.
    pub fn by_id(&self) -> String {
        let ids = self.functions.iter().map(|(id, _)| id.to_string());
        self.listed("function_id", "function_id", ids)
    }

    /// The condition on a table with the column `function` alone.
    pub fn by_name(&self) -> String {
        let names = self.functions.iter().map(|(_, name)| quoted(name));
        self.listed("function", "name", names)
    }

    fn listed(&self, column: &str, of: &str, all: impl Iterator<Item = String>) -> String {
        let condition = &self.condition;
        match (self.is_empty(), self.more) {
            (true, _) => "false".to_owned(),
            (_, true) => format!("{column} in (select {of} from functions where {condition})"),
            _ => format!("{column} in ({})", all.collect::<Vec<_>>().join(", ")),
        }
    }
}

/// Shortens the names of functions in rows, and removes the functions' numbers. With `is_full`, the full name is another field.
///
/// # Errors
/// The caller has gone.
pub fn shorten(
    session: &Session,
    cancel: &Cancel,
    rows: &mut [Map<String, Value>],
    is_full: bool,
) -> Result<(), Failure> {
    let names = rows.iter().filter_map(|row| row.get(field(row))?.as_str());
    let mut names: Vec<String> = names.map(quoted).collect();
    names.sort_unstable();
    names.dedup();
    let mut short = HashMap::new();
    if !names.is_empty() {
        let sql = format!(
            "select function_id, name, short_name from functions where name <> short_name and name in ({})",
            names.join(", ")
        );
        for row in recordings::rows(session, cancel, &sql, NAMESAKES)?.rows {
            if let Some(name) = row["short_name"].as_str() {
                short.insert(Some(row["function_id"].clone()), name.to_owned());
                // Where only the name is known, one of its functions stands for all.
                short.insert(Some(row["name"].clone()), name.to_owned());
            }
        }
    }
    for row in rows {
        let field = field(row);
        let id = row.remove("function_id");
        let key = id.or_else(|| row.get(field).cloned());
        if let Some(name) = short.get(&key) {
            let full = row.insert(field.to_owned(), Value::from(name.as_str()));
            if let Some(full) = full.filter(|_| is_full) {
                row.insert("fullName".to_owned(), full);
            }
        }
    }
    Ok(())
}

/// The field of a row that has the name of its function; a summary of events has it where others have a text.
fn field(row: &Map<String, Value>) -> &'static str {
    match row.contains_key("what") && row.contains_key("function_id") {
        true => "what",
        false => "function",
    }
}

/// A text of SQL.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
