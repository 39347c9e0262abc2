//! Names of functions in answers, which show the short one: templates of the standard library make the full one pages long.

use std::collections::HashMap;

use query::Session;
use query::finding::quoted;
use serde_json::{Map, Value};
use server::protocol::Failure;

use crate::context::Cancel;
use crate::recordings;

/// As many functions may share the names of an answer.
const NAMESAKES: usize = 10_000;

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
