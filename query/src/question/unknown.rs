//! Gives IN, ANY and ALL with a subquery their third value, unknown. DataFusion takes it for false unless IN stands alone in WHERE or
//! beside AND, and compares the subquery's column with itself where both sides of ANY and ALL have one name.

use std::ops::ControlFlow;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, Query, Select, TableFactor, TableWithJoins,
    UnaryOperator, VisitMut, VisitorMut, visit_expressions,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::dialects::Refused;

/// The name of a subquery in what it is rewritten to.
const TABLE: &str = "__any";
/// What stands for the value that is compared with the subquery's rows.
const VALUE: &str = "__x";
/// A subquery's rows; its column has a name that no column of the question has.
const ROWS: &str = "FROM (SELECT 1) AS __any (__c)";

/// Where a condition stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Alone or beside AND, where DataFusion tells unknown from false.
    Condition,
    /// Beside OR, where unknown does what false does.
    Either,
    /// Where unknown differs from false.
    Value,
}

impl Place {
    fn beside_or(self) -> Place {
        match self {
            Place::Condition => Place::Either,
            other => other,
        }
    }
}

/// Rewrites the conditions of a question whose unknown DataFusion loses. Returns whether there was any.
pub fn with_unknown(statement: &mut DfStatement) -> bool {
    match statement {
        DfStatement::Statement(statement) => {
            let mut conditions = Conditions { any: false };
            let _: ControlFlow<()> = VisitMut::visit(statement, &mut conditions);
            conditions.any
        }
        DfStatement::Explain(explain) => with_unknown(&mut explain.statement),
        _ => false,
    }
}

/// Rewrites WHERE, HAVING, QUALIFY and ON, those of subqueries first.
struct Conditions {
    any: bool,
}

impl VisitorMut for Conditions {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let conditions = [
            &mut select.selection,
            &mut select.having,
            &mut select.qualify,
        ];
        for condition in conditions.into_iter().flatten() {
            self.condition(condition, Place::Condition);
        }
        for tables in &mut select.from {
            self.joins(tables);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = table
        {
            self.joins(table_with_joins);
        }
        ControlFlow::Continue(())
    }
}

impl Conditions {
    fn joins(&mut self, tables: &mut TableWithJoins) {
        for join in &mut tables.joins {
            if let Some(condition) = on(&mut join.join_operator) {
                self.condition(condition, Place::Condition);
            }
        }
    }

    fn condition(&mut self, own: &mut Expr, place: Place) {
        self.any |= without_not(own);
        match own {
            Expr::Nested(inner) => self.condition(inner, place),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => {
                self.condition(left, place);
                self.condition(right, place);
            }
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Or,
                right,
            } => {
                self.condition(left, place.beside_or());
                self.condition(right, place.beside_or());
            }
            Expr::InSubquery { expr: left, .. }
            | Expr::AnyOp { left, .. }
            | Expr::AllOp { left, .. } => {
                self.values(left);
                self.any |= rewrite(own, place);
            }
            _ => self.values(own),
        }
    }

    fn values(&mut self, own: &mut Expr) {
        let mut values = Values {
            queries: 0,
            any: false,
        };
        let _: ControlFlow<()> = VisitMut::visit(own, &mut values);
        self.any |= values.any;
    }
}

/// Returns the condition of a join.
fn on(join: &mut JoinOperator) -> Option<&mut Expr> {
    match join {
        JoinOperator::Join(JoinConstraint::On(condition))
        | JoinOperator::Inner(JoinConstraint::On(condition))
        | JoinOperator::Left(JoinConstraint::On(condition))
        | JoinOperator::LeftOuter(JoinConstraint::On(condition))
        | JoinOperator::Right(JoinConstraint::On(condition))
        | JoinOperator::RightOuter(JoinConstraint::On(condition))
        | JoinOperator::FullOuter(JoinConstraint::On(condition)) => Some(condition),
        _ => None,
    }
}

/// Rewrites what stands in an expression, but not in its subqueries.
struct Values {
    /// Subqueries around what is visited.
    queries: usize,
    any: bool,
}

