//! Reads byte ranges of sealed files for DataFusion: one `pread` each, on the calling thread, from the page cache.
//!
//! A local file needs no object store in front of the decoder: that costs a thread switch per range.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::file::PartFile;
use crate::reading::BYTES;

/// Makes readers for files that carry their [`PartFile`] as an extension.
#[derive(Debug)]
pub struct PartReaders;

impl ParquetFileReaderFactory for PartReaders {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        _metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let part = file
            .extension::<Arc<PartFile>>()
            .ok_or_else(|| internal_datafusion_err!("a scanned file carries no part"))?;
        Ok(Box::new(PartReader {
            part: Arc::clone(part),
            bytes: MetricBuilder::new(metrics).counter(BYTES, partition_index),
        }))
    }
}

struct PartReader {
    part: Arc<PartFile>,
    bytes: Count,
}

impl PartReader {
    fn read(&self, range: Range<u64>) -> std::result::Result<Bytes, ParquetError> {
        let bytes = self.part.read(range)?;
        self.bytes.add(bytes.len());
        Ok(bytes)
    }
}

impl AsyncFileReader for PartReader {
    fn get_bytes(
        &mut self,
        range: Range<u64>,
    ) -> BoxFuture<'_, std::result::Result<Bytes, ParquetError>> {
        ready(self.read(range)).boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, std::result::Result<Vec<Bytes>, ParquetError>> {
        let read = |range| self.read(range);
        ready(ranges.into_iter().map(read).collect()).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, std::result::Result<Arc<ParquetMetaData>, ParquetError>> {
        ready(self.part.with_pages()).boxed()
    }
}
