//! Tells expressions apart that differ only in casts, as `sum(cast(ret AS double)), sum(ret)`: DataFusion names an expression without its
//! casts. It refuses two columns of one name; where it sorts or groups, it takes a cast for the column that is cast, and leaves out what
//! follows from that column.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, GroupByExpr, Ident, ObjectName, Query, Select, Statement, Value, Visit,
    Visitor, visit_expressions_mut,
};

use crate::functions::cast_as;

/// Returns whether a query was perhaps refused because of such a name.
pub fn are_the_reason(error: &DataFusionError) -> bool {
    let error = match error {
        DataFusionError::Collection(errors) => errors.first().unwrap_or(error),
        error => error,
    };
    match error.find_root() {
        DataFusionError::SchemaError(error, _) => {
            !matches!(**error, SchemaError::FieldNotFound { .. })
        }
        DataFusionError::Plan(message) => message.contains("require unique expression names"),
        _ => false,
    }
}

/// Spellings of types, and the one that all of them get.
const SPELLINGS: [(&str, &str); 13] = [
    ("BOOL", "BOOLEAN"),
    ("INT2", "SMALLINT"),
    ("INTEGER", "INT"),
    ("INT4", "INT"),
    ("INT8", "BIGINT"),
    ("FLOAT", "REAL"),
    ("FLOAT4", "REAL"),
    ("FLOAT8", "DOUBLE"),
    ("DOUBLE PRECISION", "DOUBLE"),
    ("CHAR", "TEXT"),
    ("VARCHAR", "TEXT"),
    ("STRING", "TEXT"),
    ("NUMERIC", "DECIMAL"),
];

/// Returns whether a question or a part of it has GROUP BY or ORDER BY.
pub fn sorts_or_groups(statement: &DfStatement) -> bool {
    match statement {
        DfStatement::Statement(statement) => statement.visit(&mut SortsOrGroups).is_break(),
        DfStatement::Explain(explain) => sorts_or_groups(&explain.statement),
        _ => false,
    }
}

/// Stops at such a part.
struct SortsOrGroups;

impl Visitor for SortsOrGroups {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        match query.order_by.is_some() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        match &select.group_by {
            GroupByExpr::Expressions(by, _) if by.is_empty() => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}

/// Gives each cast a name that says what it casts to. Returns whether there was any.
pub fn tell_apart(statement: &mut DfStatement) -> bool {
    match statement {
        DfStatement::Statement(statement) => of_statement(statement),
        DfStatement::Explain(explain) => tell_apart(&mut explain.statement),
        _ => false,
    }
}

fn of_statement(statement: &mut Statement) -> bool {
    let mut any = false;
    // Inner expressions come before those around them.
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        if let Expr::Cast {
            kind, data_type, ..
        } = expression
        {
            let (word, kind) = (word_of(kind), name_of(data_type));
            let cast = std::mem::replace(expression, text(String::new()));
            *expression = named(cast, word.to_owned(), kind);
            any = true;
        }
        ControlFlow::Continue(())
    });
    any
}

fn word_of(kind: &CastKind) -> &'static str {
    match kind {
        CastKind::Cast | CastKind::DoubleColon => "CAST",
        CastKind::TryCast | CastKind::SafeCast => "TRY_CAST",
    }
}

/// Returns a type's name, which is the same for all its spellings: `a::INTEGER` is `CAST(a AS INT)`.
fn name_of(data_type: &DataType) -> String {
    let name = data_type.to_string();
    let (word, size) = name.split_at(name.find('(').unwrap_or(name.len()));
    let known = SPELLINGS.iter().find(|(spelling, _)| *spelling == word);
    let usual = known.map_or(word, |(_, usual)| *usual);
    format!("{usual}{size}")
}

fn text(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}

fn named(cast: Expr, word: String, kind: String) -> Expr {
    let arg = |own| FunctionArg::Unnamed(FunctionArgExpr::Expr(own));
    Expr::Function(Function {
        name: ObjectName::from(Ident::new(cast_as::NAME)),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![arg(cast), arg(text(word)), arg(text(kind))],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;

    use super::*;

    fn parsed(sql: &str) -> DfStatement {
        let mut parser = DFParserBuilder::new(sql).build().unwrap();
        parser.parse_statements().unwrap().pop_front().unwrap()
    }

    #[test]
    fn what_sorts_or_groups_is_found() {
        for (sql, expected) in [
            ("SELECT a FROM t GROUP BY a", true),
            ("SELECT a FROM t GROUP BY ALL", true),
            ("SELECT a FROM (SELECT a FROM t ORDER BY a)", true),
            ("EXPLAIN SELECT a FROM t ORDER BY 1", true),
            ("SELECT a FROM t WHERE a = 1", false),
        ] {
            assert_eq!(sorts_or_groups(&parsed(sql)), expected, "{sql}");
        }
    }

    #[test]
    fn casts_get_names_of_their_own() {
        for (sql, expected) in [
            (
                "SELECT sum(CAST(a AS DOUBLE)) FROM t ORDER BY CAST(CAST(a AS INT) AS TEXT)",
                "SELECT sum(__cast_as(CAST(a AS DOUBLE), 'CAST', 'DOUBLE')) FROM t \
                 ORDER BY __cast_as(CAST(__cast_as(CAST(a AS INT), 'CAST', 'INT') AS TEXT), 'CAST', 'TEXT')",
            ),
            (
                "SELECT a::INTEGER, TRY_CAST(a AS INT) FROM t",
                "SELECT __cast_as(a::INTEGER, 'CAST', 'INT'), __cast_as(TRY_CAST(a AS INT), 'TRY_CAST', 'INT') FROM t",
            ),
            (
                "SELECT a::NUMERIC(10,2) FROM t",
                "SELECT __cast_as(a::NUMERIC(10,2), 'CAST', 'DECIMAL(10,2)') FROM t",
            ),
            ("SELECT sum(a) FROM t", "SELECT sum(a) FROM t"),
        ] {
            let mut statement = parsed(sql);
            tell_apart(&mut statement);
            assert_eq!(statement.to_string(), expected, "{sql}");
        }
    }
}
