//! Defines the tables of SQL as plans over sealed files and definitions.

mod calls;
mod computed;
mod doc;
mod events;
mod exceptions;
mod functions;
mod gaps;
mod logpoints;
mod modules;
mod notes;
mod on_demand;
mod output;
mod pauses;
mod probes;
pub mod runs;
mod sources;
mod threads;
mod writes;

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::common::Result;
use datafusion::datasource::{MemTable, ViewTable};
use datafusion::logical_expr::LogicalPlan;

pub use doc::TableDoc;
use on_demand::OnDemand;
pub use sources::Sources;

/// Describes all tables, the most used first.
pub const TABLES: &[TableDoc] = &[
    calls::DOC,
    events::DOC,
    functions::DOC,
    modules::DOC,
    threads::DOC,
    output::DOC,
    gaps::DOC,
    probes::DOC,
    pauses::DOC,
    logpoints::DOC,
    writes::DOC,
    exceptions::DOC,
    notes::DOC,
    runs::DOC,
];

/// A table in DataFusion's form.
pub type Provider = Arc<dyn TableProvider>;

/// Returns the tables by name.
pub fn providers(sources: &Sources) -> Result<Vec<(&'static str, Provider)>> {
    Ok(vec![
        (calls::DOC.name, view(calls::plan(sources)?)),
        (events::DOC.name, view(events::plan(sources)?)),
        (
            functions::DOC.name,
            Arc::new(OnDemand::new(functions::plans(sources)?)),
        ),
        (modules::DOC.name, in_memory(modules::rows(sources)?)?),
        (
            threads::DOC.name,
            Arc::new(OnDemand::new(threads::plans(sources)?)),
        ),
        (output::DOC.name, view(output::plan(sources)?)),
        (gaps::DOC.name, view(gaps::plan(sources)?)),
        (
            probes::DOC.name,
            Arc::new(OnDemand::new(probes::plans(sources)?)),
        ),
        (pauses::DOC.name, view(pauses::plan(sources)?)),
        (logpoints::DOC.name, view(logpoints::plan(sources)?)),
        (writes::DOC.name, view(writes::plan(sources)?)),
        (exceptions::DOC.name, view(exceptions::plan(sources)?)),
        (notes::DOC.name, notes::table(sources)?),
        (runs::DOC.name, runs::of_one(&sources.recording)?),
    ])
}

fn view(plan: LogicalPlan) -> Provider {
    Arc::new(ViewTable::new(plan, None))
}

fn in_memory(rows: RecordBatch) -> Result<Provider> {
    Ok(Arc::new(MemTable::try_new(
        rows.schema(),
        vec![vec![rows]],
    )?))
}
