//! The functions that a filter selects. They are found first: a condition on a table of calls or events then compares numbers.

use super::quoted;
use super::rows::Asking;
use crate::error::Result;

/// As many functions are listed in a question; more are asked for in it.
const LISTED: usize = 1_000;

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
/// The condition is wrong; [`crate::Error::Stopped`].
pub fn matching(asking: &Asking<'_>, condition: &str) -> Result<Matching> {
    let sql = format!("select function_id, name from functions where {condition}");
    let found = asking.rows(&sql, LISTED)?;
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
