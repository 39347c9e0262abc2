//! Optimizer rules. Most exploit that everything SQL shows about a function follows from its id.

mod arithmetic;
mod dynamic_filters;
mod id_filter;
mod id_group;
mod late_columns;
mod lookups;

use std::sync::Arc;

use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use arithmetic::CheckArithmetic;
use dynamic_filters::PushUnambiguous;
use id_filter::FilterById;
use id_group::GroupById;
use late_columns::{ComputeLate, KeepLate};

/// After this rule, conditions are next to the columns on which they depend.
const AFTER: &str = "push_down_filter";

/// Returns DataFusion's own rules, with those of this module in their place.
pub fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    let place = rules.iter().position(|rule| rule.name() == AFTER);
    let place = place.expect("DataFusion has a rule that pushes filters down") + 1;
    rules.splice(
        place..place,
        [
            Arc::new(FilterById) as Arc<dyn OptimizerRule + Send + Sync>,
            Arc::new(GroupById),
            Arc::new(ComputeLate),
        ],
    );
    rules.insert(0, Arc::new(CheckArithmetic));
    rules
}

/// DataFusion's rule that moves projections towards the tables.
const PROJECTIONS: &str = "ProjectionPushdown";
/// DataFusion's rule that pushes the filters of running operators to the scans.
const DYNAMIC_FILTERS: &str = "FilterPushdown(Post)";

/// Returns DataFusion's own rules for physical plans, with those of this module in place of its own.
pub fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    for rule in &mut rules {
        if rule.name() == PROJECTIONS {
            *rule = Arc::new(KeepLate::default());
        } else if rule.name() == DYNAMIC_FILTERS {
            *rule = Arc::new(PushUnambiguous::default());
        }
    }
    rules
}

/// The rules that plans of scans need: filters become ones on ids and reach the files, and unused columns are not read.
const OF_SCANS: [&str; 4] = [
    "simplify_expressions",
    "push_down_filter",
    "filter_by_function_id",
    "optimize_projections",
];

/// The same of physical plans, for tables that join or aggregate.
const PHYSICAL_OF_SCANS: [&str; 4] = [
    "join_selection",
    "FilterPushdown",
    "EnsureRequirements",
    "ProjectionPushdown",
];

/// Returns the rules for a scan of one of many recordings. A query may plan a thousand such scans, so planning must be
/// quick.
pub fn rules_of_scans() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = optimizer_rules();
    rules.retain(|rule| OF_SCANS.contains(&rule.name()));
    assert_eq!(rules.len(), OF_SCANS.len(), "DataFusion has these rules");
    rules
}

/// As [`rules_of_scans`], of physical plans.
pub fn physical_rules_of_scans() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.retain(|rule| PHYSICAL_OF_SCANS.contains(&rule.name()));
    assert!(
        rules.len() >= PHYSICAL_OF_SCANS.len(),
        "DataFusion has these rules"
    );
    rules
}
