//! A table whose rows are computed from all rows of a plan, when a query reads it.

use std::fmt;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;

use crate::planned::{of_rows, scan};

/// Computes the rows of a table from all rows of its plan.
type Fold = dyn Fn(&[RecordBatch], &SchemaRef) -> Result<RecordBatch> + Send + Sync;

/// A table, the plan whose rows it needs, and how its own rows are computed from them.
pub struct Folded {
    schema: SchemaRef,
    input: LogicalPlan,
    fold: Box<Fold>,
}

impl Folded {
    /// Returns the table with the columns of `schema` that `fold` computes from the rows of `input`, in no particular
    /// order.
    pub fn new(
        schema: SchemaRef,
        input: LogicalPlan,
        fold: impl Fn(&[RecordBatch], &SchemaRef) -> Result<RecordBatch> + Send + Sync + 'static,
    ) -> Self {
        Self {
            schema,
            input,
            fold: Box::new(fold),
        }
    }
}

impl fmt::Debug for Folded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Folded").field(&self.schema).finish()
    }
}

impl TableProvider for Folded {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    scan!(|self, state, projection, _filters, _limit| async move {
        let plan = state.create_physical_plan(&self.input).await?;
        let batches = collect(plan, state.task_ctx()).await?;
        let rows = (self.fold)(&batches, &self.schema)?;
        of_rows(rows, &self.schema, projection)
    });
}
