//! The operator that runs a recording again. EXPLAIN shows which filters were pushed down to it, and how it finds the
//! remaining rows.

use std::fmt;
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::stream;

use super::stretch::Stretch;
use super::table::Kind;
use super::wanted::Wanted;
use crate::state::States;

/// The metric for the progress of such a run: the instruction.
pub const INSTRUCTIONS: &str = "instruction";

/// Runs a recording again.
#[derive(Clone)]
pub struct RunAgain {
    name: &'static str,
    asked: Asked,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// What is asked.
#[derive(Clone)]
pub struct Asked {
    pub kind: Kind,
    pub wanted: Wanted,
    /// The columns that are read.
    pub schema: SchemaRef,
    pub states: States,
}

impl RunAgain {
    /// Returns the operator for a table and the part that the filters select.
    pub fn new(
        (kind, name): (Kind, &'static str),
        schema: &SchemaRef,
        projection: Option<&Vec<usize>>,
        wanted: Wanted,
        states: &States,
    ) -> Result<RunAgain> {
        let schema = match projection {
            Some(columns) => Arc::new(schema.project(columns)?),
            None => Arc::clone(schema),
        };
        let mut properties = EquivalenceProperties::new(Arc::clone(&schema));
        if schema.column_with_name("position").is_some() {
            let ascending = SortOptions {
                descending: false,
                nulls_first: false,
            };
            let sort = PhysicalSortExpr::new(col("position", &schema)?, ascending);
            properties.add_orderings(LexOrdering::new([sort]));
        }
        let properties = PlanProperties::new(
            properties,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(RunAgain {
            name,
            asked: Asked {
                kind,
                wanted,
                schema,
                states: states.clone(),
            },
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

impl fmt::Debug for RunAgain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as(DisplayFormatType::Default, f)
    }
}

impl DisplayAs for RunAgain {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Asked { kind, wanted, .. } = &self.asked;
        let way = match self.asked.states.timeline() {
            Ok(timeline) => super::stretch::Way::of(timeline, *kind, wanted).describe(),
            Err(_) => "not at all: the recording cannot be read".to_owned(),
        };
        write!(
            f,
            "RunAgain: table={}, pushed down: {wanted}; found by {way}",
            self.name
        )
    }
}

impl ExecutionPlan for RunAgain {
    fn name(&self) -> &str {
        "RunAgain"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
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

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let asked = self.asked.clone();
        let reached = MetricBuilder::new(&self.metrics).global_gauge(INSTRUCTIONS);
        let batches = stream::try_unfold(None, move |stretch: Option<Stretch>| {
            let (asked, reached) = (asked.clone(), reached.clone());
            async move {
                // The reader may stop here.
                tokio::task::yield_now().await;
                let mut stretch = match stretch {
                    Some(stretch) => stretch,
                    None => Stretch::begin(asked)?,
                };
                let batch = stretch.rows()?;
                reached.set(usize::try_from(stretch.reached()).unwrap_or(usize::MAX));
                Ok::<_, DataFusionError>(batch.map(|batch| (batch, Some(stretch))))
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.asked.schema),
            batches,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
