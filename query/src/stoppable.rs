//! Plans that can be stopped anywhere: a computation is aborted where it waits, and one whose rows come from rows in memory never does.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// Has the nodes that make many rows of few pause between batches: joins and recursive questions. DataFusion itself has only those do so
/// that read tables, which such a node may not do for hours.
///
/// # Errors
/// The plan cannot be changed.
pub fn stoppable(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let pausing = plan.transform_up(|node| {
        Ok(match is_multiplying(node.as_ref()) {
            true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as _),
            false => Transformed::no(node),
        })
    })?;
    Ok(pausing.data)
}

fn is_multiplying(node: &dyn ExecutionPlan) -> bool {
    node.name().contains("Join") || node.name().contains("Recursive")
}
