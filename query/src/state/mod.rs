//! The state of the program in SQL: `reg`, `mem`, `value`, `explain_value`, `frame_value`, and the tables
//! `backtrace(seq)`, `locals(seq)` and `history(expression)`.
//!
//! The first call of one of these functions makes the timeline of the opened recording; other queries do not pay for
//! it. Unknown values are null, and so are stale ones: values that were seen earlier and may have changed since.

mod call_text;
mod history;
mod moment;
mod rerun;
mod scalar;
mod table;
mod traces;
mod writes;

use std::sync::{Arc, OnceLock};

use datafusion::catalog::TableFunctionImpl;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;
use debuginfo::Diagnostic;
use replay::Timeline;
use store::Reader;

use rerun::Rerun;
use traces::KeptTraces;

pub use call_text::{CallTexts, Extent};
pub(crate) use moment::innermost_value;
pub(crate) use rerun::Turn;

/// A recording whose timeline is made on first use.
#[derive(Clone, Debug)]
pub struct States {
    inner: Arc<Inner>,
}

struct Inner {
    /// `None`: the recording is not opened.
    reader: Option<Arc<Reader>>,
    timeline: OnceLock<std::result::Result<Timeline, Diagnostic>>,
    traces: KeptTraces,
    /// `None`: not every instruction is recorded.
    rerun: Option<Rerun>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.reader {
            Some(reader) => write!(f, "the states of {}", reader.recording().dir().display()),
            None => f.write_str("no states"),
        }
    }
}

impl States {
    /// Takes an opened recording.
    pub fn new(reader: Arc<Reader>) -> Self {
        Self::of(Some(reader))
    }

    /// Returns the states of no recording: its functions have names and types, and cannot be called.
    pub fn of_none() -> Self {
        Self::of(None)
    }

    fn of(reader: Option<Arc<Reader>>) -> Self {
        let recording = reader.as_ref().map(|reader| reader.recording());
        let is_full = recording.is_some_and(|own| own.manifest().settings.has_every_instruction());
        Self {
            inner: Arc::new(Inner {
                rerun: is_full.then(Rerun::default),
                reader,
                timeline: OnceLock::new(),
                traces: KeptTraces::default(),
            }),
        }
    }

    /// Returns the opened recording; `None` if there is none.
    pub fn reader(&self) -> Option<&Arc<Reader>> {
        self.inner.reader.as_ref()
    }

    /// Registers the functions.
    pub fn register(&self, context: &SessionContext) {
        for function in self.scalar_functions() {
            context.register_udf(function);
        }
        for (name, function) in self.table_functions() {
            context.register_udtf(name, function);
        }
    }

    /// Returns the functions of a row.
    pub fn scalar_functions(&self) -> Vec<ScalarUDF> {
        scalar::functions(self)
    }

    /// Returns the functions that give a table.
    pub fn table_functions(&self) -> Vec<(&'static str, Arc<dyn TableFunctionImpl>)> {
        let mut functions = table::functions(self);
        functions.push(("history", history::function(self)));
        functions
    }

    /// Returns the frames that batches of rows keep.
    fn traces(&self) -> &KeptTraces {
        &self.inner.traces
    }

    /// Begins to compute a batch of rows: in the order of the moments that they ask about, and while no other batch asks, if the program
    /// is run again for each of them. `seq` returns the event of a row, if the row asks about one.
    pub(crate) fn turn(&self, rows: usize, seq: impl Fn(usize) -> Option<u64>) -> Turn<'_> {
        let rerun = self.inner.rerun.as_ref();
        rerun.map_or_else(Turn::default, |rerun| rerun.turn(rows, seq))
    }

    fn rerun(&self) -> Option<&Rerun> {
        self.inner.rerun.as_ref()
    }

    /// Returns the timeline.
    ///
    /// # Errors
    /// The recording is empty, or cannot be read.
    pub(crate) fn timeline(&self) -> Result<&Timeline> {
        let inner = &self.inner;
        let opened = inner.timeline.get_or_init(|| {
            let Some(reader) = &inner.reader else {
                return Err(Diagnostic::new("no recording is opened"));
            };
            Timeline::new(Arc::clone(reader)).map_err(|error| Diagnostic {
                message: error.to_string(),
                hint: error.hint(),
            })
        });
        opened.as_ref().map_err(|why| told(why.clone()))
    }
}

/// Two are equal if they belong to the same recording: DataFusion compares plans.
impl PartialEq for States {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for States {}

impl std::hash::Hash for States {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.inner).hash(state);
    }
}

/// Converts an error of `replay`.
pub(crate) fn failed(error: replay::Error) -> DataFusionError {
    let hint = error.hint();
    let message = error.to_string();
    told(Diagnostic { message, hint })
}

/// Passes a message with its next step through DataFusion.
pub(crate) fn told(what: Diagnostic) -> DataFusionError {
    DataFusionError::External(Box::new(what))
}
