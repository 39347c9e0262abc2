//! Defines the tables of SQL as plans over sealed files and definitions.

mod allocations;
mod calls;
mod computed;
mod doc;
mod events;
mod exceptions;
mod files;
mod folded;
mod followed;
mod functions;
mod gaps;
mod instructions;
mod locks;
mod logpoints;
mod modules;
mod notes;
mod on_demand;
mod output;
mod pauses;
mod probes;
mod processes;
mod report;
pub mod runs;
mod sources;
mod syscalls;
mod threads;
mod writes;

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, plan_err};
use datafusion::datasource::{MemTable, ViewTable};
use datafusion::logical_expr::LogicalPlan;

use crate::instructions::Kind;

pub use doc::TableDoc;
pub use followed::{Followed, processes_beside};
use on_demand::OnDemand;
pub use sources::Sources;

/// Describes all tables, the most used first.
pub const TABLES: &[TableDoc] = &[
    calls::DOC,
    events::DOC,
    report::DOC,
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
    syscalls::DOC,
    files::DOC,
    processes::DOC,
    allocations::DOC,
    locks::DOC,
    instructions::INSTRUCTIONS,
    instructions::LINES,
    instructions::MEMORY_WRITES,
    instructions::MEMORY_READS,
    notes::DOC,
    runs::DOC,
];

/// Returns whether a table is computed by running a recording of every instruction again. Other recordings have no
/// such table.
#[must_use]
pub fn runs_again(table: &str) -> bool {
    let all = [
        &instructions::INSTRUCTIONS,
        &instructions::LINES,
        &instructions::MEMORY_WRITES,
        &instructions::MEMORY_READS,
    ];
    all.into_iter().any(|one| one.name == table)
}

/// A table in DataFusion's form.
pub type Provider = Arc<dyn TableProvider>;

/// Returns the tables by name.
pub fn providers(sources: &Sources) -> Result<Vec<(&'static str, Provider)>> {
    let names = TABLES.iter().map(|table| table.name);
    names
        .map(|name| Ok((name, provider(name, sources)?)))
        .collect()
}

/// Returns one of the tables.
///
/// # Errors
/// There is none of that name, or it cannot be planned.
pub fn provider(name: &str, sources: &Sources) -> Result<Provider> {
    let on_demand = |plans| Arc::new(OnDemand::new(plans)) as Provider;
    Ok(match name {
        _ if name == calls::DOC.name => view(calls::plan(sources)?),
        _ if name == events::DOC.name => view(events::plan(sources)?),
        _ if name == functions::DOC.name => on_demand(functions::plans(sources)?),
        _ if name == report::DOC.name => Arc::new(report::table(sources)),
        _ if name == modules::DOC.name => in_memory(modules::rows(sources)?)?,
        _ if name == threads::DOC.name => on_demand(threads::plans(sources)?),
        _ if name == output::DOC.name => view(output::plan(sources)?),
        _ if name == gaps::DOC.name => view(gaps::plan(sources)?),
        _ if name == probes::DOC.name => on_demand(probes::plans(sources)?),
        _ if name == pauses::DOC.name => view(pauses::plan(sources)?),
        _ if name == logpoints::DOC.name => view(logpoints::plan(sources)?),
        _ if name == writes::DOC.name => view(writes::plan(sources)?),
        _ if name == exceptions::DOC.name => view(exceptions::plan(sources)?),
        _ if name == syscalls::DOC.name => view(syscalls::plan(sources)?),
        _ if name == files::DOC.name => files::table(sources)?,
        _ if name == processes::DOC.name => processes::table(sources)?,
        _ if name == allocations::DOC.name => Arc::new(allocations::table(sources)),
        _ if name == locks::DOC.name => Arc::new(locks::table(sources)),
        _ if name == instructions::INSTRUCTIONS.name => {
            sources.run_again(Kind::Instructions, &instructions::INSTRUCTIONS)
        }
        _ if name == instructions::LINES.name => {
            sources.run_again(Kind::Lines, &instructions::LINES)
        }
        _ if name == instructions::MEMORY_WRITES.name => {
            sources.run_again(Kind::Writes, &instructions::MEMORY_WRITES)
        }
        _ if name == instructions::MEMORY_READS.name => {
            sources.run_again(Kind::Reads, &instructions::MEMORY_READS)
        }
        _ if name == notes::DOC.name => notes::table(sources)?,
        _ if name == runs::DOC.name => runs::of_one(&sources.recording)?,
        _ => return plan_err!("there is no table {name}"),
    })
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
