//! Replaces the `2` of `ORDER BY 2` by that output expression where it contains an aggregate. DataFusion mistakes the
//! number for a column outside the GROUP BY; the expression itself works.

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, Value,
};

/// Rewrites the numbers in a query's own ORDER BY and in those of its subqueries in WITH. Returns whether there were
/// any.
pub fn resolve(statement: &mut DfStatement) -> bool {
    match statement {
        DfStatement::Statement(statement) => of_statement(statement),
        DfStatement::Explain(explain) => resolve(&mut explain.statement),
        _ => false,
    }
}

fn of_statement(statement: &mut Statement) -> bool {
    match statement {
        Statement::Query(query) => of_query(query),
        Statement::Explain { statement, .. } => of_statement(statement),
        _ => false,
    }
}

fn of_query(query: &mut Query) -> bool {
    let mut any = false;
    for table in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
        any |= of_query(&mut table.query);
    }
    let SetExpr::Select(select) = &*query.body else {
        return any;
    };
    let order = query.order_by.as_mut().map(|order| &mut order.kind);
    let Some(OrderByKind::Expressions(by)) = order else {
        return any;
    };
    if select.distinct.is_some() && number(select, by) {
        return true;
    }
    for by in by {
        if let Some(expression) = place(&by.expr).and_then(|place| computed(select, place)) {
            by.expr = expression.clone();
            any = true;
        }
    }
    any
}

/// The reverse for DISTINCT, where DataFusion knows only the numbers of expressions: `ORDER BY lower(function)` becomes `ORDER BY 1`.
fn number(select: &Select, by: &mut [OrderByExpr]) -> bool {
    let mut any = false;
    for by in by {
        let text = by.expr.to_string();
        let is_it = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(own) => own.to_string() == text,
            _ => false,
        };
        let place = select.projection.iter().position(is_it);
        // After a star, the place means another column.
        if let Some(place) = place.filter(|place| computed(select, place + 1).is_some()) {
            by.expr = Expr::Value(Value::Number((place + 1).to_string(), false).into());
            any = true;
        }
    }
    any
}

/// Returns the number in ORDER BY.
fn place(expression: &Expr) -> Option<usize> {
    let Expr::Value(value) = expression else {
        return None;
    };
    match &value.value {
        Value::Number(number, _) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// Returns the expression at a place, if it is more than a column and has no name: names work as they are.
fn computed(select: &Select, place: usize) -> Option<&Expr> {
    // After a star, the place means another column.
    let items = select.projection.get(..place)?;
    let (last, before) = items.split_last()?;
    let is_one = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        )
    };
    match last {
        SelectItem::UnnamedExpr(
            expression @ (Expr::BinaryOp { .. }
            | Expr::UnaryOp { .. }
            | Expr::Nested(_)
            | Expr::Cast { .. }
            | Expr::Case { .. }
            | Expr::Function(_)),
        ) if before.iter().all(is_one) => Some(expression),
        _ => None,
    }
}
