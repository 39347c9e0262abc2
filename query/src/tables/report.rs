//! The table `report`: the time of each function, with and without the cost of recording.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{DataFusionError, Result};

use super::computed::Computed;
use super::doc::TableDoc;
use super::sources::Sources;
use crate::report::{FunctionTime, Report};

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "report",
    doc: "one row per called function: its time without what recording cost",
    columns: &[
        ("function", "name of the function, demangled"),
        ("file", "source file of the function"),
        ("line", "source line of the function"),
        (
            "module",
            "file name of the module that the function lies in",
        ),
        ("calls", "number of its calls"),
        (
            "self_ns",
            "time of its calls without the traced calls they made, and without what recording is estimated to have cost, ns: at least 1 of each call; null where only entries are recorded",
        ),
        (
            "self_most_ns",
            "self_ns at most: recording may have cost only half of the estimate, and other calls may have waited for a processor",
        ),
        (
            "inclusive_ns",
            "time of its calls with all that they made; calls inside each other count once",
        ),
        ("share", "part of self_ns in that of all functions, 0 to 1"),
        ("raw_self_ns", "self_ns as measured"),
        ("raw_inclusive_ns", "inclusive_ns as measured"),
        ("function_id", "number of the function in this recording"),
    ],
};

/// Returns the table. Its rows are computed in one pass over all calls.
pub fn table(sources: &Sources) -> Computed {
    let report = Arc::clone(&sources.report);
    Computed::new(Arc::new(schema()), move || {
        let found = report.report(&mut |_, _| ());
        let found = found.map_err(|error| DataFusionError::External(Box::new(error)))?;
        rows(&found)
    })
}

fn schema() -> Schema {
    let field = |(name, _): &(&str, &str)| {
        let kind = match *name {
            "function" | "file" | "module" => DataType::Utf8View,
            "line" | "function_id" => DataType::Int32,
            "share" => DataType::Float64,
            _ => DataType::Int64,
        };
        Field::new(
            *name,
            kind,
            !matches!(*name, "function" | "calls" | "function_id"),
        )
    };
    Schema::new(DOC.columns.iter().map(field).collect::<Vec<_>>())
}

fn rows(found: &Report) -> Result<RecordBatch> {
    let functions = &found.functions;
    let has_times = !found.only_entries;
    let texts = |text: fn(&FunctionTime) -> Option<&str>| -> ArrayRef {
        Arc::new(functions.iter().map(text).collect::<StringViewArray>())
    };
    let counts = |are_known: bool, count: fn(&FunctionTime) -> u64| -> ArrayRef {
        let count = |f| i64::try_from(count(f)).ok().filter(|_| are_known);
        Arc::new(functions.iter().map(count).collect::<Int64Array>())
    };
    let small = |number: fn(&FunctionTime) -> Option<u32>| -> ArrayRef {
        let numbers = functions.iter().map(|f| number(f).map(u32::cast_signed));
        Arc::new(numbers.collect::<Int32Array>())
    };
    let shares = functions.iter().map(|f| has_times.then_some(f.share));
    let columns = vec![
        texts(|f| Some(&f.function)),
        texts(|f| f.file.as_deref()),
        small(|f| f.line),
        texts(|f| f.module.as_deref()),
        counts(true, |f| f.calls),
        counts(has_times, |f| f.self_ns),
        counts(has_times, |f| f.self_most_ns),
        counts(has_times, |f| f.inclusive_ns),
        Arc::new(shares.collect::<Float64Array>()),
        counts(has_times, |f| f.raw_self_ns),
        counts(has_times, |f| f.raw_inclusive_ns),
        small(|f| Some(f.function_id)),
    ];
    Ok(RecordBatch::try_new(Arc::new(schema()), columns)?)
}
