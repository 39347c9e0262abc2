//! Presents the sealed files of one kind as a DataFusion table with their physical columns.

use std::future::ready;
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{Result, Statistics};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;

use super::file::OpenedPart;
use super::morsel::{morsels, statistics};
use super::reader::PartReaders;
use crate::planned::scan;

/// A scan of at least this many columns filters while it decodes: in the later columns, pages without a selected row
/// are not decoded. A scan of the filter's own column has no later ones, and noting the selected rows takes longer than
/// decoding.
const FILTERED_COLUMNS: usize = 2;

/// All sealed files of one kind, in order.
#[derive(Debug)]
pub struct PartsTable {
    schema: SchemaRef,
    sorted_by: Option<&'static str>,
    morsels: Vec<PartitionedFile>,
    statistics: Statistics,
}

impl PartsTable {
    /// Returns a table of consecutive `parts`, in the order of the column `sorted_by`, nulls last.
    pub fn new(schema: SchemaRef, parts: &[OpenedPart], sorted_by: Option<&'static str>) -> Self {
        let groups: Vec<_> = parts
            .iter()
            .flat_map(|part| part.footer.row_groups().iter().cloned())
            .collect();
        let mut statistics = statistics(&schema, &groups);
        if groups.is_empty() {
            statistics.num_rows = Precision::Exact(0);
        }
        Self {
            morsels: parts
                .iter()
                .flat_map(|part| morsels(part, &schema))
                .collect(),
            schema,
            sorted_by,
            statistics,
        }
    }

    /// Distributes the morsels over `partitions` groups of about equal rows, in order.
    fn groups(&self, partitions: usize) -> Vec<FileGroup> {
        let total = rows_of(&self.morsels).max(1);
        let mut groups: Vec<Vec<PartitionedFile>> = vec![Vec::new(); partitions.max(1)];
        let mut before = 0;
        for morsel in &self.morsels {
            let index = before * groups.len() / total;
            groups[index].push(morsel.clone());
            before += rows_of(std::slice::from_ref(morsel));
        }
        groups.retain(|group| !group.is_empty());
        if groups.is_empty() {
            groups.push(Vec::new());
        }
        groups.into_iter().map(FileGroup::new).collect()
    }

    fn ordering(&self) -> Result<Vec<LexOrdering>> {
        let Some(name) = self.sorted_by else {
            return Ok(Vec::new());
        };
        let options = SortOptions {
            descending: false,
            nulls_first: false,
        };
        let sort = PhysicalSortExpr::new(col(name, &self.schema)?, options);
        Ok(LexOrdering::new([sort]).into_iter().collect())
    }

    fn planned(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = state.default_table_options().parquet;
        let columns = projection.map_or(self.schema.fields().len(), Vec::len);
        let source = ParquetSource::new(Arc::clone(&self.schema))
            .with_table_parquet_options(options)
            .with_pushdown_filters(columns >= FILTERED_COLUMNS)
            .with_parquet_file_reader_factory(Arc::new(PartReaders));
        let groups = self.groups(state.config().target_partitions());
        let config =
            FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
                .with_file_groups(groups)
                .with_statistics(self.statistics.clone())
                .with_output_ordering(self.ordering()?)
                .with_projection_indices(projection.cloned())?
                .with_limit(limit)
                .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

fn rows_of(morsels: &[PartitionedFile]) -> usize {
    let rows = |morsel: &PartitionedFile| match &morsel.statistics {
        Some(statistics) => *statistics.num_rows.get_value().unwrap_or(&0),
        None => 0,
    };
    morsels.iter().map(rows).sum()
}

impl TableProvider for PartsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.statistics.clone())
    }

    scan!(|self, state, projection, _filters, limit| ready(self.planned(state, projection, limit)));
}