impl VisitorMut for Values {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, own: &mut Expr) -> ControlFlow<()> {
        if self.queries == 0 {
            self.any |= rewrite(own, Place::Value);
        }
        ControlFlow::Continue(())
    }
}

/// Makes `NOT (x IN ...)` `x NOT IN ...`. Returns whether it was that.
fn without_not(own: &mut Expr) -> bool {
    let Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr,
    } = own
    else {
        return false;
    };
    let mut inner: &Expr = expr;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    let is_test = matches!(
        inner,
        Expr::InSubquery { .. } | Expr::AnyOp { .. } | Expr::AllOp { .. }
    );
    if !is_test {
        return false;
    }
    let mut inner = inner.clone();
    as_in(&mut inner);
    let Expr::InSubquery { negated, .. } = &mut inner else {
        return false;
    };
    *negated = !*negated;
    *own = inner;
    true
}

fn rewrite(own: &mut Expr, place: Place) -> bool {
    let is_in = as_in(own);
    match rewritten(own, place) {
        Some(made) => {
            *own = made;
            true
        }
        None => is_in,
    }
}

/// Makes `= ANY` IN, and `<> ALL` NOT IN. Returns whether it was that.
fn as_in(own: &mut Expr) -> bool {
    let (left, right, negated) = match own {
        Expr::AnyOp {
            left,
            compare_op: BinaryOperator::Eq,
            right,
            ..
        } => (left, right, false),
        Expr::AllOp {
            left,
            compare_op: BinaryOperator::NotEq,
            right,
        } => (left, right, true),
        _ => return false,
    };
    let Some(query) = subquery(right) else {
        return false;
    };
    *own = Expr::InSubquery {
        expr: left.clone(),
        subquery: Box::new(query.clone()),
        negated,
    };
    true
}

fn subquery(own: &Expr) -> Option<&Query> {
    match own {
        Expr::Subquery(query) => Some(query.as_ref()),
        Expr::Nested(inner) => subquery(inner),
        _ => None,
    }
}

/// Returns the same with EXISTS, which is never unknown; `None` where DataFusion does right.
fn rewritten(own: &Expr, place: Place) -> Option<Expr> {
    match own {
        Expr::InSubquery {
            expr,
            subquery,
            negated,
        } => {
            let is_right = match place {
                Place::Condition => true,
                Place::Either => !negated,
                Place::Value => false,
            };
            let text = if *negated { not_in() } else { is_in() };
            (!is_right).then(|| filled(&text, expr, subquery))?
        }
        Expr::AnyOp {
            left,
            compare_op,
            right,
            ..
        } => filled(&any(compare_op, place), left, subquery(right)?),
        Expr::AllOp {
            left,
            compare_op,
            right,
        } => filled(&all(compare_op, place), left, subquery(right)?),
        _ => None,
    }
}

/// Only the first subquery depends on the value: the others are counted once for all rows.
fn is_in() -> String {
    format!(
        "CASE WHEN EXISTS (SELECT 1 {ROWS} WHERE __any.__c = {VALUE}) THEN true \
         WHEN (SELECT count(*) {ROWS} WHERE __any.__c IS NULL) > 0 THEN NULL \
         WHEN {VALUE} IS NULL AND (SELECT count(*) {ROWS}) > 0 THEN NULL ELSE false END"
    )
}

fn not_in() -> String {
    format!("NOT ({})", is_in())
}

fn any(operator: &BinaryOperator, place: Place) -> String {
    let rows = format!("SELECT 1 {ROWS} WHERE ({VALUE} {operator} __any.__c)");
    match place {
        Place::Condition | Place::Either => format!("EXISTS ({rows})"),
        Place::Value => format!(
            "CASE WHEN EXISTS ({rows}) THEN true WHEN EXISTS ({rows} IS NULL) THEN NULL ELSE false END"
        ),
    }
}

