//! Names in a question that a recording does not have: `function = 'totl'` holds for no row, and an empty answer does not say why.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SelectItem, SetExpr, Statement, TableFactor, Value, Visit,
    Visitor, visit_expressions, visit_relations,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use debuginfo::short_name;
use store::columns::EventKind;
use store::control::FunctionDef;

use crate::definitions::Skipped;
use crate::question::suggest;
use crate::short_names::{self, last_part};
use crate::tables::TABLES;

/// Tables whose functions are the traced ones. Others also have functions that were not traced.
const OF_FUNCTIONS: [&str; 3] = ["calls", "functions", "report"];
/// Columns whose names are looked for.
const COMPARED: [&str; 6] = [
    "function",
    "name",
    "short_name",
    "file",
    "kind",
    crate::runs::COLUMN.0,
];
/// Where a name is not.
const HERE: &str = " in this recording";
/// Most names that a note suggests.
const MOST_NEAR: usize = 3;
/// Most notes on one question: a list of IN may have thousands of names, and near ones are searched for each.
const MOST_NOTES: usize = 8;

/// Returns a note for each name of a function, a file or a kind of event that a question compares with and that a recording with these
/// functions does not have.
pub fn notes<'f, Functions: Iterator<Item = &'f FunctionDef>>(
    sql: &str,
    functions: impl Fn() -> Functions,
    skipped: &[Skipped],
) -> Vec<String> {
    notes_by(sql, |column, text, tables| match column {
        "function" | "name" | "short_name" if are_among(tables, &OF_FUNCTIONS) => {
            let unknown = of_function(column, text, &functions().collect::<Vec<_>>())?;
            let mut skipped = skipped.iter().map(|function| function.name.as_str());
            let is_skipped = skipped.any(|name| name == text || short_name(name) == text);
            Some(match is_skipped {
                true => format!("'{text}' is not recorded: skipped, see probes"),
                false => unknown,
            })
        }
        "file" if are_among(tables, &OF_FUNCTIONS) => {
            let files = functions().filter_map(|function| function.file.as_deref());
            unknown(
                ("source file", HERE),
                text,
                &files.collect::<Vec<_>>(),
                file_name,
            )
        }
        "kind" if are_among(tables, &["events"]) => {
            let kinds = EventKind::ALL.iter().map(|kind| kind.name());
            let kinds: Vec<&str> = kinds.chain(["enter", "leave"]).collect();
            unknown(("event of kind", HERE), text, &kinds, str::to_owned)
        }
        _ => None,
    })
}

/// Returns a note for each name of a recording that a question over recordings of these names compares with, and that is none of them.
pub fn notes_of_runs<'n>(sql: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let names: Vec<&str> = names.collect();
    let all: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    notes_by(sql, |column, text, tables| {
        let is_run = column == crate::runs::COLUMN.0 && are_among(tables, &all);
        is_run.then(|| unknown(("recording", ""), text, &names, run_name))?
    })
}

fn notes_by(
    sql: &str,
    mut note: impl FnMut(&str, &str, &[String]) -> Option<String>,
) -> Vec<String> {
    let statements = Parser::parse_sql(&GenericDialect {}, sql);
    let Some(statement) = statements.unwrap_or_default().into_iter().next() else {
        return Vec::new();
    };
    if !reads_only_tables(&statement) {
        return Vec::new();
    }
    let tables = tables(&statement);
    let mut notes: Vec<String> = Vec::new();
    for (column, text) in compared(&statement) {
        if notes.len() >= MOST_NOTES {
            break;
        }
        if let Some(note) = note(&column, &text, &tables)
            && !notes.contains(&note)
        {
            notes.push(note);
        }
    }
    notes
}

/// Returns whether each name in a question is one of a table or of its columns: other rows may have any names.
fn reads_only_tables(statement: &Statement) -> bool {
    statement.visit(&mut OtherRows).is_continue()
}

/// Stops at rows that are not a table's own, and at names that a question gives to columns.
struct OtherRows;

impl Visitor for OtherRows {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        stop_if(query.with.is_some() || matches!(*query.body, SetExpr::Values(_)))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_named = |item: &SelectItem| match item {
            SelectItem::ExprWithAlias { alias, .. } => {
                let name = alias.value.to_lowercase();
                COMPARED.contains(&name.as_str())
            }
            SelectItem::ExprWithAliases { .. } => true,
            _ => false,
        };
        stop_if(select.projection.iter().any(is_named))
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        let is_plain = match table {
            TableFactor::Table { alias, args, .. } => {
                let names = alias.as_ref().map_or(0, |alias| alias.columns.len());
                args.is_none() && names == 0
            }
            TableFactor::NestedJoin { alias, .. } => alias.is_none(),
            _ => false,
        };
        stop_if(!is_plain)
    }
}

