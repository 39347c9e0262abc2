//! Refuses joins by USING and NATURAL whose shared column DataFusion takes from the table that has no such row.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, Select, SelectItem, TableFactor, TableWithJoins, Visit,
    Visitor,
};

use super::dialects::Refused;

/// The shared column is null where only the right table has a row.
static RIGHT_OR_FULL: Refused = Refused {
    word: "join",
    message: "RIGHT and FULL JOIN have no USING and no NATURAL in this SQL",
    hint: "write: select coalesce(a.k, b.k) k from A a full join B b on a.k = b.k",
};

/// The star may take the right table's column.
static STAR: Refused = Refused {
    word: "join",
    message: "SELECT * has no LEFT JOIN with USING or NATURAL in this SQL",
    hint: "name the columns: select a.*, b.x from A a left join B b using (k)",
};

/// Returns what would not be answered as it is meant.
pub fn refused(statement: &DfStatement) -> Option<&'static Refused> {
    let found = match statement {
        DfStatement::Statement(statement) => Visit::visit(statement, &mut Joins),
        DfStatement::Explain(explain) => return refused(&explain.statement),
        _ => return None,
    };
    match found {
        ControlFlow::Break(refused) => Some(refused),
        ControlFlow::Continue(()) => None,
    }
}

/// Stops at such a join.
struct Joins;

impl Visitor for Joins {
    type Break = &'static Refused;

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<&'static Refused> {
        let is_star = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
        let has_star = select.projection.iter().any(is_star);
        match select.from.iter().find_map(|own| of_tables(own, has_star)) {
            Some(refused) => ControlFlow::Break(refused),
            None => ControlFlow::Continue(()),
        }
    }
}

fn of_tables(tables: &TableWithJoins, has_star: bool) -> Option<&'static Refused> {
    let mut inner = std::iter::once(&tables.relation)
        .chain(tables.joins.iter().map(|join| &join.relation))
        .filter_map(nested);
    let mut own = tables.joins.iter();
    own.find_map(|join| of_join(join, has_star))
        .or_else(|| inner.find_map(|tables| of_tables(tables, has_star)))
}

fn nested(table: &TableFactor) -> Option<&TableWithJoins> {
    match table {
        TableFactor::NestedJoin {
            table_with_joins, ..
        } => Some(table_with_joins),
        _ => None,
    }
}

fn of_join(join: &Join, has_star: bool) -> Option<&'static Refused> {
    let (constraint, refused) = match &join.join_operator {
        JoinOperator::Right(by) | JoinOperator::RightOuter(by) | JoinOperator::FullOuter(by) => {
            (by, &RIGHT_OR_FULL)
        }
        JoinOperator::Left(by) | JoinOperator::LeftOuter(by) if has_star => (by, &STAR),
        _ => return None,
    };
    let is_shared = matches!(
        constraint,
        JoinConstraint::Using(_) | JoinConstraint::Natural
    );
    is_shared.then_some(refused)
}
