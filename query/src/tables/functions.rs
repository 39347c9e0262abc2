//! The table `functions`: the definition of each traced function, and how often it was called.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, StringViewArray};
use arrow::record_batch::RecordBatch;
use datafusion::common::{JoinType, Result};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col, lit};
use store::control::{FunctionDef, ValueKind};

use super::doc::TableDoc;
use super::sources::Sources;
use crate::short_names;

/// Describes the table.
pub const DOC: TableDoc = TableDoc {
    name: "functions",
    doc: "one row per traced function",
    columns: &[
        ("function_id", "number of the function in this recording"),
        ("name", "name, demangled"),
        (
            "short_name",
            "name without paths of standard libraries and default arguments; the whole one where different functions would have the same",
        ),
        ("linkage", "name for the linker"),
        ("module", "file name of the module"),
        ("file", "source file"),
        ("line", "source line"),
        ("svma", "address inside the module's file"),
        (
            "addr",
            "svma plus the module's base: where it lies in the process",
        ),
        ("size", "length in bytes; null when not known"),
        (
            "params",
            "parameters, name: type; null without debug information",
        ),
        (
            "returns",
            "type of the return value; null without debug information",
        ),
        (
            "calls",
            "number of recorded calls; counted only when the query uses it",
        ),
    ],
};

/// The columns that do not need the calls.
const DEFINED: usize = DOC.columns.len() - 1;

/// Returns the plan of all columns but `calls`, and the plan of all columns.
pub fn plans(sources: &Sources) -> Result<(LogicalPlan, LogicalPlan)> {
    let rows = rows(sources)?;
    let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
    let defined = LogicalPlanBuilder::scan("functions", provider_as_source(Arc::new(table)), None)?;
    let counts = LogicalPlanBuilder::scan("calls", Arc::clone(&sources.calls), None)?
        .aggregate(
            vec![col("function_id").alias("id")],
            vec![count(lit(1i64)).alias("counted")],
        )?
        .build()?;
    let mut columns: Vec<_> = DOC.columns[..DEFINED]
        .iter()
        .map(|(name, _)| col(*name))
        .collect();
    columns.push(coalesce(vec![col("counted"), lit(0i64)]).alias("calls"));
    let counted = defined
        .clone()
        .join(
            counts,
            JoinType::Left,
            (vec!["function_id"], vec!["id"]),
            None,
        )?
        .project(columns)?
        .build()?;
    Ok((defined.build()?, counted))
}

fn rows(sources: &Sources) -> Result<RecordBatch> {
    let definitions = &sources.definitions;
    let functions: Vec<&FunctionDef> = definitions.functions().collect();
    let module = |f: &FunctionDef| definitions.module(f.module);
    let ids = functions.iter().map(|f| f.id as i32);
    let modules = functions.iter().map(|f| module(f).map(|m| m.name()));
    let addrs = functions
        .iter()
        .map(|f| module(f).map(|m| m.addr.wrapping_add(f.svma) as i64));
    let sizes = functions
        .iter()
        .map(|f| (f.size > 0).then_some(f.size as i64));
    let short = short_names::of_functions(&functions);
    let columns: [ArrayRef; DEFINED] = [
        Arc::new(Int32Array::from_iter_values(ids)),
        definitions_text(&functions, |f| Some(f.name.clone())),
        Arc::new(StringViewArray::from_iter_values(short)),
        definitions_text(&functions, |f| Some(f.linkage.clone())),
        Arc::new(modules.collect::<StringViewArray>()),
        definitions_text(&functions, |f| f.file.clone()),
        Arc::new(
            functions
                .iter()
                .map(|f| f.line.map(i64::from))
                .collect::<Int64Array>(),
        ),
        Arc::new(Int64Array::from_iter_values(
            functions.iter().map(|f| f.svma as i64),
        )),
        Arc::new(addrs.collect::<Int64Array>()),
        Arc::new(sizes.collect::<Int64Array>()),
        definitions_text(&functions, params),
        definitions_text(&functions, |f| f.params_known.then(|| type_name(&f.ret))),
    ];
    DOC.rows(columns)
}

fn definitions_text(
    functions: &[&FunctionDef],
    text: impl Fn(&FunctionDef) -> Option<String>,
) -> ArrayRef {
    Arc::new(
        functions
            .iter()
            .map(|f| text(f))
            .collect::<StringViewArray>(),
    )
}

fn params(function: &FunctionDef) -> Option<String> {
    let param = |param: &store::control::Param| match param.name.as_str() {
        "" => type_name(&param.kind),
        name => format!("{name}: {}", type_name(&param.kind)),
    };
    let params: Vec<_> = function.params.iter().map(param).collect();
    function.params_known.then(|| params.join(", "))
}

/// Returns a short name for a type, as in `i32`, `f64` or `struct[24]`.
fn type_name(kind: &ValueKind) -> String {
    let bits = |bytes: u8| u32::from(bytes) * 8;
    match kind {
        ValueKind::Void => "void".into(),
        ValueKind::Bool => "bool".into(),
        ValueKind::Char => "char".into(),
        ValueKind::Unicode { bytes } => format!("char{}", bits(*bytes)),
        ValueKind::Int {
            bytes,
            signed: true,
        } => format!("i{}", bits(*bytes)),
        ValueKind::Int {
            bytes,
            signed: false,
        } => format!("u{}", bits(*bytes)),
        ValueKind::Float { bytes } => format!("f{}", bits(*bytes)),
        ValueKind::Pointer => "ptr".into(),
        ValueKind::Enum { .. } => "enum".into(),
        ValueKind::Struct { bytes } => format!("struct[{bytes}]"),
        ValueKind::Unknown => "?".into(),
    }
}
