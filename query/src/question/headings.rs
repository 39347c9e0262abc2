//! Headings of computed columns: what the user wrote, instead of the engine's own form, as in `calls.function ||
//! Utf8("(")`.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{Expr, Select, SelectItem, SetExpr, Statement};

/// The headings of an answer's columns; `None` if the name of the column is right.
#[derive(Debug, Default)]
pub struct Headings(Vec<Option<String>>);

impl Headings {
    /// Takes them from a query with this many columns.
    pub fn of(statement: &DfStatement, columns: usize) -> Headings {
        let mut headings = vec![None; columns];
        let items = select(statement).map_or(&[][..], |select| select.projection.as_slice());
        let single = items.iter().take_while(|item| is_single(item)).count();
        let is_starless = single == items.len();
        if is_starless && single != columns {
            return Headings::default();
        }
        for (heading, item) in headings.iter_mut().zip(&items[..single]) {
            *heading = of_item(item);
        }
        if !is_starless {
            // A star is any number of columns, so those after the last star are counted from the end.
            let behind = items.iter().rev().take_while(|item| is_single(item));
            for (heading, item) in headings.iter_mut().rev().zip(behind) {
                *heading = of_item(item);
            }
        }
        Headings(headings)
    }

    /// Returns a schema with the headings as names.
    pub fn schema(&self, schema: &SchemaRef) -> SchemaRef {
        if self.0.iter().all(Option::is_none) {
            return Arc::clone(schema);
        }
        let named = |(field, heading): (&Arc<Field>, &Option<String>)| match heading {
            // COUNT(*) and count(*) are one name.
            Some(heading) if !heading.eq_ignore_ascii_case(field.name()) => {
                Arc::new(field.as_ref().clone().with_name(heading))
            }
            _ => Arc::clone(field),
        };
        let fields = schema.fields().iter().zip(&self.0).map(named);
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Returns a batch whose columns have the headings.
    ///
    /// # Errors
    /// The batch has other columns.
    pub fn batch(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        if self.0.iter().all(Option::is_none) {
            return Ok(batch);
        }
        let schema = self.schema(&batch.schema());
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &rows)
    }
}

/// The SELECT that names the columns.
fn select(statement: &DfStatement) -> Option<&Select> {
    let DfStatement::Statement(statement) = statement else {
        return None;
    };
    let Statement::Query(query) = statement.as_ref() else {
        return None;
    };
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::Select(select) => return Some(select),
            SetExpr::SetOperation { left, .. } => left.as_ref(),
            SetExpr::Query(query) => query.body.as_ref(),
            _ => return None,
        };
    }
}

fn is_single(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
    )
}

fn of_item(item: &SelectItem) -> Option<String> {
    let SelectItem::UnnamedExpr(expression) = item else {
        return None;
    };
    let is_column = matches!(
        expression,
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::CompoundFieldAccess { .. }
    );
    (!is_column).then(|| expression.to_string())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;

    use super::*;

    fn of(sql: &str, columns: usize) -> Vec<String> {
        let mut parser = DFParserBuilder::new(sql).build().unwrap();
        let statement = parser.parse_statements().unwrap().pop_front().unwrap();
        let headings = Headings::of(&statement, columns);
        let told = headings.0.into_iter();
        told.map(|heading| heading.unwrap_or_default()).collect()
    }

    #[test]
    fn computed_columns_are_called_as_they_are_written() {
        assert_eq!(
            of("select name || '(', a, b as c, count(*) + 1 from t", 4),
            ["name || '('", "", "", "count(*) + 1"]
        );
        assert_eq!(
            of("select a + 1, *, b - 1 from t", 5),
            ["a + 1", "", "", "", "b - 1"]
        );
        assert_eq!(of("select a::int, t.b from t", 2), ["a::INT", ""]);
        assert_eq!(of("select 1 union all select 2", 1), ["1"]);
        assert!(of("select unnest(x) from t", 3).is_empty());
        assert!(of("explain select 1", 2).is_empty());
    }
}
