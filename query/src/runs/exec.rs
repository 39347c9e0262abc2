//! The operator that reads a table of all recordings. A join's dynamic filters on `run`, as for `run IN (SELECT run
//! FROM runs WHERE ...)`, reach it in time to skip recordings without opening them.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
    StatisticsArgs,
};

use super::RUN;
use super::scan::{Scan, ScanOfRuns};

/// Reads recordings, spread over streams.
#[derive(Clone)]
pub struct RunsExec {
    scan: Arc<Scan>,
    /// The recordings of each stream.
    streams: Vec<Arc<[usize]>>,
    /// Conditions on `run`, which a join may still be computing.
    filters: Arc<[Arc<dyn PhysicalExpr>]>,
    properties: Arc<PlanProperties>,
}

impl RunsExec {
    /// Returns the operator that reads the recordings with these indexes, in this number of streams.
    pub fn new(scan: Arc<Scan>, runs: &[usize], streams: usize) -> Self {
        let of_stream = |stream: usize| runs.iter().copied().skip(stream).step_by(streams);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&scan.schema)),
            Partitioning::UnknownPartitioning(streams),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            streams: (0..streams)
                .map(|stream| of_stream(stream).collect())
                .collect(),
            scan,
            filters: Arc::new([]),
            properties: Arc::new(properties),
        }
    }

    fn is_about_run(&self, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let columns = collect_columns(filter);
        let is_run = |index: usize| {
            let fields = self.scan.schema.fields();
            fields.get(index).is_some_and(|field| field.name() == RUN)
        };
        !columns.is_empty() && columns.iter().all(|column| is_run(column.index()))
    }
}

impl fmt::Debug for RunsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as(DisplayFormatType::Default, f)
    }
}

impl DisplayAs for RunsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs: usize = self.streams.iter().map(|runs| runs.len()).sum();
        write!(f, "RunsExec: table={}, recordings={runs}", self.scan.table)
    }
}

impl ExecutionPlan for RunsExec {
    fn name(&self) -> &str {
        "RunsExec"
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.scan.schema)
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    /// A join computes a condition only for operators that declare it.
    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for filter in self.filters.iter() {
            if f(filter)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, stream: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let runs = Arc::clone(&self.streams[stream]);
        let of_runs = ScanOfRuns::new(Arc::clone(&self.scan), runs, Arc::clone(&self.filters));
        Ok(of_runs.rows())
    }

    /// The small side of a join is read first, and this is never the small side if the other is known.
    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let runs = self.streams.iter().flat_map(|runs| runs.iter());
        let rows: usize = runs.map(|run| self.scan.set.rows(*run)).sum();
        let unknown = Statistics::new_unknown(&self.scan.schema);
        Ok(Arc::new(unknown.with_num_rows(Precision::Inexact(rows))))
    }

    /// Takes conditions on `run` as a reason not to open a recording. The plan above still applies them to the rows.
    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = pushed.parent_filters.into_iter();
        let filters: Vec<_> = filters.map(|pushed| pushed.filter).collect();
        let applied = vec![PushedDown::No; filters.len()];
        let mut all = self.filters.to_vec();
        all.extend(
            filters
                .into_iter()
                .filter(|filter| self.is_about_run(filter)),
        );
        let node = Self {
            filters: all.into(),
            ..self.clone()
        };
        Ok(FilterPushdownPropagation {
            filters: applied,
            updated_node: Some(Arc::new(node)),
        })
    }
}
