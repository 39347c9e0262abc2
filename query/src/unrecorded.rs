//! Tables that are empty because nobody asked for what is in them: an answer without rows says nothing about the program then.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Query, Visit, Visitor, visit_relations};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use store::manifest::EVERY_INSTRUCTION;

/// How the manifest names that capture.
const SYSTEM_CALLS: &str = "system calls";

/// What must be captured for a table, as the manifest names it, the option that does, and what it records.
const NEEDS: [(&str, &str, &str, &str); 4] = [
    ("syscalls", SYSTEM_CALLS, "--syscalls", "system call"),
    ("files", SYSTEM_CALLS, "--syscalls", "system call"),
    ("allocations", "memory", "--memory", "allocation"),
    ("locks", "locks", "--locks", "lock"),
];

/// Returns a note for each such table that a question reads of a recording with these captures. `has_functions`: whether recorded
/// functions make rows of a table in any case, as `operator new` of a C++ program does.
pub fn notes(sql: &str, captures: &[String], has_functions: impl Fn(&str) -> bool) -> Vec<String> {
    let defined = defined(sql);
    let mut read = tables(sql);
    read.retain(|table| !defined.contains(table));
    let mut notes: Vec<String> = Vec::new();
    for (table, capture, option, what) in NEEDS {
        if is_captured(captures, capture) || !read.iter().any(|own| own == table) {
            continue;
        }
        let note = match has_functions(table) {
            true => format!(
                "only {what}s of the recorded functions are known: hindsight record {option} records all"
            ),
            false => format!("no {what} was recorded: hindsight record {option}"),
        };
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

fn is_captured(captures: &[String], capture: &str) -> bool {
    let is_all = |own: &String| capture == SYSTEM_CALLS && own == EVERY_INSTRUCTION;
    captures.iter().any(|own| own == capture || is_all(own))
}

/// Returns whether a recording with these captures has its program's system calls.
pub fn has_syscalls(captures: &[String]) -> bool {
    is_captured(captures, SYSTEM_CALLS)
}

/// Returns a note for each such table that a question reads of several recordings, each with its captures.
pub fn notes_of_many<'a>(sql: &str, runs: impl Iterator<Item = &'a [String]>) -> Vec<String> {
    // Their functions are in files that are not read for a note.
    let may_have_functions = |table: &str| matches!(table, "allocations" | "locks");
    let (mut all, mut lacking) = (0, Vec::<(String, u64)>::new());
    for captures in runs {
        all += 1;
        for note in notes(sql, captures, may_have_functions) {
            match lacking.iter_mut().find(|(known, _)| *known == note) {
                Some((_, count)) => *count += 1,
                None => lacking.push((note, 1)),
            }
        }
    }
    let in_some = |(note, count)| format!("in {count} of {all} recordings {note}");
    lacking.into_iter().map(in_some).collect()
}

/// The names after FROM, JOIN and commas, outside of texts.
fn tables(sql: &str) -> Vec<String> {
    let mut code = String::new();
    for (at, part) in sql.split('\'').enumerate() {
        code.push_str(if at % 2 == 0 { part } else { " " });
    }
    let code = code.replace(',', " , ").replace(['(', ')', ';'], " ");
    let words: Vec<String> = code.split_whitespace().map(str::to_lowercase).collect();
    let pairs = words.windows(2);
    let named = pairs.filter(|pair| matches!(pair[0].as_str(), "from" | "join" | ","));
    named
        .map(|pair| pair[1].trim_matches('"').to_owned())
        .collect()
}

/// The names that a question's WITH gives to rows of its own.
fn defined(sql: &str) -> Vec<String> {
    let statements = Parser::parse_sql(&GenericDialect {}, sql).unwrap_or_default();
    let mut found = Defined(Vec::new());
    let _: ControlFlow<()> = statements.visit(&mut found);
    found.0
}

struct Defined(Vec<String>);

impl Visitor for Defined {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for own in query.with.iter().flat_map(|with| &with.cte_tables) {
            let name = own.alias.name.value.to_lowercase();
            // Its own query means the table by this name.
            if !reads(&own.query, &name) {
                self.0.push(name);
            }
        }
        ControlFlow::Continue(())
    }
}

fn reads(query: &Query, table: &str) -> bool {
    let found = visit_relations(query, |name| {
        match name.to_string().eq_ignore_ascii_case(table) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    found.is_break()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tables_that_are_read_and_not_recorded_are_told() {
        let locks = ["locks".to_owned()];
        for (sql, captures, expected) in [
            (
                "select * from LOCKS",
                &[][..],
                "no lock was recorded: hindsight record --locks",
            ),
            ("select * from locks", &locks, ""),
            (
                "select count(*) from calls c, syscalls s",
                &locks,
                "no system call was recorded: hindsight record --syscalls",
            ),
            ("select 'from locks' from calls", &[], ""),
            ("select locks from (select 1 locks)", &[], ""),
            (
                "with locks as (select 1) select * from locks, calls",
                &[],
                "",
            ),
            (
                "with locks as (select * from locks) select * from locks",
                &[],
                "no lock was recorded: hindsight record --locks",
            ),
        ] {
            let notes = notes(sql, captures, |_| false);
            assert_eq!(notes.join("; "), expected, "{sql}");
        }
        let runs = [&[][..], &locks, &[]];
        assert_eq!(
            notes_of_many("select * from locks", runs.into_iter()),
            [
                "in 2 of 3 recordings only locks of the recorded functions are known: hindsight record --locks records all"
            ]
        );
        let both = "select * from syscalls join files on true";
        assert_eq!(notes(both, &[], |_| false).len(), 1);
    }
}
