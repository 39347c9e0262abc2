//! Sets DataFusion up for recordings: their tables, our functions and rules, bounded memory and no other data.

use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{FunctionRegistry, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::functions::{aliases, avg, cast_as, label, sum, text};
use crate::options::Options;
use crate::question::{FloatComparisons, SignedDifferences};
use crate::rules::{optimizer_rules, physical_rules};
use crate::tables::Provider;

/// Name of the catalog that holds the recording's tables.
const CATALOG: &str = "recording";
/// Name of the schema that holds them.
const SCHEMA: &str = "main";
/// Number of the largest consumers that a message about memory names.
const NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::new(3).expect("three is not zero");

/// Each core's sort keeps at most this part of its share of the memory for merging what it spilled.
const MERGE_SHARE: usize = 8;

/// Memory per core and row of a batch, in bytes: with less memory, batches are smaller, so that several fit for
/// merging.
const MEMORY_PER_ROW_BYTES: usize = 16 << 10;
/// Rows of a batch.
const BATCH_ROWS: std::ops::RangeInclusive<usize> = 256..=8192;

/// Returns a context with these tables and nothing else.
pub fn context(tables: Vec<(&'static str, Provider)>, options: &Options) -> Result<SessionContext> {
    let pool = TrackConsumersPool::new(FairSpillPool::new(options.memory_bytes), NAMED_CONSUMERS);
    let spill = DiskManagerMode::Directories(vec![options.temp_dir.clone()]);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(spill))
        .build_arc()?;
    let state = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config(options))
        .with_runtime_env(runtime)
        .with_optimizer_rules(optimizer_rules())
        .with_physical_optimizer_rules(physical_rules())
        .build();
    let mut context = SessionContext::new_with_state(state);
    context.register_expr_planner(Arc::new(SignedDifferences))?;
    context.register_expr_planner(Arc::new(FloatComparisons))?;
    context.register_catalog(CATALOG, catalog(tables)?);
    context.register_udf(label::function());
    context.register_udf(cast_as::function());
    context.register_udaf(sum::function());
    context.register_udaf(avg::function());
    context.register_udaf(aliases::variance());
    context.register_udf(aliases::sign());
    for function in text::public_functions() {
        context.register_udf(function);
    }
    Ok(context)
}

fn catalog(tables: Vec<(&'static str, Provider)>) -> Result<Arc<dyn CatalogProvider>> {
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(SCHEMA, Arc::new(Tables(tables)))?;
    Ok(Arc::new(catalog))
}

/// The recording's tables in the order of their documentation; the set is fixed.
#[derive(Debug)]
struct Tables(Vec<(&'static str, Provider)>);

#[async_trait]
impl SchemaProvider for Tables {
    fn table_names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        Ok(found.map(|(_, table)| Arc::clone(table)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == name)
    }
}

fn config(options: &Options) -> SessionConfig {
    let memory_per_core = options.memory_bytes / options.cores.max(1);
    let batch_rows = memory_per_core / MEMORY_PER_ROW_BYTES;
    let mut config = SessionConfig::new()
        .with_batch_size(batch_rows.clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end()))
        .with_target_partitions(options.cores)
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, SCHEMA);
    let settings = config.options_mut();
    settings.sql_parser.collect_spans = true;
    let merge_bytes = memory_per_core / MERGE_SHARE;
    let usual_bytes = settings.execution.sort_spill_reservation_bytes;
    settings.execution.sort_spill_reservation_bytes = usual_bytes.min(merge_bytes);
    settings.optimizer.repartition_file_scans = false; // Parts are cut into morsels already.
    settings.execution.parquet.bloom_filter_on_read = false;
    config
}
