//! A table whose last column is computed only for queries that name it, because it needs every call.

use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::datasource::{TableType, ViewTable};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;

use crate::planned::scan;

/// Two plans of one table: `whole` has one column more than `cheap`, at its end.
#[derive(Debug)]
pub struct OnDemand {
    cheap: ViewTable,
    whole: ViewTable,
}

impl OnDemand {
    /// Returns the table that `whole` computes.
    pub fn new((cheap, whole): (LogicalPlan, LogicalPlan)) -> Self {
        Self {
            cheap: ViewTable::new(cheap, None),
            whole: ViewTable::new(whole, None),
        }
    }
}

impl TableProvider for OnDemand {
    fn schema(&self) -> SchemaRef {
        self.whole.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    scan!(|self, state, projection, filters, limit| {
        let expensive = self.whole.schema().fields().len() - 1;
        let cheap = projection.is_some_and(|columns| !columns.contains(&expensive));
        let plan = if cheap { &self.cheap } else { &self.whole };
        async move {
            let Some(of_question) = state.as_any().downcast_ref::<SessionState>() else {
                return plan.scan(state, projection, filters, limit).await;
            };
            // The query plans the result again, and DataFusion does not swap the sides of a join that already has such a
            // filter.
            let mut own = of_question.clone();
            let optimizer = &mut own.config_mut().options_mut().optimizer;
            optimizer.enable_join_dynamic_filter_pushdown = false;
            plan.scan(&own, projection, filters, limit).await
        }
    });
}
