//! Completion by Tab: tables after FROM, columns of the named tables, SQL words, and names of recorded functions inside
//! quotes. It works on the words and the cursor alone, so that tests need no terminal.

use std::collections::BTreeSet;

use super::before::{names_a_table, open_quote, qualifier};
use crate::statement;

/// A table and its columns, as the user writes them.
#[derive(Clone, Debug)]
pub struct TableWords {
    pub name: String,
    pub columns: Vec<String>,
}

/// Everything that can be completed.
#[derive(Clone, Debug, Default)]
pub struct Words {
    pub tables: Vec<TableWords>,
    /// Key words of SQL, in lower case.
    pub keywords: Vec<String>,
    /// Names of SQL functions, in lower case.
    pub sql_functions: Vec<String>,
    /// Names of the recorded functions, sorted.
    pub recorded: Vec<String>,
}

/// The completions at one place.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The start of the text to replace, which ends at the cursor.
    pub start: usize,
    pub words: Vec<String>,
}

/// The commands that begin with a backslash.
pub const COMMANDS: [&str; 7] = [
    "\\d",
    "\\format",
    "\\q",
    "\\refresh",
    "\\rows",
    "\\timing",
    "\\x",
];

/// The first words of statements that are not refused.
const BEGINNINGS: [&str; 6] = [
    "describe",
    "explain",
    "select",
    "show tables",
    "values",
    "with",
];

/// SQL functions that are offered without a session that lists all.
const FUNCTIONS: [&str; 9] = [
    "avg",
    "backtrace",
    "count",
    "history",
    "locals",
    "max",
    "min",
    "sum",
    "value",
];

impl Words {
    /// Makes those of one recording with these functions.
    pub fn of_recording(mut recorded: Vec<String>) -> Words {
        // The search by prefix relies on the order of bytes.
        recorded.sort_unstable();
        let table = |doc: &query::TableDoc| TableWords {
            name: doc.name.to_owned(),
            columns: doc
                .columns
                .iter()
                .map(|(name, _)| (*name).to_owned())
                .collect(),
        };
        let keywords = query::complete::KEYWORDS.iter();
        Words {
            tables: query::TABLES.iter().map(table).collect(),
            keywords: keywords.map(|word| word.to_lowercase()).collect(),
            sql_functions: FUNCTIONS.map(str::to_owned).to_vec(),
            recorded,
        }
    }

    /// Returns the completions at `cursor` of `line`; `formats` are the words for `\format`.
    pub fn complete(&self, line: &str, cursor: usize, formats: &[&str]) -> Offer {
        let before = &line[..cursor];
        if before.trim_start().starts_with('\\') {
            return self.complete_command(before, formats);
        }
        let statement = statement::split(before);
        let begin = statement
            .complete
            .last()
            .map_or(0, |(at, text)| at + text.len() + 1);
        match open_quote(&before[begin..]) {
            Some(offset) => self.complete_name(line, cursor, begin + offset + 1),
            None => self.complete_word(line, cursor, begin),
        }
    }

    fn complete_command(&self, before: &str, formats: &[&str]) -> Offer {
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let word = &before[start..];
        let candidates: Vec<&str> = match before[..start].trim() {
            "" => COMMANDS.to_vec(),
            "\\d" => self.tables.iter().map(|t| t.name.as_str()).collect(),
            "\\format" => formats.to_vec(),
            "\\timing" => vec!["on", "off"],
            "\\x" => vec!["auto", "on", "off"],
            _ => Vec::new(),
        };
        let words = candidates.into_iter().filter(|c| c.starts_with(word));
        Offer {
            start,
            words: words.map(str::to_owned).collect(),
        }
    }

    /// Completes the name of a recorded function. The quote begins just before `start`.
    fn complete_name(&self, line: &str, cursor: usize, start: usize) -> Offer {
        let typed = &line[start..cursor];
        let first = self.recorded.partition_point(|name| name.as_str() < typed);
        let mut names: Vec<&String> = self.recorded[first..]
            .iter()
            .take_while(|name| name.starts_with(typed))
            .collect();
        if names.is_empty() {
            names = self.names_containing(typed);
        }
        let close = if line[cursor..].starts_with('\'') {
            ""
        } else {
            "'"
        };
        let words = match names.as_slice() {
            [only] => vec![format!("{}{close}", only.replace('\'', "''"))],
            names => names.iter().map(|name| name.replace('\'', "''")).collect(),
        };
        Offer { start, words }
    }

