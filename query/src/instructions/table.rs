//! The tables, and which of a query's filters they understand.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use debuginfo::Diagnostic;

use super::exec::RunAgain;
use super::wanted::Wanted;
use crate::planned::scan;
use crate::state::{States, told};
use crate::tables::TableDoc;

/// Which of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One row for each instruction.
    Instructions,
    /// One row each time that a thread begins a line.
    Lines,
    /// One row for each write to memory.
    Writes,
    /// One row for each read.
    Reads,
}

/// A table.
struct Table {
    kind: Kind,
    name: &'static str,
    schema: SchemaRef,
    /// Every instruction is recorded.
    is_full: bool,
    states: States,
}

/// Returns the table of this kind.
pub fn table(kind: Kind, doc: &TableDoc, is_full: bool, states: &States) -> Arc<dyn TableProvider> {
    Arc::new(Table {
        kind,
        name: doc.name,
        schema: schema(doc),
        is_full,
        states: states.clone(),
    })
}

fn schema(doc: &TableDoc) -> SchemaRef {
    let field = |name: &str| match name {
        "function" | "file" | "text" => Field::new(name, DataType::Utf8View, true),
        "old" | "new" | "value" => Field::new(name, DataType::Binary, true),
        "line" => Field::new(name, DataType::Int64, true),
        "pc" => Field::new(name, DataType::Int64, true),
        "tid" => Field::new(name, DataType::Int32, false),
        _ => Field::new(name, DataType::Int64, false),
    };
    let fields = doc.columns.iter().map(|(name, _)| field(name));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

impl Table {
    fn wanted(&self, filters: &[Expr]) -> Wanted {
        let mut wanted = Wanted::default();
        for filter in filters {
            wanted.take(filter);
        }
        if self.kind == Kind::Instructions {
            // The address is that of the code.
            wanted.pc = std::mem::take(&mut wanted.addr);
        }
        wanted
    }

    fn planned(
        &self,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !self.is_full {
            let message = format!("{} needs a recording of every instruction", self.name);
            return Err(told(
                Diagnostic::new(message).with_hint("record it: hindsight record --full -- PROGRAM"),
            ));
        }
        let wanted = self.wanted(filters);
        let plan = RunAgain::new(
            (self.kind, self.name),
            &self.schema,
            projection,
            wanted,
            &self.states,
        )?;
        Ok(Arc::new(plan))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Table").field(&self.name).finish()
    }
}

impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let understood = |filter: &&Expr| match Wanted::default().take(filter) {
            // The rows are filtered anyway.
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(understood).collect())
    }

    scan!(|self, _state, projection, filters, _limit| ready(self.planned(projection, filters)));
}
