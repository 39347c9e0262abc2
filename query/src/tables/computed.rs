//! A table whose rows are computed when a query reads it, so that a damaged file fails no other query.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::datasource::TableType;

use crate::planned::{of_rows, scan};

/// Returns whether a query reads a column. Columns that no query reads may be null.
pub type Wants<'w> = &'w dyn Fn(&str) -> bool;

type Rows = Box<dyn Fn(Wants<'_>) -> Result<RecordBatch> + Send + Sync>;

/// A table and how its rows are computed.
pub struct Computed {
    schema: SchemaRef,
    rows: Rows,
}

impl Computed {
    /// Returns the table that `rows` computes, with the columns of `schema`.
    pub fn new(
        schema: SchemaRef,
        rows: impl Fn() -> Result<RecordBatch> + Send + Sync + 'static,
    ) -> Self {
        Self::of_columns(schema, move |_| rows())
    }

    /// The same where some columns are computed only if they are read.
    pub fn of_columns(
        schema: SchemaRef,
        rows: impl Fn(Wants<'_>) -> Result<RecordBatch> + Send + Sync + 'static,
    ) -> Self {
        Self {
            schema,
            rows: Box::new(rows),
        }
    }
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Computed").field(&self.schema).finish()
    }
}

impl TableProvider for Computed {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    scan!(|self, _state, projection, _filters, _limit| {
        let wants = |name: &str| {
            let is_it = |column: &usize| self.schema.field(*column).name() == name;
            projection.is_none_or(|columns| columns.iter().any(is_it))
        };
        let rows = (self.rows)(&wants);
        ready(rows.and_then(|rows| of_rows(rows, &self.schema, projection)))
    });
}
