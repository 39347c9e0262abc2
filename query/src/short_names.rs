//! Short names of functions in a question: `function = 'Vec<i32>::push'` finds nothing, because the column has full names.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use debuginfo::{short_name, short_name_at, told_apart};
use store::control::FunctionDef;

use crate::question;

/// Columns with full names of functions.
const COLUMNS: [&str; 2] = ["function", "caller"];

/// Returns a note for each short name that a question compares such a column with. `names` lists the full names.
pub fn notes<'n, Names: Iterator<Item = &'n str>>(
    sql: &str,
    names: impl Fn() -> Names,
) -> Vec<String> {
    let asked = compared(sql);
    if asked.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = names().collect();
    let asked = asked.iter();
    asked
        .filter_map(|(column, text)| note(column, text, &names))
        .collect()
}

/// Returns the note that a text is a short name, where a column with one of these full names is compared with it; `None` if it is a full
/// name, or no name at all.
pub fn note(column: &str, text: &str, names: &[&str]) -> Option<String> {
    if names.contains(&text) {
        return None;
    }
    let named = names.iter().filter(|name| short_name(name) == text);
    let mut full: Vec<&str> = named.copied().collect();
    full.sort_unstable();
    full.dedup();
    let (first, others) = full.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        more => format!("; {more} more functions are called so"),
    };
    let first = first.replace('\'', "''");
    Some(format!(
        "{column} has full names, and '{text}' is a short one: {column} = '{first}'{more}"
    ))
}

/// Returns the short names of all functions of a recording, in their order: those of the column `short_name`.
pub fn of_functions(functions: &[&FunctionDef]) -> Vec<String> {
    let names: Vec<&str> = functions.iter().map(|f| f.name.as_str()).collect();
    let short = functions
        .iter()
        .map(|f| short_name_at(&f.name, f.file.as_deref(), f.line))
        .collect();
    told_apart(&names, short)
}

/// Returns the last part of a function's name, without template arguments and parameters.
pub fn last_part(name: &str) -> String {
    let mut depth = 0usize;
    let mut plain = String::new();
    for char in name.chars() {
        match char {
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(char),
            _ => {}
        }
    }
    let last = plain.rsplit("::").find(|part| !part.is_empty());
    last.unwrap_or_default().to_owned()
}

/// The columns that are compared with a text by `=` or `<>`, and the texts. A column that SELECT names itself may have any names.
fn compared(sql: &str) -> Vec<(String, String)> {
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize();
    let mut tokens = tokens.unwrap_or_default();
    tokens.retain(|token| !matches!(token, Token::Whitespace(_)));
    let column = |token: &Token| match token {
        Token::Word(word) => Some(word.value.to_lowercase()),
        _ => None,
    };
    let mut found = Vec::new();
    for three in tokens.windows(3) {
        let (Some(column), Token::Eq | Token::Neq) = (column(&three[0]), &three[1]) else {
            continue;
        };
        if let Token::SingleQuotedString(text) = &three[2]
            && COLUMNS.contains(&column.as_str())
            && !question::is_alias(sql, &column)
        {
            found.push((column, text.clone()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_has_no_arguments() {
        for (name, part) in [
            ("look", "look"),
            ("app::(anonymous namespace)::deep(int)", "deep"),
            ("HashMap<K, V>::insert<u32, i64>", "insert"),
            ("<StderrRaw as Write>::write_all", "write_all"),
            ("main::{closure#0}", "main"),
            ("", ""),
        ] {
            assert_eq!(last_part(name), part, "{name}");
        }
    }

    #[test]
    fn short_names_are_told_with_the_full_ones() {
        let names = ["alloc::vec::Vec<i32, alloc::alloc::Global>::push", "main"];
        let names = || names.iter().copied();
        for (sql, expected) in [
            (
                "select count(*) from calls c where c.Function = 'Vec<i32>::push'",
                "function has full names, and 'Vec<i32>::push' is a short one: \
                 function = 'alloc::vec::Vec<i32, alloc::alloc::Global>::push'",
            ),
            ("select * from calls where function = 'main'", ""),
            ("select * from calls where function = 'nothing'", ""),
            ("select * from calls where name = 'Vec<i32>::push'", ""),
            (
                "select * from (select short_name as function from functions) where function = 'Vec<i32>::push'",
                "",
            ),
        ] {
            assert_eq!(notes(sql, names).join("; "), expected, "{sql}");
        }
    }
}
