//! Completion by Tab: tables after FROM, and functions that give one; columns of the named tables, SQL words, and names of
//! recorded functions inside quotes. It works on the words and the cursor alone, so that tests need no terminal.

use std::collections::BTreeSet;

use super::before::{is_part, names_a_table, open_quote, sources};
use crate::statement;

/// A table, or a function that gives one, and its columns, as the user writes them.
#[derive(Clone, Debug)]
pub struct TableWords {
    pub name: String,
    pub columns: Vec<String>,
}

/// Everything that can be completed.
#[derive(Clone, Debug, Default)]
pub struct Words {
    pub tables: Vec<TableWords>,
    /// Functions that give a table.
    pub table_functions: Vec<TableWords>,
    /// Key words of SQL, in lower case.
    pub keywords: Vec<String>,
    /// Names of SQL functions of a row or of a group, in lower case.
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
const FUNCTIONS: [&str; 10] = [
    "avg",
    "count",
    "explain_value",
    "frame_value",
    "max",
    "mem",
    "min",
    "reg",
    "sum",
    "value",
];

impl Words {
    /// Makes those of one recording with these functions.
    pub fn of_recording(recorded: Vec<String>) -> Words {
        Words::of_session(false, &FUNCTIONS.map(str::to_owned), recorded)
    }

    /// Makes those of one recording or of several, with all SQL functions and the recorded ones.
    pub fn of_session(is_many: bool, functions: &[String], mut recorded: Vec<String>) -> Words {
        // The search by prefix relies on the order of bytes.
        recorded.sort_unstable();
        let gives_a_table = |name: &String| query::TABLE_FUNCTIONS.iter().any(|f| f.name == name);
        let functions = functions.iter().filter(|name| !gives_a_table(name));
        let keywords = query::complete::KEYWORDS.iter();
        Words {
            tables: query::TABLES.iter().map(|t| table(t, is_many)).collect(),
            table_functions: query::TABLE_FUNCTIONS.iter().map(table_function).collect(),
            keywords: keywords.map(|word| word.to_lowercase()).collect(),
            sql_functions: functions.cloned().collect(),
            recorded,
        }
    }

    /// Returns whether `text` begins as a statement does, so that more of it can be completed.
    pub fn has_begun(text: &str) -> bool {
        let (first, rest) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
        let mut firsts = BEGINNINGS.iter().map(|words| words.split(' ').next());
        !rest.is_empty() && firsts.any(|word| word.is_some_and(|w| w.eq_ignore_ascii_case(first)))
    }

    /// Returns the completions at `cursor` of `line`; `formats` are the words for `\format`.
    pub fn complete(&self, line: &str, cursor: usize, formats: &[&str]) -> Offer {
        let before = &line[..cursor];
        if before.trim_start().starts_with('\\') {
            return self.complete_command(before, formats);
        }
        let begin = statement::split(before).end;
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
        let start = begin + before.trim_end_matches(is_part).len();
        let typed = &line[start..cursor];
        // What a word that is already there is followed by.
        let open = match line[cursor..].starts_with('(') {
            true => "",
            false => "(",
        };
        let mut candidates = self.candidates(&line[begin..], start - begin, typed, open);
        let upper = !typed.is_empty() && !typed.contains(|c: char| c.is_lowercase());
        let lower = typed.to_lowercase();
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
            && self.is_before_a_space(only, names_a_table(&line[begin..start]))
        {
            only.push(' ');
        }
        Offer { start, words }
    }

    /// Returns what may stand at `start` of a statement, functions with `open` behind them.
    fn candidates(&self, statement: &str, start: usize, typed: &str, open: &str) -> Vec<String> {
        let earlier = &statement[..start];
        let called = |name: &String| format!("{name}{open}");
        let tables = self.tables.iter().map(|table| &table.name).cloned();
        if let Some(qualified) = earlier.strip_suffix('.') {
            let name = &qualified[qualified.trim_end_matches(is_part).len()..];
            return self.columns_of(name, statement);
        }
        if earlier.trim().is_empty() {
            return BEGINNINGS.iter().map(|word| (*word).to_owned()).collect();
        }
        if names_a_table(earlier) {
            let functions = self.table_functions.iter().map(|one| called(&one.name));
            return tables.chain(functions).collect();
        }
        let mut all = self.columns_in(statement);
        if !typed.is_empty() {
            all.extend(tables);
            all.extend(self.sql_functions.iter().map(called));
            all.extend(self.keywords.iter().cloned());
        }
        all
    }

    /// Removes functions that begin with an incomplete keyword: the user means FROM, not from_unixtime.
    fn prefer_keywords(&self, candidates: &mut Vec<String>, typed: &str) {
        let longer = |word: &&String| word.len() > typed.len() && self.keywords.contains(word);
        let meant: Vec<String> = candidates.iter().filter(longer).cloned().collect();
        candidates.retain(|word| {
            let name = word.trim_end_matches('(');
            let goes_on = |keyword: &String| name != keyword && name.starts_with(keyword.as_str());
            !(self.sql_functions.iter().any(|function| function == name)
                && meant.iter().any(goes_on))
        });
    }

