//! Cuts sealed files into morsels: runs of row groups with their footer's statistics, each scanned by one core without
//! coordination.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetAccessPlan;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics as ChunkStatistics;

use super::file::OpenedPart;

/// Rows that make a morsel worth the tenth of a millisecond that opening it costs.
const MORSEL_ROWS: usize = 500_000;

/// Returns the morsels of `part` in file order, each as a file with an access plan and exact statistics.
pub fn morsels(part: &OpenedPart, schema: &SchemaRef) -> Vec<PartitionedFile> {
    let groups = part.footer.row_groups();
    let mut morsels = Vec::new();
    let mut first = 0;
    let mut rows = 0;
    for (index, group) in groups.iter().enumerate() {
        rows += group.num_rows() as usize;
        if rows >= MORSEL_ROWS || index + 1 == groups.len() {
            morsels.push(morsel(part, schema, first..index + 1));
            first = index + 1;
            rows = 0;
        }
    }
    morsels
}

fn morsel(
    opened: &OpenedPart,
    schema: &SchemaRef,
    groups: std::ops::Range<usize>,
) -> PartitionedFile {
    let OpenedPart {
        part,
        footer: metadata,
    } = opened;
    let mut plan = ParquetAccessPlan::new_none(metadata.num_row_groups());
    for index in groups.clone() {
        plan.scan(index);
    }
    let statistics = statistics(schema, &metadata.row_groups()[groups]);
    PartitionedFile::new(part.path().to_string_lossy(), part.len_bytes())
        .with_extension(plan)
        .with_extension(Arc::clone(part))
        .with_statistics(Arc::new(statistics))
}

/// Returns exact row counts, and bounds of the integer columns where the footer has them.
pub fn statistics(schema: &SchemaRef, groups: &[RowGroupMetaData]) -> Statistics {
    let rows = groups.iter().map(|g| g.num_rows() as usize).sum();
    let mut statistics = Statistics::new_unknown(schema).with_num_rows(Precision::Exact(rows));
    let Some(first) = groups.first() else {
        return statistics;
    };
    for (leaf, column) in first.columns().iter().enumerate() {
        if let Ok(index) = schema.index_of(column.column_descr().name()) {
            let chunks = groups.iter().map(|g| g.column(leaf).statistics());
            statistics.column_statistics[index] = column_statistics(chunks);
        }
    }
    statistics
}

/// The bounds and nulls of one column chunk.
type Bounds = (Option<(ScalarValue, ScalarValue)>, u64);

fn column_statistics<'a>(
    chunks: impl Iterator<Item = Option<&'a ChunkStatistics>>,
) -> ColumnStatistics {
    let mut nulls = 0;
    let mut bounds: Option<(ScalarValue, ScalarValue)> = None;
    for chunk in chunks {
        let Some((found, chunk_nulls)) = chunk.and_then(chunk_bounds) else {
            return ColumnStatistics::new_unknown();
        };
        nulls += chunk_nulls;
        bounds = match (bounds, found) {
            (Some((low, high)), Some((min, max))) => Some((
                if min < low { min } else { low },
                if max > high { max } else { high },
            )),
            (known, found) => known.or(found),
        };
    }
    let mut statistics =
        ColumnStatistics::new_unknown().with_null_count(Precision::Exact(nulls as usize));
    if let Some((min, max)) = bounds {
        statistics.min_value = Precision::Exact(min);
        statistics.max_value = Precision::Exact(max);
    }
    statistics
}

/// Returns the smallest and the largest function id of some groups of calls, if their footers have them.
pub fn id_bounds<'a>(groups: impl Iterator<Item = &'a RowGroupMetaData>) -> Option<(i32, i32)> {
    let mut bounds: Option<(i32, i32)> = None;
    for group in groups {
        let mut columns = group.columns().iter();
        let ids = columns.find(|column| column.column_descr().name() == "function_id")?;
        let ChunkStatistics::Int32(found) = ids.statistics()? else {
            return None;
        };
        let (min, max) = (*found.min_opt()?, *found.max_opt()?);
        bounds = Some(bounds.map_or((min, max), |(low, high)| (low.min(min), high.max(max))));
    }
    bounds
}

/// Returns whether the calls of some groups have entries alone: what was called from them is not known.
pub fn has_only_entries<'a>(groups: impl Iterator<Item = &'a RowGroupMetaData>) -> bool {
    let of_group = |group: &'a RowGroupMetaData| {
        let mut columns = group.columns().iter();
        columns.find(|column| column.column_descr().name() == "child_ns")
    };
    let least = groups
        .filter_map(of_group)
        .map(|column| column.statistics());
    least.flatten().any(|found| {
        matches!(found, ChunkStatistics::Int64(found) if found.min_opt().is_some_and(|min| *min < 0))
    })
}

/// Returns a chunk's statistics, or `None` when they are not exact.
fn chunk_bounds(chunk: &ChunkStatistics) -> Option<Bounds> {
    let nulls = chunk.null_count_opt()?;
    let bounds = match chunk {
        ChunkStatistics::Int64(s) => s
            .min_opt()
            .zip(s.max_opt())
            .map(|(&min, &max)| (ScalarValue::Int64(Some(min)), ScalarValue::Int64(Some(max)))),
        ChunkStatistics::Int32(s) => s
            .min_opt()
            .zip(s.max_opt())
            .map(|(&min, &max)| (ScalarValue::Int32(Some(min)), ScalarValue::Int32(Some(max)))),
        _ => return None,
    };
    Some((bounds, nulls))
}
