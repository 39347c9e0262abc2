//! The table `probes`: what was asked to be traced, armed or not and why.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, StringViewArray};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use store::control::FunctionDef;

use super::doc::TableDoc;
use super::sources::Sources;
use crate::definitions::Skipped;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "probes",
    doc: "one row per function that was asked for",
    columns: &[
        ("function_id", "number of the function; null when skipped"),
        ("function", "name of the function"),
        ("module", "file name of the module"),
        ("svma", "address inside the module's file"),
        ("kind", "trace"),
        ("state", "armed or skipped"),
        ("reason", "why it was skipped"),
    ],
};

/// Returns the table's rows: armed probes, then skipped ones.
pub fn rows(sources: &Sources) -> Result<RecordBatch> {
    let definitions = &sources.definitions;
    let armed: Vec<&FunctionDef> = definitions.functions().collect();
    let skipped: &[Skipped] = definitions.skipped();
    let count = armed.len() + skipped.len();
    let ids = armed.iter().map(|f| Some(f.id as i32));
    let ids = ids.chain(skipped.iter().map(|_| None));
    let names = armed.iter().map(|f| f.name.as_str());
    let names = names.chain(skipped.iter().map(|s| s.name.as_str()));
    let modules = armed.iter().map(|f| f.module);
    let modules = modules.chain(skipped.iter().map(|s| s.module));
    let modules = modules.map(|id| definitions.module(id).map(|module| module.name()));
    let svmas = armed.iter().map(|f| f.svma as i64);
    let svmas = svmas.chain(skipped.iter().map(|s| s.svma as i64));
    let states = armed.iter().map(|_| "armed");
    let states = states.chain(skipped.iter().map(|_| "skipped"));
    let reasons = armed.iter().map(|_| None);
    let reasons = reasons.chain(skipped.iter().map(|s| Some(s.reason.as_str())));
    let columns: [ArrayRef; 7] = [
        Arc::new(ids.collect::<Int32Array>()),
        Arc::new(StringViewArray::from_iter_values(names)),
        Arc::new(modules.collect::<StringViewArray>()),
        Arc::new(Int64Array::from_iter_values(svmas)),
        Arc::new(StringViewArray::from_iter_values(vec!["trace"; count])),
        Arc::new(StringViewArray::from_iter_values(states)),
        Arc::new(reasons.collect::<StringViewArray>()),
    ];
    let names = DOC.columns.iter().map(|(name, _)| *name);
    Ok(RecordBatch::try_from_iter_with_nullable(
        names
            .zip(columns)
            .map(|(name, column)| (name, column, true)),
    )?)
}
