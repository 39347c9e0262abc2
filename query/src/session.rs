//! Answers SQL over one recording.

use std::path::Path;
use std::sync::Arc;

use debuginfo::{names_function, short_name};
use store::{Reader, Recording};

use crate::answer::Answer;
use crate::asking::{Asking, execution};
use crate::compare::Folders;
use crate::context::context;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::open::{Extent, sources};
use crate::options::Options;
use crate::question::{self, suggest};
use crate::report;
use crate::short_names::{self, last_part};
use crate::state::States;
use crate::tables::{Followed, processes_beside, providers};
use crate::{locks, memory, unknown_names, unrecorded};

/// A recording that can be queried. It shows the content at its opening.
pub struct Session {
    asking: Asking,
    extent: Extent,
    reader: Arc<Reader>,
    definitions: Arc<Definitions>,
    states: States,
    report: Arc<report::Source>,
}

impl Session {
    /// Opens the recording that `path` names, with or without its ending `.hindsight`; it may still be being written.
    ///
    /// # Errors
    /// When the recording or a sealed file cannot be read, or temporary files cannot be written.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// As [`Self::open`], with other limits.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_with(path: &Path, options: Options) -> Result<Self> {
        let reader = Reader::open(path, &options.temp_dir)?;
        Self::new(Arc::new(reader), options)
    }

    /// Queries an opened recording.
    ///
    /// The process's allocator keeps up to 64 MiB of freed memory per thread from then on.
    ///
    /// # Errors
    /// When a sealed file cannot be read, or the threads cannot be made.
    pub fn new(reader: Arc<Reader>, options: Options) -> Result<Self> {
        Self::new_beside(reader, options, &[])
    }

    /// As [`Self::new`] for a recording that is asked one after the other with others, `all` of them together: no process has rows
    /// in the table `processes` of two, as in [`crate::Runs`].
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn new_beside(reader: Arc<Reader>, options: Options, all: &[Recording]) -> Result<Self> {
        let states = States::new(Arc::clone(&reader));
        let mut sources = sources(&reader, &states)?;
        let own = reader.recording();
        let all: Vec<&Recording> = all.iter().collect();
        sources.followed = Followed::beside(own, &all, processes_beside(own.dir()));
        let tables = providers(&sources).map_err(execution)?;
        let context = context(tables, &options).map_err(execution)?;
        states.register(&context);
        crate::compare::register(&context, Folders::default());
        Ok(Self {
            asking: Asking::new(context, &options, Arc::clone(&reader) as _)?,
            extent: Extent::of(&reader),
            definitions: sources.definitions,
            report: sources.report,
            states,
            reader,
        })
    }

    /// Returns the opened recording.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns its functions and modules.
    pub(crate) fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Returns whether anything was captured with calls.
    pub(crate) fn has_captures(&self) -> bool {
        let manifest = self.reader.recording().manifest();
        manifest.settings.captures_with_calls()
    }

    /// Returns its states.
    pub(crate) fn states(&self) -> &States {
        &self.states
    }

    /// Returns what reports are made of.
    pub(crate) fn report_source(&self) -> &report::Source {
        &self.report
    }

    /// Refuses a question about how calls ended where only entries are recorded.
    pub(crate) fn check_ends(&self, name: &str) -> Result<()> {
        match self.report.only_entries {
            false => Ok(()),
            true => Err(Error::NotComparable {
                message: format!(
                    "{name} has only entries of functions: times and results are not known"
                ),
                hint: Some("calls by function: hindsight report".to_owned()),
            }),
        }
    }

    /// Returns the part of the recording that this session sees.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// Returns a note for each table that a question reads and that lacks rows because nobody asked for what is in it, for each
    /// short name that it compares a column of full names with, for each name that the recording does not have, and for conditions
    /// that never hold.
    #[must_use]
    pub fn not_recorded(&self, sql: &str) -> Vec<String> {
        let manifest = self.reader().recording().manifest();
        let has_functions = |table: &str| {
            let recorded = self.definitions().functions();
            match table {
                "allocations" => memory::is_of(recorded),
                "locks" => locks::is_of(recorded),
                _ => false,
            }
        };
        let mut notes = unrecorded::notes(sql, &manifest.settings.captures, has_functions);
        let names = || {
            let functions = self.definitions().functions();
            functions.map(|function| function.name.as_str())
        };
        notes.extend(short_names::notes(sql, names));
        let skipped = self.definitions().skipped();
        let functions = || self.definitions().functions();
        for note in unknown_names::notes(sql, functions, skipped) {
            // A short name is noted by both.
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes.extend(question::notes(sql));
        notes
    }

    /// Runs one query and waits until its answer has columns; rows come as the answer is read.
    ///
    /// # Errors
    /// [`Error::Sql`](crate::Error::Sql) for a wrong query, [`Error::ReadOnly`](crate::Error::ReadOnly) for one that would change something.
    pub fn sql(&self, sql: &str) -> Result<Answer> {
        futures::executor::block_on(self.ask(sql, None))
    }

    /// As [`Self::sql`] for at most `max_rows` rows; [`Answer::was_cut`] returns whether there are more.
    ///
    /// # Errors
    /// As for [`Self::sql`].
    pub fn sql_up_to(&self, sql: &str, max_rows: usize) -> Result<Answer> {
        futures::executor::block_on(self.ask(sql, Some(max_rows)))
    }

    /// As [`Self::sql`] and [`Self::sql_up_to`], for asynchronous callers.
    ///
    /// # Errors
    /// As for [`Self::sql`].
    pub async fn ask(&self, sql: &str, max_rows: Option<usize>) -> Result<Answer> {
        self.asking.ask(sql, max_rows).await
    }

    /// Returns the number of computations on this session's threads. Each running answer has one or more.
    pub fn running_tasks(&self) -> usize {
        self.asking.running_tasks()
    }

    /// Returns how many bytes the running answers have spilled to files now.
    pub fn spilled_bytes(&self) -> u64 {
        self.asking.spilled_bytes()
    }

    /// Returns the names of all functions, for completion.
    pub fn function_names(&self) -> &[String] {
        self.asking.function_names()
    }

    /// Returns the recorded functions that `name` may mean: it may lack scopes at its beginning and template arguments.
    pub fn functions_meant(&self, name: &str) -> Vec<(u32, String)> {
        let functions = self.definitions().functions();
        functions
            .filter(|function| names_function(name, &function.name))
            .map(|function| (function.id, function.name.clone()))
            .collect()
    }

    /// Returns the short names of recorded functions that are nearest to `name`, nearest first: those that are called the same in other
    /// scopes or with other template arguments, those with such a name, and those that are spelt nearly so.
    pub fn functions_near(&self, name: &str) -> Vec<String> {
        let own = last_part(name);
        let all = self.definitions().functions();
        let parts: Vec<(String, &str)> = all
            .map(|function| (last_part(&function.name), function.name.as_str()))
            .collect();
        let is_part = |(part, _): &&(String, &str)| !own.is_empty() && part.contains(&own);
        let mut same: Vec<&(String, &str)> = parts.iter().filter(is_part).collect();
        same.sort_by_key(|(part, full)| (part.len(), full.len()));
        let spelt = suggest(&own, parts.iter().map(|(part, _)| part.as_str()));
        let spelt = spelt.iter().flat_map(|part| {
            let of_it = parts.iter().filter(move |(own, _)| own == part);
            of_it.take(MOST_NEAR)
        });
        let mut near: Vec<String> = Vec::new();
        for (_, full) in same.into_iter().chain(spelt) {
            let short = short_name(full);
            if near.len() < MOST_NEAR && !near.contains(&short) {
                near.push(short);
            }
        }
        near
    }

    /// Returns the short names of functions around the code of the function `name`, if the debug information shows that all of
    /// it is inlined: such a function has no calls of its own.
    pub fn inlined_into(&self, name: &str) -> Vec<String> {
        let Ok(timeline) = self.states().timeline() else {
            return Vec::new();
        };
        let space = timeline.modules().space(timeline.last());
        let places = space.function_places(name);
        let mut around: Vec<String> = Vec::new();
        if places.iter().any(|place| !place.inlined) {
            return around;
        }
        for place in &places {
            let Some(function) = space.function_at(place.address) else {
                continue;
            };
            let short = short_name(&function.name);
            if around.len() < MOST_NEAR && !around.contains(&short) {
                around.push(short);
            }
        }
        around
    }
}

/// Most names that an error suggests.
const MOST_NEAR: usize = 5;
