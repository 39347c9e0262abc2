//! Describes tables and columns for help, completion and messages.

use arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::Result;

/// The description of a table, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableDoc {
    /// Its name in SQL.
    pub name: &'static str,
    /// Its content, a fragment of a sentence.
    pub doc: &'static str,
    /// Name and meaning of each column, in order.
    pub columns: &'static [(&'static str, &'static str)],
}

impl TableDoc {
    /// Returns rows with these columns, each of which may be null.
    pub(crate) fn rows(&self, columns: impl IntoIterator<Item = ArrayRef>) -> Result<RecordBatch> {
        let names = self.columns.iter().map(|(name, _)| *name);
        let columns = names
            .zip(columns)
            .map(|(name, column)| (name, column, true));
        Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
    }
}
