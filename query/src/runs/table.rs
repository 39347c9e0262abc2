//! A table of all recordings: the filters on `run` decide which of them a scan reads; these are spread over the cores.

use std::future::ready;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, internal_datafusion_err};
use datafusion::datasource::TableType;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use super::RUN;
use super::exec::RunsExec;
use super::scan::Scan;
use super::set::Set;
use crate::planned::scan;
use crate::rules::{physical_rules_of_scans, rules_of_scans};

/// A table of all recordings.
#[derive(Debug)]
pub struct RunsTable {
    name: &'static str,
    schema: SchemaRef,
    set: Arc<Set>,
}

impl RunsTable {
    /// Returns the table `name` of all recordings in `set`; `schema` has `run` and then its columns.
    pub fn new(name: &'static str, schema: SchemaRef, set: Arc<Set>) -> Self {
        Self { name, schema, set }
    }

    fn planned(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let state = session.as_any().downcast_ref::<SessionState>();
        let state = state.ok_or_else(|| internal_datafusion_err!("a session has another state"))?;
        let filters: Vec<Expr> = filters
            .iter()
            .map(|filter| unqualified(filter.clone()))
            .collect::<Result<_>>()?;
        let (of_run, others) = filters.into_iter().partition(is_about_run);
        let runs = self.selected(session, of_run)?;
        let cores = state.config().target_partitions().max(1);
        let streams = cores.min(runs.len()).max(1);
        let config = state.config().clone();
        let mut config = config.with_target_partitions((cores / streams).max(1));
        config.options_mut().optimizer.max_passes = 1;
        let state = SessionStateBuilder::new_from_existing(state.clone())
            .with_config(config)
            .with_optimizer_rules(rules_of_scans())
            .with_physical_optimizer_rules(physical_rules_of_scans());
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        let scan = Arc::new(Scan {
            table: self.name,
            schema,
            filters: others,
            limit,
            set: Arc::clone(&self.set),
            state: state.build(),
        });
        Ok(Arc::new(RunsExec::new(scan, &runs, streams)))
    }

    /// Returns the indexes of the recordings for which all of `filters` hold; these depend on `run` alone.
    fn selected(&self, session: &dyn Session, filters: Vec<Expr>) -> Result<Vec<usize>> {
        let runs = self.set.runs();
        let names: StringViewArray = runs.iter().map(|run| Some(&*run.name)).collect();
        let field = Field::new(RUN, DataType::Utf8View, false);
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(names)])?;
        let schema = DFSchema::try_from(schema)?;
        let mut selected: Vec<usize> = (0..runs.len()).collect();
        for filter in filters {
            let filter = session.create_physical_expr(filter, &schema)?;
            let holds = filter.evaluate(&batch)?.into_array(runs.len())?;
            let holds = holds.as_boolean();
            selected.retain(|index| holds.is_valid(*index) && holds.value(*index));
        }
        Ok(selected)
    }
}

/// Returns the expression with its columns named by their name alone.
fn unqualified(filter: Expr) -> Result<Expr> {
    let plain = filter.transform_up(|node| match node {
        Expr::Column(column) => Ok(Transformed::yes(Expr::Column(Column::from_name(
            column.name,
        )))),
        node => Ok(Transformed::no(node)),
    })?;
    Ok(plain.data)
}

/// Returns whether a condition depends on the recording's name and on nothing else.
fn is_about_run(filter: &Expr) -> bool {
    let columns = filter.column_refs();
    !columns.is_empty() && columns.iter().all(|column| column.name == RUN)
}

impl TableProvider for RunsTable {
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
        Ok(vec![TableProviderFilterPushDown::Exact; filters.len()])
    }

    scan!(|self, state, projection, filters, limit| ready(
        self.planned(state, projection, filters, limit)
    ));
}
