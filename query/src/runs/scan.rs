//! Reads a table of one recording after the other: each is opened, scanned with the query's own filters, and closed.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringViewArray, new_null_array,
};
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, col, lit};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{SendableRecordBatchStream, execute_stream};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::RUN;
use super::set::{Opened, Set};
use crate::tables::runs_again;

/// What a scan reads of each recording.
pub struct Scan {
    /// The table.
    pub table: &'static str,
    /// The columns of the answer, including `run` if it is requested.
    pub schema: SchemaRef,
    /// The conditions on a row.
    pub filters: Vec<Expr>,
    /// Most rows that are needed.
    pub limit: Option<usize>,
    /// All recordings.
    pub set: Arc<Set>,
    /// Plans and runs the query on one recording.
    pub state: SessionState,
}

/// The scan of some recordings, one after the other.
pub struct ScanOfRuns {
    scan: Arc<Scan>,
    runs: Arc<[usize]>,
    filters: Arc<[Arc<dyn PhysicalExpr>]>,
}

impl ScanOfRuns {
    /// Returns the scan of the recordings with these indexes. `filters` are conditions on `run`: a recording for which
    /// one does not hold, when its turn comes, is not opened.
    pub fn new(scan: Arc<Scan>, runs: Arc<[usize]>, filters: Arc<[Arc<dyn PhysicalExpr>]>) -> Self {
        Self {
            scan,
            runs,
            filters,
        }
    }

    /// Returns the rows.
    pub fn rows(self) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.scan.schema);
        let all = Arc::new(self);
        let rows = stream::iter(0..all.runs.len())
            .then(move |at| {
                let all = Arc::clone(&all);
                async move {
                    let run = all.runs[at];
                    match all.is_wanted(run)? {
                        true => Arc::clone(&all.scan).rows(run).await,
                        false => Ok(stream::empty().boxed()),
                    }
                }
            })
            .try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    /// Returns whether the conditions on `run` hold, as far as they are known by now.
    fn is_wanted(&self, run: usize) -> Result<bool> {
        if self.filters.is_empty() {
            return Ok(true);
        }
        let name = &self.scan.set.runs()[run].name;
        let fields = self.scan.schema.fields().iter();
        let columns = fields.map(|field| match field.name() == RUN {
            true => Arc::new(StringViewArray::from_iter_values([name])) as ArrayRef,
            false => new_null_array(field.data_type(), 1),
        });
        let row = RecordBatch::try_new(Arc::clone(&self.scan.schema), columns.collect())?;
        for filter in self.filters.iter() {
            let holds = filter.evaluate(&row)?.into_array(1)?;
            let holds = holds.as_boolean();
            if holds.is_null(0) || !holds.value(0) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Scan {
    /// Returns the rows of one recording; none, and a warning, if it cannot be read.
    async fn rows(self: Arc<Self>, run: usize) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let settings = &self.set.runs()[run].summary.manifest().settings;
        if runs_again(self.table) && !settings.has_every_instruction() {
            return Ok(stream::empty().boxed());
        }
        let opened = self.set.open(run);
        let opened = opened.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let Some(opened) = opened else {
            return Ok(stream::empty().boxed());
        };
        let plan = self.plan(run, &opened)?;
        let plan = self.state.create_physical_plan(&plan).await?;
        let rows = execute_stream(plan, self.state.task_ctx())?;
        let rows = rows.map(move |batch| {
            _ = &opened; // Its files are needed as long as rows come.
            match batch {
                Ok(batch) => self.with_run(run, &batch).map(Some),
                Err(error) => self.set.cut(run, error).map(|()| None),
            }
        });
        Ok(rows.try_filter_map(async |batch| Ok(batch)).boxed())
    }

    /// Returns the plan of the requested columns except `run`; of a number if there are none, because rows are
    /// counted.
    fn plan(&self, run: usize, opened: &Opened) -> Result<LogicalPlan> {
        let table = opened.table(self.table)?;
        let has = table.schema();
        let mut plan = LogicalPlanBuilder::scan(self.table, provider_as_source(table), None)?;
        for filter in &self.filters {
            plan = plan.filter(self.for_run(run, filter.clone())?)?;
        }
        let wanted = self.schema.fields().iter();
        let wanted = wanted.filter(|field| field.name() != RUN);
        let mut columns: Vec<Expr> = wanted
            .map(|field| match has.field_with_name(field.name()) {
                Ok(own) if own.data_type() == field.data_type() => col(field.name()),
                Ok(_) => cast(col(field.name()), field.data_type().clone()).alias(field.name()),
                Err(_) => {
                    let null = ScalarValue::try_from(field.data_type());
                    lit(null.unwrap_or(ScalarValue::Null)).alias(field.name())
                }
            })
            .collect();
        if columns.is_empty() {
            columns.push(lit(0i32).alias(RUN));
        }
        let plan = plan.project(columns)?;
        match self.limit {
            Some(rows) => plan.limit(0, Some(rows))?.build(),
            None => plan.build(),
        }
    }

    /// Puts the recording's name in place of the column.
    fn for_run(&self, run: usize, filter: Expr) -> Result<Expr> {
        let name = ScalarValue::Utf8View(Some(self.set.runs()[run].name.clone()));
        let replaced = filter.transform_up(|node| match node {
            Expr::Column(column) if column.name == RUN => Ok(Transformed::yes(lit(name.clone()))),
            node => Ok(Transformed::no(node)),
        })?;
        Ok(replaced.data)
    }

    /// Returns the columns of the answer.
    fn with_run(&self, run: usize, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let mut own = batch.columns().iter();
        let name = &self.set.runs()[run].name;
        let fields = self.schema.fields().iter();
        let columns = fields.map(|field| {
            if field.name() == RUN {
                let names = std::iter::repeat_n(name, rows);
                return Ok(Arc::new(StringViewArray::from_iter_values(names)) as ArrayRef);
            }
            let column = own.next().expect("the plan has the other columns");
            // A plan may have texts in another form than the table says.
            match column.data_type() == field.data_type() {
                true => Ok(Arc::clone(column)),
                false => arrow::compute::cast(column, field.data_type()),
            }
        });
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns,
            &options,
        )?)
    }
}