fn all(operator: &BinaryOperator, place: Place) -> String {
    let rows = format!("SELECT 1 {ROWS} WHERE ({VALUE} {operator} __any.__c)");
    match place {
        Place::Condition | Place::Either => format!("NOT EXISTS ({rows} IS NOT TRUE)"),
        Place::Value => format!(
            "CASE WHEN EXISTS ({rows} IS FALSE) THEN false WHEN EXISTS ({rows} IS NULL) THEN NULL ELSE true END"
        ),
    }
}

/// Reads an expression, and puts the value and the subquery into it.
fn filled(text: &str, value: &Expr, query: &Query) -> Option<Expr> {
    let dialect = GenericDialect {};
    let parser = Parser::new(&dialect).try_with_sql(text);
    let mut own = parser.ok()?.parse_expr().ok()?;
    let _: ControlFlow<()> = VisitMut::visit(&mut own, &mut Fill { value, query });
    Some(Expr::Nested(Box::new(own)))
}

/// What is put in: after the visit of a place, so that it is not visited itself.
struct Fill<'a> {
    value: &'a Expr,
    query: &'a Query,
}

impl VisitorMut for Fill<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, own: &mut Expr) -> ControlFlow<()> {
        if matches!(own, Expr::Identifier(name) if name.value == VALUE) {
            *own = Expr::Nested(Box::new(self.value.clone()));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived {
            subquery,
            alias: Some(alias),
            ..
        } = table
            && alias.name.value == TABLE
        {
            **subquery = self.query.clone();
        }
        ControlFlow::Continue(())
    }
}

/// ANY, SOME and ALL where DataFusion has no plan for them.
static MISPLACED: [Refused; 3] = [misplaced("any"), misplaced("some"), misplaced("all")];

const fn misplaced(word: &'static str) -> Refused {
    Refused {
        word,
        message: "ANY and ALL with a subquery stand in WHERE or HAVING",
        hint: "to have the answer as a column, compare with an aggregate: select a.x >= (select max(b.x) from B b) from A a",
    }
}

/// Returns what is left of ANY and ALL in other clauses.
pub fn refused(statement: &DfStatement) -> Option<&'static Refused> {
    let mut rest = statement.clone();
    with_unknown(&mut rest);
    left_over(&rest)
}

fn left_over(statement: &DfStatement) -> Option<&'static Refused> {
    let statement = match statement {
        DfStatement::Statement(statement) => statement,
        DfStatement::Explain(explain) => return left_over(&explain.statement),
        _ => return None,
    };
    let found = visit_expressions(statement, |own| match own {
        Expr::AnyOp { right, is_some, .. } if subquery(right).is_some() => {
            ControlFlow::Break(&MISPLACED[usize::from(*is_some)])
        }
        Expr::AllOp { right, .. } if subquery(right).is_some() => ControlFlow::Break(&MISPLACED[2]),
        _ => ControlFlow::Continue(()),
    });
    match found {
        ControlFlow::Break(refused) => Some(refused),
        ControlFlow::Continue(()) => None,
    }
}

/// What [`check_not_in`] refuses.
pub const NOT_IN: &str = "NOT IN has no subquery that compares with the question around it, for a null in it would decide about all rows";
/// How it is written.
pub const NOT_EXISTS: &str =
    "write: where not exists (select 1 from B b where b.k = a.k and (b.x = a.x) is not false)";

/// How a condition is written whose unknown has no plan.
pub const EXISTS: &str = "write it with EXISTS: exists (select 1 from B b where b.k = a.k and a.x > b.x); \
     for NOT IN: not exists (select 1 from B b where b.k = a.k and (b.x = a.x) is not false)";

/// Accepts a plan without NOT IN of a correlated subquery: DataFusion lets a null of any of its rows decide about all rows.
///
/// # Errors
/// [`NOT_IN`].
pub fn check_not_in(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|own| {
            own.apply(|own| match own {
                PlannedExpr::InSubquery(own) if loses_rows(own) => {
                    Err(DataFusionError::Plan(NOT_IN.to_owned()))
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    })?;
    Ok(())
}

fn loses_rows(own: &InSubquery) -> bool {
    own.negated && !own.subquery.outer_ref_columns.is_empty()
}