fn stop_if(is_over: bool) -> ControlFlow<()> {
    match is_over {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// The tables that a question reads.
fn tables(statement: &Statement) -> Vec<String> {
    let mut found = Vec::new();
    let _: ControlFlow<()> = visit_relations(statement, |name| {
        found.push(name.to_string().to_lowercase());
        ControlFlow::Continue(())
    });
    found
}

fn are_among(tables: &[String], known: &[&str]) -> bool {
    !tables.is_empty() && tables.iter().all(|table| known.contains(&table.as_str()))
}

/// The columns that must equal a text somewhere in a question, and the texts.
fn compared(statement: &Statement) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let _: ControlFlow<()> = visit_expressions(statement, |expression| {
        match expression {
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } => found.extend(pair(left, right).or_else(|| pair(right, left))),
            Expr::InList {
                expr,
                list,
                negated: false,
            } => found.extend(list.iter().filter_map(|text| pair(expr, text))),
            Expr::Like {
                negated: false,
                expr,
                pattern,
                ..
            } => found.extend(pair(expr, pattern).filter(|(_, text)| is_plain(text))),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found
}

/// Returns whether LIKE compares with the text as `=` does.
fn is_plain(pattern: &str) -> bool {
    !pattern.contains(['%', '_', '\\'])
}

fn pair(column: &Expr, text: &Expr) -> Option<(String, String)> {
    let column = match column {
        Expr::Identifier(name) => name,
        Expr::CompoundIdentifier(names) => names.last()?,
        _ => return None,
    };
    let Expr::Value(text) = text else {
        return None;
    };
    match &text.value {
        Value::SingleQuotedString(text) => Some((column.value.to_lowercase(), text.clone())),
        _ => None,
    }
}

fn of_function(column: &str, text: &str, functions: &[&FunctionDef]) -> Option<String> {
    let short;
    let names: Vec<&str> = match column {
        "short_name" => {
            short = short_names::of_functions(functions);
            short.iter().map(String::as_str).collect()
        }
        _ => functions.iter().map(|f| f.name.as_str()).collect(),
    };
    let has_full = column != "short_name";
    has_full
        .then(|| short_names::note(column, text, &names))
        .flatten()
        .or_else(|| unknown(("function", HERE), text, &names, last_part))
}

/// Returns the note that `text` is none of these names. `last` returns the last part of a name.
fn unknown(
    (what, place): (&str, &str),
    text: &str,
    names: &[&str],
    last: impl Fn(&str) -> String,
) -> Option<String> {
    if names.contains(&text) {
        return None;
    }
    let near = near(text, names, last);
    let near = match near.is_empty() {
        true => String::new(),
        false => format!("; near: {}", near.join(", ")),
    };
    Some(format!("no {what} '{text}'{place}{near}"))
}

/// Returns the names that `text` may mean: first those with the same last part, then those that are spelt nearly so.
fn near(text: &str, names: &[&str], last: impl Fn(&str) -> String) -> Vec<String> {
    let own = last(text);
    let parts: Vec<(String, &str)> = names.iter().map(|name| (last(name), *name)).collect();
    let called = |part: &str| -> Vec<String> {
        let same = parts
            .iter()
            .filter(|(other, _)| !part.is_empty() && other == part);
        same.map(|(_, name)| (*name).to_owned()).collect()
    };
    let mut all = called(&own);
    all.extend(suggest(text, names.iter().copied()));
    let spelt = suggest(&own, parts.iter().map(|(part, _)| part.as_str()));
    all.extend(spelt.iter().flat_map(|part| called(part)));
    let mut near: Vec<String> = Vec::new();
    for name in all {
        if near.len() < MOST_NEAR && !near.contains(&name) {
            near.push(name);
        }
    }
    near
}

/// Returns a recording's name without its folder and its ending.
fn run_name(path: &str) -> String {
    let name = file_name(path.trim_end_matches('/'));
    let name = name.strip_suffix(".hindsight").unwrap_or(&name);
    name.to_owned()
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "alloc::vec::Vec<i32, alloc::alloc::Global>::push";

    fn told(column: &str, text: &str) -> Option<String> {
        let names = ["shop::total", "main", "shop::Cart<int>::add", LONG];
        let functions = names.map(|name| FunctionDef::named(name.to_owned(), String::new()));
        match column {
            "file" => unknown(("source file", HERE), text, &["/src/shop.cc"], file_name),
            _ => of_function(column, text, &functions.iter().collect::<Vec<_>>()),
        }
    }

    #[test]
    fn names_that_are_not_there_are_told_with_near_ones() {
        for (column, text, expected) in [
            (
                "function",
                "totl",
                Some("no function 'totl' in this recording; near: shop::total"),
            ),
            (
                "function",
                "total",
                Some("no function 'total' in this recording; near: shop::total"),
            ),
            ("function", "main", None),
            ("name", "main", None),
            (
                "name",
                "Vec<i32>::push",
                Some(
                    "name has full names, and 'Vec<i32>::push' is a short one: \
                     name = 'alloc::vec::Vec<i32, alloc::alloc::Global>::push'",
                ),
            ),
            ("name", LONG, None),
            ("short_name", "Vec<i32>::push", None),
            (
                "short_name",
                "push",
                Some("no function 'push' in this recording; near: Vec<i32>::push"),
            ),
            (
                "function",
                "zebra",
                Some("no function 'zebra' in this recording"),
            ),
            (
                "file",
                "shop.cc",
                Some("no source file 'shop.cc' in this recording; near: /src/shop.cc"),
            ),
        ] {
            assert_eq!(told(column, text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn only_names_that_must_be_equal_are_compared() {
        for (sql, expected) in [
            ("select * from calls where function = 'a'", "function a"),
            ("select * from calls c where 'a' = c.Function", "function a"),
            (
                "select * from calls where function in ('a', 'b') and file like 'c'",
                "function a, function b, file c",
            ),
            ("select * from calls where function like 'a%'", ""),
            ("select * from calls where function <> 'a'", ""),
            ("select * from calls where function not in ('a')", ""),
            ("select from where", ""),
        ] {
            let statements = Parser::parse_sql(&GenericDialect {}, sql).unwrap_or_default();
            let found = statements.first().map(compared).unwrap_or_default();
            let found: Vec<String> = found
                .iter()
                .map(|(column, text)| format!("{column} {text}"))
                .collect();
            assert_eq!(found.join(", "), expected, "{sql}");
        }
    }

    #[test]
    fn kinds_of_events_are_known() {
        let none = || std::iter::empty::<&FunctionDef>();
        let sql = |kind: &str| format!("select seq, text from events where kind = '{kind}'");
        for kind in ["enter", "leave", "stdout", "write", "gap"] {
            assert!(notes(&sql(kind), none, &[]).is_empty(), "{kind}");
        }
        assert_eq!(
            notes(&sql("entr"), none, &[]),
            ["no event of kind 'entr' in this recording; near: enter"]
        );
        assert!(notes("select kind from probes where kind = 'entr'", none, &[]).is_empty());
    }

    #[test]
    fn rows_that_are_not_a_tables_own_may_have_any_name() {
        let none = || std::iter::empty::<&FunctionDef>();
        for sql in [
            "select function from (select upper(function) as function from calls) c where function = 'FIB'",
            "with calls as (select 'FIB' as function) select * from calls where function = 'FIB'",
            "select * from (values ('FIB')) as calls(function) where function = 'FIB'",
            "select * from calls as c(function) where function = 'FIB'",
            "select upper(function) as function from calls group by 1 having function = 'FIB'",
        ] {
            assert!(notes(sql, none, &[]).is_empty(), "{sql}");
        }
        let sql =
            "select * from calls c join functions f on f.id = c.depth where c.function = 'FIB'";
        assert_eq!(
            notes(sql, none, &[]),
            ["no function 'FIB' in this recording"]
        );
    }

    #[test]
    fn skipped_functions_are_not_unknown() {
        let none = || std::iter::empty::<&FunctionDef>();
        let skipped = [Skipped {
            module: 1,
            svma: 0,
            name: "tiny".to_owned(),
            reason: "too short".to_owned(),
        }];
        assert_eq!(
            notes(
                "select * from calls where function = 'tiny'",
                none,
                &skipped
            ),
            ["'tiny' is not recorded: skipped, see probes"]
        );
    }

    #[test]
    fn recordings_are_known_by_their_names() {
        let of = |sql: &str| notes_of_runs(sql, ["good", "bad"].into_iter()).join("; ");
        assert_eq!(
            of("select count(*) from calls where run = 'goood'"),
            "no recording 'goood'; near: good"
        );
        assert_eq!(of("select count(*) from calls where run = 'bad'"), "");
        assert_eq!(
            of("select count(*) from calls where run = 'bad.hindsight'"),
            "no recording 'bad.hindsight'; near: bad"
        );
    }
}
