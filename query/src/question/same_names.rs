//! Tells columns apart that differ only in casts, as `sum(cast(ret AS double)), sum(ret)`: DataFusion names an expression without its
//! casts, and refuses two of one name.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Statement, Value, visit_expressions_mut,
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
        if let Expr::Cast { data_type, .. } = expression {
            let kind = data_type.to_string();
            let cast = std::mem::replace(expression, text(String::new()));
            *expression = named(cast, kind);
            any = true;
        }
        ControlFlow::Continue(())
    });
    any
}

fn text(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}

fn named(cast: Expr, kind: String) -> Expr {
    let arg = |own| FunctionArg::Unnamed(FunctionArgExpr::Expr(own));
    Expr::Function(Function {
        name: ObjectName::from(Ident::new(cast_as::NAME)),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![arg(cast), arg(text(kind))],
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

    #[test]
    fn casts_get_names_of_their_own() {
        for (sql, expected) in [
            (
                "SELECT sum(CAST(a AS DOUBLE)) FROM t ORDER BY CAST(CAST(a AS INT) AS TEXT)",
                "SELECT sum(__cast_as(CAST(a AS DOUBLE), 'DOUBLE')) FROM t \
                 ORDER BY __cast_as(CAST(__cast_as(CAST(a AS INT), 'INT') AS TEXT), 'TEXT')",
            ),
            ("SELECT sum(a) FROM t", "SELECT sum(a) FROM t"),
        ] {
            let mut parser = DFParserBuilder::new(sql).build().unwrap();
            let mut statement = parser.parse_statements().unwrap().pop_front().unwrap();
            tell_apart(&mut statement);
            assert_eq!(statement.to_string(), expected, "{sql}");
        }
    }
}
