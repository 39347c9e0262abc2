//! Optimizer rules. They use that everything SQL shows of a function follows from its id.

mod id_filter;
mod id_group;
mod lookups;

use std::sync::Arc;

use datafusion::optimizer::{Optimizer, OptimizerRule};

use id_filter::FilterById;
use id_group::GroupById;

/// After this rule, conditions are next to the columns on which they depend.
const AFTER: &str = "push_down_filter";

/// Returns DataFusion's own rules, with those of this module at their place.
pub fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    let place = rules.iter().position(|rule| rule.name() == AFTER);
    let place = place.expect("DataFusion has a rule that pushes filters down") + 1;
    rules.splice(
        place..place,
        [
            Arc::new(FilterById) as Arc<dyn OptimizerRule + Send + Sync>,
            Arc::new(GroupById),
        ],
    );
    rules
}
