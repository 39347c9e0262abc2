//! The table `notes`: users' notes at events, written during the recording or later. Later ones are not events.
//!
//! The file of notes is read on demand, so a damaged one fails no other query.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col, lit};
use store::{Recording, notes};

use super::computed::Computed;
use super::doc::TableDoc;
use super::sources::Sources;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "notes",
    doc: "one row per note: recorded ones, and those added since",
    columns: &[
        ("seq", "the event it belongs to"),
        ("text", "what it says"),
        (
            "added_unix_ns",
            "when it was added to the recording, ns since 1970; null if it was recorded",
        ),
    ],
};

/// Returns the table.
pub fn table(sources: &Sources) -> Result<Arc<dyn TableProvider>> {
    let recorded = LogicalPlanBuilder::scan("events", Arc::clone(&sources.events), None)?
        .filter(col("kind").eq(lit("note")))?
        .project(vec![
            col("seq"),
            col("text"),
            lit(datafusion::common::ScalarValue::Int64(None)).alias("added_unix_ns"),
        ])?
        .build()?;
    let schema = schema(&recorded);
    let (recording, columns) = (sources.recording.clone(), Arc::clone(&schema));
    let added = Computed::new(schema, move || added(&recording, &columns));
    let added = provider_as_source(Arc::new(added));
    let added = LogicalPlanBuilder::scan("added", added, None)?.build()?;
    let both = LogicalPlanBuilder::from(recorded).union(added)?.build()?;
    Ok(Arc::new(ViewTable::new(both, None)))
}

/// The columns of the recorded notes; each may be null.
fn schema(recorded: &LogicalPlan) -> SchemaRef {
    let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
    let fields: Vec<Field> = recorded.schema().fields().iter().map(nullable).collect();
    Arc::new(Schema::new(fields))
}

/// Returns the notes that were added later.
fn added(recording: &Recording, schema: &SchemaRef) -> Result<RecordBatch> {
    let notes = notes::read(recording);
    let notes = notes.map_err(|error| DataFusionError::External(Box::new(error)))?;
    let seqs = Int64Array::from_iter_values(notes.iter().map(|note| note.seq as i64));
    let texts: StringViewArray = notes.iter().map(|note| Some(&*note.text)).collect();
    let times = notes.iter().map(|note| note.added_unix_ns);
    let columns: [arrow::array::ArrayRef; 3] = [
        Arc::new(seqs),
        Arc::new(texts),
        Arc::new(Int64Array::from_iter_values(times)),
    ];
    let fields = schema.fields().iter();
    let columns = columns.iter().zip(fields).map(|(column, field)| {
        let wanted: &DataType = field.data_type();
        arrow::compute::cast(column, wanted)
    });
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