    /// Returns whether only a space can follow a word, so that the user need not type it.
    fn is_before_a_space(&self, word: &str, is_table: bool) -> bool {
        let lower = word.to_lowercase();
        let is_column = |table: &TableWords| table.columns.contains(&lower);
        let is_name = BEGINNINGS.contains(&lower.as_str())
            || self.keywords.contains(&lower)
            || self.tables.iter().any(|table| table.name == lower);
        is_name && (is_table || !self.tables.iter().any(is_column))
    }

    /// Returns the table, or the function that gives one, of this name.
    fn table(&self, name: &str) -> Option<&TableWords> {
        let mut all = self.tables.iter().chain(&self.table_functions);
        all.find(|table| table.name.eq_ignore_ascii_case(name))
    }

    /// Returns the columns of what `name` means in a statement: a table, or the alias of one.
    fn columns_of(&self, name: &str, statement: &str) -> Vec<String> {
        let is_alias = |alias: &str| alias.eq_ignore_ascii_case(name);
        let mut sources = sources(statement).into_iter();
        let aliased = sources.find(|source| source.alias.is_some_and(is_alias));
        let table = self.table(aliased.map_or(name, |source| source.table));
        table.map(|table| table.columns.clone()).unwrap_or_default()
    }

    /// Returns the columns of the tables in the statement, or of all tables if it names none yet.
    fn columns_in(&self, statement: &str) -> Vec<String> {
        let named = sources(statement).into_iter();
        let mut tables: Vec<&TableWords> = named.filter_map(|one| self.table(one.table)).collect();
        if tables.is_empty() {
            tables = self.tables.iter().collect();
        }
        let columns = tables.into_iter().flat_map(|table| table.columns.iter());
        columns.cloned().collect()
    }
}

/// Describes a table of a recording, or of several.
fn table(doc: &query::TableDoc, is_many: bool) -> TableWords {
    let columns = doc.columns.iter().map(|(name, _)| *name);
    let has_run = is_many && doc.columns[0] != query::runs::COLUMN;
    let run = has_run.then_some(query::runs::COLUMN.0);
    TableWords {
        name: doc.name.to_owned(),
        columns: run.into_iter().chain(columns).map(str::to_owned).collect(),
    }
}

fn table_function(doc: &query::TableFunctionDoc) -> TableWords {
    let columns = doc.columns.iter().map(|(name, _, _)| (*name).to_owned());
    TableWords {
        name: doc.name.to_owned(),
        columns: columns.collect(),
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
            table_functions: vec![
                table("backtrace", &["frame", "pc"]),
                table("callers", &["path"]),
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
        check(
            "select * from |",
            expect![[r#""" -> backtrace( callers( calls events"#]],
        );
        check("select * FROM e|", expect![[r#""e" -> events "#]]);
        check("select * from calls c, e|", expect![[r#""e" -> events "#]]);
        check(
            "select * from events join cal|",
            expect![[r#""cal" -> callers( calls"#]],
        );
    }

    #[test]
    fn functions_that_give_a_table_follow_from_with_their_parenthesis() {
        check("select * from back|", expect![[r#""back" -> backtrace("#]]);
        check(
            "select * from back|(5)",
            expect![[r#""back" -> backtrace"#]],
        );
        check("select back| from calls", expect![[r#""back" -> "#]]);
        check("select | from backtrace(5)", expect![[r#""" -> frame pc"#]]);
        check(
            "select b.| from calls as c, backtrace(5) as b",
            expect![[r#""" -> frame pc"#]],
        );
    }

    #[test]
    fn all_functions_of_recordings_are_known() {
        let words = Words::of_recording(Vec::new());
        let offered = |line: &str| words.complete(line, line.len(), &[]).words;
        assert_eq!(offered("select * from backtr"), ["backtrace("]);
        assert_eq!(
            offered("select * from diff_"),
            ["diff_calls(", "diff_functions("]
        );
        assert_eq!(offered("select explain_"), ["explain_value("]);
        assert_eq!(
            offered("select tid from locals(5) where st"),
            ["stale_since"]
        );
        let many = Words::of_session(true, &[], Vec::new());
        let offered_run = |words: &Words| {
            let offer = words.complete("select r from gaps", "select r".len(), &[]);
            offer.words.iter().any(|word| word == "run")
        };
        assert!(offered_run(&many) && !offered_run(&words));
    }

    #[test]
    fn a_statement_begins_with_its_word() {
        for begun in ["select 1", "WITH x", "show ta"] {
            assert!(Words::has_begun(begun), "{begun}");
        }
        for other in ["select", "selection of", "my run", "", " select 1"] {
            assert!(!Words::has_begun(other), "{other}");
        }
    }

    #[test]
    fn columns_of_the_named_tables_come_first() {
        check(
            "select d| from calls",
            expect![[r#""d" -> date_trunc( depth desc distinct dur_ns"#]],
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
