//! A table whose rows are computed from all rows of a plan, when a query reads it.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::{ExecutionPlan, collect};

use crate::planned::Planned;

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

impl Folded {
    fn of(
        &self,
        batches: &[RecordBatch],
        projection: Option<&Vec<usize>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let parts = [vec![(self.fold)(batches, &self.schema)?]];
        let schema = SchemaRef::clone(&self.schema);
        let plan = MemorySourceConfig::try_new_exec(&parts, schema, projection.cloned());
        Ok(plan? as Arc<dyn ExecutionPlan>)
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

    fn scan<'table, 'session, 'columns, 'filters, 'planned>(
        &'table self,
        state: &'session dyn Session,
        projection: Option<&'columns Vec<usize>>,
        _filters: &'filters [Expr],
        _limit: Option<usize>,
    ) -> Planned<'planned>
    where
        'table: 'planned,
        'session: 'planned,
        'columns: 'planned,
        'filters: 'planned,
        Self: 'planned,
    {
        let planned = async move {
            let plan = state.create_physical_plan(&self.input).await?;
            let batches = collect(plan, state.task_ctx()).await?;
            self.of(&batches, projection)
        };
        Box::pin(planned)
    }
}
