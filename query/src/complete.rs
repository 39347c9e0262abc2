//! Lists the words that a prompt completes: tables, columns and SQL's own.

use std::collections::BTreeSet;

use crate::tables::TABLES;

/// Keywords of SQL for queries to a recording.
pub const KEYWORDS: &[&str] = &[
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "CROSS JOIN",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXPLAIN ANALYZE",
    "FALSE",
    "FILTER",
    "FROM",
    "FULL JOIN",
    "GROUP BY",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER JOIN",
    "INTERSECT",
    "IS NOT NULL",
    "IS NULL",
    "JOIN",
    "LEFT JOIN",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER BY",
    "OVER",
    "PARTITION BY",
    "RIGHT JOIN",
    "ROWS BETWEEN",
    "SELECT",
    "SHOW TABLES",
    "THEN",
    "TRUE",
    "UNION",
    "UNION ALL",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WITH",
    "WITHIN GROUP",
];

/// Returns the names of the tables, the most used first.
pub fn table_names() -> Vec<&'static str> {
    TABLES.iter().map(|table| table.name).collect()
}

/// Returns the columns of a table in order, or `None` when there is no such table.
pub fn column_names(table: &str) -> Option<Vec<&'static str>> {
    let table = TABLES.iter().find(|t| t.name.eq_ignore_ascii_case(table))?;
    Some(table.columns.iter().map(|(name, _)| *name).collect())
}

/// Returns the columns of all tables, each once, in alphabetical order.
pub fn all_column_names() -> Vec<&'static str> {
    let columns = TABLES.iter().flat_map(|table| table.columns);
    let names: BTreeSet<_> = columns.map(|(name, _)| *name).collect();
    names.into_iter().collect()
}
