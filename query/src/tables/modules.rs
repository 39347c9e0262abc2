//! The table `modules`: the ELF files that were mapped.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int32Array, Int64Array, StringViewArray};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;

use super::doc::TableDoc;
use super::sources::Sources;
use crate::definitions::Module;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "modules",
    doc: "one row per ELF file that was mapped",
    columns: &[
        ("module_id", "number of the module in this recording"),
        ("name", "file name"),
        ("path", "path of the file"),
        ("build_id", "GNU build id in hex"),
        ("addr", "where it is mapped"),
        (
            "size",
            "bytes from the first to the last one, .bss included",
        ),
        ("system", "true for libraries of the system"),
        ("ts_ns", "when it was mapped, ns since the recording began"),
    ],
};

/// Returns the table's rows.
pub fn rows(sources: &Sources) -> Result<RecordBatch> {
    let clock = sources.clock;
    let modules: Vec<&Module> = sources.definitions.modules().collect();
    let text = |text: fn(&Module) -> Option<&str>| {
        Arc::new(modules.iter().map(|m| text(m)).collect::<StringViewArray>()) as ArrayRef
    };
    let number = |number: &dyn Fn(&Module) -> i64| {
        Arc::new(Int64Array::from_iter_values(
            modules.iter().map(|m| number(m)),
        )) as ArrayRef
    };
    let ids = Int32Array::from_iter_values(modules.iter().map(|m| m.id as i32));
    let system = BooleanArray::from_iter(modules.iter().map(|m| Some(m.system)));
    let columns: [ArrayRef; 8] = [
        Arc::new(ids),
        text(|m| Some(m.name())),
        text(|m| Some(&m.path)),
        text(|m| m.build_id.as_deref()),
        number(&|m| m.addr as i64),
        number(&|m| m.size as i64),
        Arc::new(system),
        number(&|m| clock.ns_from_ticks(m.ticks)),
    ];
    DOC.rows(columns)
}
