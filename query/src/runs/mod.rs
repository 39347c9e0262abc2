//! Many recordings as one set of tables: every table has the column `run` before its own, and `runs` lists them.
//!
//! Only the small files of all are read at the beginning. A recording is opened when a scan needs it, and at most a few
//! are open at a time, so a thousand need no more memory or files than a dozen. A warning names a recording that cannot
//! be read, and the others answer.

mod exec;
mod find;
mod functions;
mod names;
mod scan;
mod set;
mod table;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result as Planned;
use datafusion::datasource::MemTable;
use store::Summary;

use crate::answer::Answer;
use crate::asking::{Asking, execution};
use crate::compare;
use crate::context::context;
use crate::error::{Error, Result};
use crate::open::no_sources;
use crate::options::Options;
use crate::question;
use crate::tables::{Provider, providers, runs};
use crate::{unknown_names, unrecorded};

pub use find::{Found, find};
pub use names::{names, names_with_sets};
use set::Set;
use table::RunsTable;

/// Name and meaning of the column that every table of several recordings has before its own.
pub const COLUMN: (&str, &str) = ("run", "name of the recording");

/// The name of that column.
const RUN: &str = COLUMN.0;

/// Recordings that can be queried together. Each shows its content at the time of its opening.
pub struct Runs {
    asking: Asking,
    set: Arc<Set>,
}

impl Runs {
    /// Takes recordings by their folders; [`find`] finds them. [`Self::warnings`] names those that cannot be read.
    ///
    /// # Errors
    /// When none can be read, or the threads cannot be made.
    pub fn open(folders: &[PathBuf], options: &Options) -> Result<Self> {
        let mut summaries = Vec::new();
        let mut unreadable = Vec::new();
        for folder in folders {
            match Summary::read(folder) {
                Ok(summary) => summaries.push(summary),
                Err(error) => unreadable.push((folder, error)),
            }
        }
        if summaries.is_empty() {
            return Err(match unreadable.pop() {
                Some((_, error)) => error.into(),
                None => Error::NoRuns,
            });
        }
        let set = Arc::new(Set::new(summaries, options));
        for (folder, error) in unreadable {
            set.warn(format!("{} is left out: {error}", folder.display()));
        }
        let tables = tables(&set).map_err(execution)?;
        let context = context(tables, options).map_err(execution)?;
        functions::register(&set, &context);
        let folders = set.runs().iter().map(|run| {
            let folder = run.summary.recording.dir();
            (run.name.clone(), folder.to_path_buf())
        });
        compare::register(&context, folders.collect());
        Ok(Self {
            asking: Asking::new(context, options, Arc::clone(&set) as _)?,
            set,
        })
    }

    /// Runs one query for at most `max_rows` rows, and waits until its answer has columns.
    ///
    /// # Errors
    /// [`Error::Sql`] for a wrong query, [`Error::ReadOnly`] for one that would change something.
    pub async fn ask(&self, sql: &str, max_rows: Option<usize>) -> Result<Answer> {
        self.asking.ask(sql, max_rows).await
    }

    /// As [`Self::ask`] for all rows, for callers that wait.
    ///
    /// # Errors
    /// As for [`Self::ask`].
    pub fn sql(&self, sql: &str) -> Result<Answer> {
        futures::executor::block_on(self.ask(sql, None))
    }

    /// Returns a note for each table that a question reads and that some recordings do not have, because nobody asked for
    /// what is in it, for each name of a recording that is none of these, and for conditions that never hold.
    #[must_use]
    pub fn not_recorded(&self, sql: &str) -> Vec<String> {
        let manifests = self.set.runs().iter().map(|run| run.summary.manifest());
        let mut notes =
            unrecorded::notes_of_many(sql, manifests.map(|own| &own.settings.captures[..]));
        notes.extend(unknown_names::notes_of_runs(sql, self.names()));
        notes.extend(question::notes(sql));
        notes
    }

    /// Returns the names of all functions, for completion.
    pub fn function_names(&self) -> &[String] {
        self.asking.function_names()
    }

    /// Returns the names of the recordings in the column `run`, in the order in which they were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.set.runs().iter().map(|run| run.name.as_str())
    }

    /// Returns how many recordings were opened so far, beyond their small files.
    pub fn opened(&self) -> usize {
        self.set.opened()
    }

    /// Returns what could not be read since the last time, each as a sentence that names the recording.
    pub fn warnings(&self) -> Vec<String> {
        self.set.take_warnings()
    }
}

/// Returns the tables by name.
fn tables(set: &Arc<Set>) -> Planned<Vec<(&'static str, Provider)>> {
    let any = &set.runs()[0].summary.recording;
    let mut tables = Vec::new();
    for (name, table) in providers(&no_sources(any))? {
        let provider: Provider = match name == runs::DOC.name {
            true => {
                let all = set.runs().iter();
                let all: Vec<_> = all.map(|run| (&*run.name, &run.summary)).collect();
                let rows = runs::rows(&all)?;
                Arc::new(MemTable::try_new(rows.schema(), vec![vec![rows]])?)
            }
            false => {
                let mut fields = vec![Field::new(RUN, DataType::Utf8View, false)];
                let own = table.schema();
                let own = own.fields().iter().map(|field| field.as_ref().clone());
                fields.extend(own.map(|field| field.with_nullable(true)));
                let schema = Arc::new(Schema::new(fields));
                Arc::new(RunsTable::new(name, schema, Arc::clone(set)))
            }
        };
        tables.push((name, provider));
    }
    Ok(tables)
}
