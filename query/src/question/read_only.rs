//! Refuses statements that would change something or reach outside the recording.

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{SetExpr, Statement};

use crate::error::{Error, Result};

/// Accepts queries: SELECT, WITH, VALUES, EXPLAIN, SHOW and DESCRIBE.
///
/// # Errors
/// [`Error::ReadOnly`] with the statement's first words.
pub fn check(statement: &DfStatement) -> Result<()> {
    let asks = match statement {
        DfStatement::Statement(statement) => asks(statement),
        DfStatement::Explain(explain) => return check(&explain.statement),
        _ => false,
    };
    match asks {
        true => Ok(()),
        false => Err(Error::ReadOnly {
            statement: match statement {
                DfStatement::Statement(inner) if matches!(**inner, Statement::Query(_)) => {
                    "SELECT with INTO, INSERT or UPDATE".into()
                }
                _ => first_words(&statement.to_string()),
            },
        }),
    }
}

fn asks(statement: &Statement) -> bool {
    match statement {
        Statement::Query(query) => only_reads(&query.body),
        Statement::Explain { statement, .. } => asks(statement),
        Statement::ExplainTable { .. }
        | Statement::ShowTables { .. }
        | Statement::ShowColumns { .. }
        | Statement::ShowFunctions { .. }
        | Statement::ShowVariable { .. } => true,
        _ => false,
    }
}

/// Returns whether a query has no INSERT, UPDATE or INTO in it.
fn only_reads(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.into.is_none(),
        SetExpr::Query(query) => only_reads(&query.body),
        SetExpr::SetOperation { left, right, .. } => only_reads(left) && only_reads(right),
        SetExpr::Values(_) | SetExpr::Table(_) => true,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => false,
    }
}

/// Returns the leading words in capitals of a statement, at most three.
fn first_words(sql: &str) -> String {
    let capital = |word: &&str| word.chars().all(|c| c.is_ascii_uppercase());
    let words: Vec<_> = sql.split(' ').take_while(capital).take(3).collect();
    match words.is_empty() {
        true => sql.chars().take(20).collect(),
        false => words.join(" "),
    }
}
