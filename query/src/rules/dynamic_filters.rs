//! Filters that a join, a sort with LIMIT or an aggregate finds while it runs, and that scans below it use.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::ExecutionPlan;

/// The engine's rule that pushes such filters to the scans. It looks their columns up by name alone: where a node has
/// two columns of one name, as a join of a table with itself has, the filter may reach the other one and lose rows.
/// Nothing is pushed then.
#[derive(Debug)]
pub struct PushUnambiguous(FilterPushdown);

impl Default for PushUnambiguous {
    fn default() -> Self {
        Self(FilterPushdown::new_post_optimization())
    }
}

impl PhysicalOptimizerRule for PushUnambiguous {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match plan.exists(|node| Ok(has_equal_names(node)))? {
            true => Ok(plan),
            false => self.0.optimize(plan, config),
        }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

fn has_equal_names(node: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = node.schema();
    let mut names = HashSet::new();
    let mut fields = schema.fields().iter();
    fields.any(|field| !names.insert(field.name()))
}