    /// Returns the names that contain `typed`, unless their common prefix would replace the typed text.
    fn names_containing(&self, typed: &str) -> Vec<&String> {
        let names: Vec<&String> = self
            .recorded
            .iter()
            .filter(|name| name.contains(typed))
            .collect();
        let common = names
            .iter()
            .map(|name| name.as_str())
            .reduce(common_prefix)
            .unwrap_or_default();
        if common.len() > typed.len() && !common.contains(typed) {
            Vec::new()
        } else {
            names
        }
    }

    fn complete_word(&self, line: &str, cursor: usize, begin: usize) -> Offer {
        let before = &line[begin..cursor];
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let start = begin + before.trim_end_matches(is_word).len();
        let typed = &line[start..cursor];
        let earlier = &line[begin..start];
        let candidates = if let Some(qualified) = earlier.strip_suffix('.') {
            self.columns_of(qualifier(qualified, &line[begin..]))
        } else if earlier.trim().is_empty() {
            BEGINNINGS.iter().map(|word| (*word).to_owned()).collect()
        } else if names_a_table(earlier) {
            self.tables.iter().map(|t| t.name.clone()).collect()
        } else if typed.is_empty() {
            self.columns_in(&line[begin..])
        } else {
            let mut all = self.columns_in(&line[begin..]);
            all.extend(self.tables.iter().map(|t| t.name.clone()));
            all.extend(self.sql_functions.iter().cloned());
            all.extend(self.keywords.iter().cloned());
            all
        };
        let upper = !typed.is_empty() && !typed.contains(|c: char| c.is_lowercase());
        let lower = typed.to_lowercase();
        let mut candidates: Vec<String> = candidates;
        candidates.retain(|word| word.starts_with(&lower));
        self.prefer_keywords(&mut candidates, &lower);
        let words: BTreeSet<String> = candidates
            .into_iter()
            .map(|word| {
                if upper && self.keywords.contains(&word) {
                    word.to_uppercase()
                } else {
                    word
                }
            })
            .collect();
        let mut words: Vec<String> = words.into_iter().collect();
        if let [only] = words.as_mut_slice()
            && cursor == line.len()
        {
            only.push_str(self.what_follows(only, names_a_table(earlier)));
        }
        Offer { start, words }
    }

    /// Removes functions that begin with an incomplete keyword: the user means FROM, not from_unixtime.
    fn prefer_keywords(&self, candidates: &mut Vec<String>, typed: &str) {
        let longer = |word: &&String| word.len() > typed.len() && self.keywords.contains(word);
        let meant: Vec<String> = candidates.iter().filter(longer).cloned().collect();
        candidates.retain(|word| {
            let goes_on = |keyword: &String| word != keyword && word.starts_with(keyword.as_str());
            !(self.sql_functions.contains(word) && meant.iter().any(goes_on))
        });
    }

    /// Returns the only character that can follow a word, so that the user need not type it.
    fn what_follows(&self, word: &str, is_table: bool) -> &'static str {
        let lower = word.to_lowercase();
        let is_column = |table: &TableWords| table.columns.contains(&lower);
        if is_table {
            " "
        } else if self.tables.iter().any(is_column) {
            ""
        } else if BEGINNINGS.contains(&lower.as_str())
            || self.keywords.contains(&lower)
            || self.tables.iter().any(|table| table.name == lower)
        {
            " "
        } else {
            "("
        }
    }

    fn columns_of(&self, table: &str) -> Vec<String> {
        let found = self
            .tables
            .iter()
            .find(|t| t.name.eq_ignore_ascii_case(table));
        found.map(|t| t.columns.clone()).unwrap_or_default()
    }

    /// Returns the columns of the tables in the statement, or of all tables if it names none yet.
    fn columns_in(&self, statement: &str) -> Vec<String> {
        let named: BTreeSet<String> = statement
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .map(str::to_lowercase)
            .collect();
        let mut tables: Vec<&TableWords> = self
            .tables
            .iter()
            .filter(|t| named.contains(&t.name))
            .collect();
        if tables.is_empty() {
            tables = self.tables.iter().collect();
        }
        tables
            .into_iter()
            .flat_map(|t| t.columns.iter().cloned())
            .collect()
    }
}

