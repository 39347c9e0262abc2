//! The state of the program in SQL: `reg`, `mem`, `value`, `explain_value`, `frame_value`, and the tables
//! `backtrace(seq)`, `locals(seq)` and `history(expression)`.
//!
//! The first call of one of these functions makes the timeline of the opened recording; other queries do not pay for
//! it. Unknown values are null, and so are stale ones: values that were seen earlier and may have changed since.

mod call_text;
mod history;
mod moment;
mod scalar;
mod table;

use std::sync::{Arc, OnceLock};

use datafusion::common::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use debuginfo::Diagnostic;
use replay::Timeline;
use store::Reader;

pub use call_text::CallTexts;

/// A recording whose timeline is made on first use.
#[derive(Clone, Debug)]
pub struct States {
    inner: Arc<Inner>,
}

struct Inner {
    reader: Arc<Reader>,
    timeline: OnceLock<std::result::Result<Timeline, Diagnostic>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the states of {}",
            self.reader.recording().dir().display()
        )
    }
}

impl States {
    /// Takes an opened recording.
    pub fn new(reader: Arc<Reader>) -> Self {
        Self {
            inner: Arc::new(Inner {
                reader,
                timeline: OnceLock::new(),
            }),
        }
    }

    /// Registers the functions.
    pub fn register(&self, context: &SessionContext) {
        for function in scalar::functions(self) {
            context.register_udf(function);
        }
        table::register(self, context);
        history::register(self, context);
    }

    /// Returns the timeline.
    ///
    /// # Errors
    /// The recording is empty, or cannot be read.
    pub(crate) fn timeline(&self) -> Result<&Timeline> {
        let inner = &self.inner;
        let opened = inner.timeline.get_or_init(|| {
            Timeline::new(Arc::clone(&inner.reader)).map_err(|error| Diagnostic {
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
        self.inner.reader.recording().dir().hash(state);
    }
}

/// Makes an error of one of `replay`.
pub(crate) fn failed(error: replay::Error) -> DataFusionError {
    let hint = error.hint();
    let message = error.to_string();
    told(Diagnostic { message, hint })
}

/// Passes a message with its next step through DataFusion.
fn told(what: Diagnostic) -> DataFusionError {
    DataFusionError::External(Box::new(what))
}
