//! How a query reads a table of ours: the method `scan` of each, and the plan of rows that are already there.
//!
//! The plans here are made without waiting. With an `async fn` the compiler would prove anew for each method that all
//! expressions of a query can be sent to another thread, which took most of the time of checking this crate.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::physical_plan::ExecutionPlan;

/// The plan of a scan, or the error.
pub type Planned<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn ExecutionPlan>>> + Send + 'a>>;

/// Writes the method `scan` of a table as `async_trait` would write it, given the future of its plan.
macro_rules! scan {
    (|$self:ident, $session:ident, $projection:ident, $filters:ident, $limit:ident| $planned:expr) => {
        fn scan<'table, 'session, 'columns, 'filters, 'planned>(
            &'table $self,
            $session: &'session dyn datafusion::catalog::Session,
            $projection: Option<&'columns Vec<usize>>,
            $filters: &'filters [datafusion::logical_expr::Expr],
            $limit: Option<usize>,
        ) -> $crate::planned::Planned<'planned>
        where
            'table: 'planned,
            'session: 'planned,
            'columns: 'planned,
            'filters: 'planned,
            Self: 'planned,
        {
            Box::pin($planned)
        }
    };
}
pub(crate) use scan;

/// Returns the plan of rows that are already there.
pub fn of_rows(
    rows: RecordBatch,
    schema: &SchemaRef,
    projection: Option<&Vec<usize>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let parts = [vec![rows]];
    let schema = SchemaRef::clone(schema);
    let plan = MemorySourceConfig::try_new_exec(&parts, schema, projection.cloned());
    Ok(plan?)
}