fn common_prefix<'a>(a: &'a str, b: &str) -> &'a str {
    let same = a.char_indices().zip(b.chars()).find(|((_, x), y)| x != y);
    let end = same.map_or(a.len().min(b.len()), |((at, _), _)| at);
    &a[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn words() -> Words {
        let list = |words: &[&str]| {
            words
                .iter()
                .map(|w| (*w).to_owned())
                .collect::<Vec<String>>()
        };
        let table = |name: &str, columns: &[&str]| TableWords {
            name: name.to_owned(),
            columns: list(columns),
        };
        Words {
            tables: vec![
                table("calls", &["function", "dur_ns", "depth"]),
                table("events", &["seq", "kind", "calls"]),
            ],
            keywords: list(&["select", "from", "desc", "distinct"]),
            sql_functions: list(&["count", "date_trunc", "from_unixtime"]),
            recorded: list(&["json::parse", "json::parse_value", "main", "operator'"]),
        }
    }

    /// `|` marks the cursor.
    fn check(line: &str, expected: Expect) {
        let cursor = line.find('|').unwrap();
        let line = line.replacen('|', "", 1);
        let offer = words().complete(&line, cursor, &["csv", "json", "jsonl"]);
        expected.assert_eq(&format!(
            "{:?} -> {}",
            &line[offer.start..cursor],
            offer.words.join(" ")
        ));
    }

    #[test]
    fn tables_follow_from() {
        check("select * from |", expect![[r#""" -> calls events"#]]);
        check("select * FROM c|", expect![[r#""c" -> calls "#]]);
        check(
            "select * from events join ca|",
            expect![[r#""ca" -> calls "#]],
        );
    }

    #[test]
    fn columns_of_the_named_tables_come_first() {
        check(
            "select d| from calls",
            expect![[r#""d" -> date_trunc depth desc distinct dur_ns"#]],
        );
        check("select | from events", expect![[r#""" -> calls kind seq"#]]);
        check(
            "select calls.| from calls",
            expect![[r#""" -> depth dur_ns function"#]],
        );
        check(
            "select c.d| from calls c",
            expect![[r#""d" -> depth dur_ns"#]],
        );
        check("select x.| from calls c", expect![[r#""" -> "#]]);
    }

    #[test]
    fn keywords_keep_the_case_typed() {
        check("SEL|", expect![[r#""SEL" -> SELECT "#]]);
        check("sel|", expect![[r#""sel" -> select "#]]);
        check("select 1 FR|", expect![[r#""FR" -> FROM "#]]);
    }

    #[test]
    fn only_statements_begin_a_line() {
        check("s|", expect![[r#""s" -> select show tables"#]]);
        check("d|", expect![[r#""d" -> describe "#]]);
    }

    #[test]
    fn what_must_follow_is_added_at_the_end_of_the_line() {
        check("select cou|", expect![[r#""cou" -> count("#]]);
        check("select cou|(*)", expect![[r#""cou" -> count"#]]);
        check("select dep|", expect![[r#""dep" -> depth"#]]);
    }

    #[test]
    fn a_key_word_is_meant_before_a_function_that_begins_with_it() {
        check("select * fr|", expect![[r#""fr" -> from "#]]);
        check("select from_|", expect![[r#""from_" -> from_unixtime("#]]);
    }

    #[test]
    fn recorded_functions_complete_inside_quotes() {
        check(
            "select * from calls where function = 'js|",
            expect![[r#""js" -> json::parse json::parse_value"#]],
        );
        check(
            "select * from calls where function = 'ma|",
            expect![[r#""ma" -> main'"#]],
        );
        check(
            "select * from calls where function = 'ma|'",
            expect![[r#""ma" -> main"#]],
        );
        check(
            "select * from calls where function = 'parse|",
            expect![[r#""parse" -> json::parse json::parse_value"#]],
        );
        check(
            "select * from calls where function = 'op|",
            expect![[r#""op" -> operator'''"#]],
        );
        check(
            "select * from calls where function = 'xyz|",
            expect![[r#""xyz" -> "#]],
        );
    }

    #[test]
    fn each_statement_stands_alone() {
        check(
            "select ';' from calls; s| from events",
            expect![[r#""s" -> select show tables"#]],
        );
    }

    #[test]
    fn commands_complete_too() {
        check("\\f|", expect![[r#""\\f" -> \format"#]]);
        check("\\format js|", expect![[r#""js" -> json jsonl"#]]);
        check("\\d e|", expect![[r#""e" -> events"#]]);
    }
}
