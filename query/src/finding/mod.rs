//! Finds calls, events and writes of a recording by filters: whoever asks needs no SQL.
//!
//! `question.rs` makes the question, `functions.rs` finds the functions that a filter selects, `rows.rs` runs what is asked.

mod functions;
mod question;
mod rows;

use crate::answer::Stopper;
use crate::error::Result;
use crate::functions::ret;
use crate::session::Session;
use functions::Matching;
use question::Question;
use rows::Asking;

pub use rows::{Record, Rows, rows};

/// Which calls or events are meant: all filters that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// `call`, or kinds of events. None: calls if a filter is about functions or calls, else all events.
    pub kinds: Vec<String>,
    /// The function's name: the full or the short one, or without scopes and template arguments.
    pub function: Option<TextFilter>,
    /// The source file of the function.
    pub source_file: Option<TextFilter>,
    /// What the call returned.
    pub return_value: Option<ReturnFilter>,
    /// The arguments as text.
    pub args: Option<TextFilter>,
    /// The text of output, messages and notes.
    pub text: Option<TextFilter>,
    /// The thread.
    pub thread_id: Option<u32>,
    /// The first and the last time, in ns since the recording began.
    pub times: (Option<i64>, Option<i64>),
    /// The first and the last event.
    pub seqs: (Option<u64>, Option<u64>),
    /// Only calls that the call of this event made.
    pub parent: Option<u64>,
    /// Only calls that took at least so many ns.
    pub min_duration_ns: Option<i64>,
    /// In which order.
    pub order: Order,
    /// How much of each row.
    pub detail: Detail,
}

/// A filter on a text; all that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextFilter {
    /// It is exactly this.
    pub equals: Option<String>,
    /// It has this in it.
    pub contains: Option<String>,
    /// This regular expression matches a part of it.
    pub matches: Option<String>,
}

/// A filter on a returned value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReturnFilter {
    /// It is this number.
    pub equals: Option<i128>,
    /// Nothing is known to have been returned.
    pub is_null: Option<bool>,
    /// It is less than this.
    pub less_than: Option<i128>,
    /// It is greater than this.
    pub greater_than: Option<i128>,
}

/// In which order rows come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By event.
    #[default]
    Asc,
    /// By event, the last one first.
    Desc,
    /// By duration, the longest first.
    Duration,
}

/// How much of each row is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The least.
    Summary,
    /// What is usually needed.
    #[default]
    Standard,
    /// Everything.
    Full,
}

/// Why filters make no question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no such kind of event.
    UnknownKind(String),
    /// Calls and events are asked for one at a time.
    CallsAndEvents,
    /// Calls have no text.
    TextOfCalls,
    /// Only calls have a duration.
    DurationOfEvents,
    /// A text has so many bytes, which is more than [`LONGEST_TEXT`].
    LongText(usize),
}

/// Bytes of a filter's text at most. The names of templates may be long; longer patterns take seconds.
pub const LONGEST_TEXT: usize = 1 << 16;

/// Why no row was found, as far as that can be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// No recorded function has such a name.
    NoFunction,
    /// There are no writes by a debugger, but some that the program itself made.
    OtherWrites,
}

/// A page of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The rows.
    pub rows: Vec<Record>,
    /// How many rows there are, those before the page included.
    pub total: usize,
    /// Why there is none.
    pub nothing: Option<Nothing>,
}

/// What filters ask for.
pub struct Finding {
    question: Question,
    function: Option<TextFilter>,
    returned: Option<ReturnFilter>,
    is_about_debuggers: bool,
}

impl Finding {
    /// Plans the question of filters.
    ///
    /// # Errors
    /// The filters contradict each other, or one of them has a kind that does not exist.
    pub fn of(filters: &Filters) -> std::result::Result<Finding, Refused> {
        Ok(Finding {
            question: Question::of(filters)?,
            function: filters.function.clone(),
            returned: filters.return_value.clone(),
            is_about_debuggers: filters.kinds == ["write"],
        })
    }

    /// Returns up to `limit` rows from number `first` on. `begun` receives what stops each question to the recording.
    ///
    /// # Errors
    /// A pattern is wrong; the recording cannot be read; [`crate::Error::Stopped`].
    pub fn page(
        mut self,
        session: &Session,
        (first, limit): (usize, usize),
        begun: &dyn Fn(Stopper),
    ) -> Result<Page> {
        let asking = Asking { session, begun };
        let is_known = self.select_functions(&asking)?;
        self.select_results(session);
        let rows = self.question.ask(&asking, first, limit)?.rows;
        let mut total = first + rows.len();
        if rows.len() == limit {
            total = asking.number(&self.question.count())?.unwrap_or(total);
        }
        let nothing = match (total, is_known) {
            (0, false) => Some(Nothing::NoFunction),
            (0, true) => self.other_writes(&asking)?,
            _ => None,
        };
        Ok(Page {
            rows,
            total,
            nothing,
        })
    }

    /// Adds the condition on functions. Returns whether there are such functions.
    fn select_functions(&mut self, asking: &Asking<'_>) -> Result<bool> {
        let Some(filter) = &self.function else {
            return Ok(true);
        };
        let mut found = functions::matching(asking, &filter.of_functions())?;
        if let Some(name) = filter.only_name().filter(|_| found.is_empty()) {
            found = Matching::of(asking.session.functions_meant(name));
        }
        self.question.conditions.push(match self.question.table {
            "writes" => found.by_name(),
            _ => found.by_id(),
        });
        Ok(!found.is_empty())
    }

    /// Adds the condition on what calls returned.
    fn select_results(&mut self, session: &Session) {
        let Some(filter) = &self.returned else {
            return;
        };
        let functions = session.definitions().functions();
        let as_text = functions.filter(|function| ret::has_numbers_as_text(function));
        let as_text: Vec<u32> = as_text.map(|function| function.id).collect();
        filter.add(&as_text, &mut self.question.conditions);
    }

    fn other_writes(&self, asking: &Asking<'_>) -> Result<Option<Nothing>> {
        if !self.is_about_debuggers {
            return Ok(None);
        }
        let sql = "select count(*) as n from events where kind = 'logged_write'";
        let count = asking.number(sql)?.unwrap_or(0);
        Ok((count > 0).then_some(Nothing::OtherWrites))
    }
}

/// A text of SQL.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
