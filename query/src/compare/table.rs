//! The table functions `diff_functions(a, b)` and `diff_calls(a, b)`: a comparison of two recordings as rows.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue, plan_err};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;
use debuginfo::Diagnostic;
use rustc_hash::FxHashMap;

use super::{Asked, CallPair, Comparison, FunctionPair, Kind, Rules, Stop, compare};
use crate::error::Error;
use crate::overview::CallLine;
use crate::question::suggest;
use crate::session::Session;

/// Most calls that are described.
const MOST_CALLS: usize = 10_000;

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Functions,
    Calls,
}

/// The folders of recordings by the names that they have in the column `run`.
pub type Folders = FxHashMap<String, PathBuf>;

#[derive(Debug)]
struct Of {
    which: Which,
    folders: Arc<Folders>,
}

/// Registers them. Recordings that have no name of their own are meant by their paths.
pub fn register(context: &SessionContext, folders: Folders) {
    let folders = Arc::new(folders);
    for (name, which) in [
        ("diff_functions", Which::Functions),
        ("diff_calls", Which::Calls),
    ] {
        let folders = Arc::clone(&folders);
        context.register_udtf(name, Arc::new(Of { which, folders }));
    }
}

impl TableFunctionImpl for Of {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let name = match self.which {
            Which::Functions => "diff_functions",
            Which::Calls => "diff_calls",
        };
        let text = |expr: &Expr| match expr {
            Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
                Some(text.clone())
            }
            _ => None,
        };
        let texts: Option<Vec<String>> = args.exprs().iter().map(text).collect();
        let Some([a, b]) = texts.as_deref() else {
            return plan_err!("{name} takes two recordings: {name}('good', 'bad')");
        };
        let most_calls = match self.which {
            Which::Functions => 0,
            Which::Calls => MOST_CALLS,
        };
        let place = |name: &String| match self.folders.get(name) {
            Some(folder) => (name.clone(), folder.clone()),
            None => (name.clone(), PathBuf::from(name)),
        };
        let (a, b) = (place(a), place(b));
        // Comparing asks questions itself and waits for them, which a thread of the engine must not.
        let compared = std::thread::spawn(move || compared(a, b, most_calls)).join();
        let found = compared.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let found = found.map_err(|error| {
            let hint = self.near(&error).or_else(|| error.hint());
            let message = error.to_string();
            DataFusionError::External(Box::new(Diagnostic { message, hint }))
        })?;
        let batch = match self.which {
            Which::Functions => functions(&found.functions)?,
            Which::Calls => calls(&found.calls)?,
        };
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
        Ok(Arc::new(table))
    }
}

impl Of {
    /// Returns which of the recordings that are asked was perhaps meant by a name that none has.
    fn near(&self, error: &Error) -> Option<String> {
        let Error::Store(store::Error::NotARecording { path, .. }) = error else {
            return None;
        };
        let known = self.folders.keys().map(String::as_str);
        let near = suggest(&path.to_string_lossy(), known);
        (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
    }
}

fn compared(
    (a, of_a): (String, PathBuf),
    (b, of_b): (String, PathBuf),
    most_calls: usize,
) -> crate::Result<Comparison> {
    let asked = Asked {
        rules: Rules::default(),
        accepted: BTreeSet::new(),
        most_calls,
        with_code: true,
        stop: Stop::default(),
    };
    let (own, other) = (Session::open(&of_a)?, Session::open(&of_b)?);
    compare((&own, &a), (&other, &b), &asked)
}

fn numbers<T>(rows: &[T], number: impl Fn(&T) -> Option<u64>) -> ArrayRef {
    let number = |row| number(row).and_then(|number| i64::try_from(number).ok());
    Arc::new(Int64Array::from_iter(rows.iter().map(number)))
}

fn texts<'r, T>(rows: &'r [T], text: impl Fn(&'r T) -> Option<&'r str>) -> ArrayRef {
    Arc::new(StringArray::from_iter(rows.iter().map(text)))
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(schema), arrays)?)
}

fn functions(rows: &[FunctionPair]) -> Result<RecordBatch> {
    let some = |number: fn(&FunctionPair) -> u64| numbers(rows, move |row| Some(number(row)));
    let code = rows.iter().map(|row| row.code_differs);
    batch(vec![
        ("function", texts(rows, |row| Some(&row.function))),
        ("calls_a", some(|row| row.calls.0)),
        ("calls_b", some(|row| row.calls.1)),
        ("total_ns_a", numbers(rows, |row| row.total_ns.0)),
        ("total_ns_b", numbers(rows, |row| row.total_ns.1)),
        ("self_ns_a", numbers(rows, |row| row.self_ns.0)),
        ("self_ns_b", numbers(rows, |row| row.self_ns.1)),
        ("other_args", some(|row| row.arguments)),
        ("other_results", some(|row| row.results)),
        ("other_calls_inside", some(|row| row.inside)),
        ("only_a", some(|row| row.only.0)),
        ("only_b", some(|row| row.only.1)),
        ("first_seq_a", numbers(rows, |row| row.first.0)),
        ("first_seq_b", numbers(rows, |row| row.first.1)),
        ("code_differs", Arc::new(BooleanArray::from_iter(code))),
    ])
}

fn calls(rows: &[CallPair]) -> Result<RecordBatch> {
    let kind = |row: &CallPair| match row.kind {
        Kind::Arguments => "arguments",
        Kind::Result => "result",
        Kind::Inside => "inside",
        Kind::OnlyA => "only_a",
        Kind::OnlyB => "only_b",
    };
    let kinds = StringArray::from_iter_values(rows.iter().map(kind));
    let seq = |call: &Option<CallLine>| call.as_ref().map(|call| call.seq);
    fn args(call: &Option<CallLine>) -> Option<&str> {
        call.as_ref().map(|call| &*call.args)
    }
    fn result(call: &Option<CallLine>) -> Option<&str> {
        call.as_ref()?.result.as_deref()
    }
    batch(vec![
        ("difference", Arc::new(kinds)),
        ("function", texts(rows, |row| Some(&row.function))),
        ("seq_a", numbers(rows, |row| seq(&row.a))),
        ("seq_b", numbers(rows, |row| seq(&row.b))),
        ("args_a", texts(rows, |row| args(&row.a))),
        ("args_b", texts(rows, |row| args(&row.b))),
        ("ret_a", texts(rows, |row| result(&row.a))),
        ("ret_b", texts(rows, |row| result(&row.b))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TABLE_FUNCTIONS;

    #[test]
    fn what_is_described_is_what_they_give() {
        for (name, batch) in [
            ("diff_functions", functions(&[]).unwrap()),
            ("diff_calls", calls(&[]).unwrap()),
        ] {
            let schema = batch.schema();
            let given: Vec<&str> = schema
                .fields()
                .iter()
                .map(|field| &**field.name())
                .collect();
            let described = TABLE_FUNCTIONS.iter().find(|one| one.name == name).unwrap();
            let described: Vec<&str> = described.columns.iter().map(|column| column.0).collect();
            assert_eq!(given, described, "{name}");
        }
    }
}
