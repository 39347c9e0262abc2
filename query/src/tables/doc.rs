//! Describes tables and columns for help, completion and messages.

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
