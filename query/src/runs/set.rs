//! The recordings of a query: all are known by their small files, and a few are open.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::common::DataFusionError;
use store::set::Process;
use store::{Reader, Recording, Summary};

use super::names::names;
use crate::error::{Error, Result};
use crate::open::sources;
use crate::options::Options;
use crate::question::message_of;
use crate::state::States;
use crate::tables::{Followed, Provider, Sources, processes_beside, provider};

/// Recordings that stay open after their use. Functions of a state return to them row by row.
const KEPT: usize = 8;

/// Rows of a recording that was not closed, for choosing the order of joins.
const GUESSED_ROWS: usize = 1_000_000;

/// A recording and its name in the column `run`.
#[derive(Debug)]
pub struct Run {
    /// Its name, which no other one of the set has.
    pub name: String,
    /// Its small files.
    pub summary: Summary,
}

/// An opened recording.
pub struct Opened {
    /// The states that its functions use.
    pub states: States,
    sources: Sources,
}

/// Recordings that are queried together.
#[derive(Debug)]
pub struct Set {
    runs: Vec<Run>,
    temp_dir: PathBuf,
    readers: Mutex<Readers>,
    /// By the folder around them: the processes of sets.
    processes: Mutex<HashMap<PathBuf, Arc<[Process]>>>,
    warnings: Mutex<Vec<String>>,
}

/// The open recordings, by their index.
#[derive(Debug, Default)]
struct Readers {
    /// The last one was used last.
    recent: VecDeque<(usize, Arc<Opened>)>,
    /// All that were ever opened.
    opened: HashSet<usize>,
    /// Those that could not be.
    failed: HashSet<usize>,
}

impl Set {
    /// Takes recordings; there is at least one.
    pub fn new(summaries: Vec<Summary>, options: &Options) -> Self {
        let folders: Vec<PathBuf> = summaries.iter().map(|run| run.dir().to_owned()).collect();
        let named = names(&folders).into_iter().zip(summaries);
        Self {
            runs: named.map(|(name, summary)| Run { name, summary }).collect(),
            temp_dir: options.temp_dir.clone(),
            readers: Mutex::default(),
            processes: Mutex::default(),
            warnings: Mutex::default(),
        }
    }

    /// Returns all recordings.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Returns the index of the recording with a name.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.runs.iter().position(|run| run.name == name)
    }

    /// Estimates the rows of a recording's largest table.
    pub fn rows(&self, index: usize) -> usize {
        let totals = self.runs[index].summary.totals.as_ref();
        totals.map_or(GUESSED_ROWS, |totals| totals.events as usize)
    }

    /// Opens a recording. `None` if it cannot be read, with one warning.
    ///
    /// # Errors
    /// When something else fails.
    pub fn open(&self, index: usize) -> Result<Option<Arc<Opened>>> {
        {
            let mut readers = lock(&self.readers);
            if readers.failed.contains(&index) {
                return Ok(None);
            }
            if let Some(opened) = readers.take(index) {
                readers.keep(index, Arc::clone(&opened));
                return Ok(Some(opened));
            }
            readers.opened.insert(index);
        }
        let run = &self.runs[index];
        match Opened::open(run, self.followed(run), &self.temp_dir) {
            Ok(opened) => {
                let opened = Arc::new(opened);
                lock(&self.readers).keep(index, Arc::clone(&opened));
                Ok(Some(opened))
            }
            Err(error @ (Error::Store(_) | Error::Part { .. })) => {
                if lock(&self.readers).failed.insert(index) {
                    self.warn(format!("{} is left out: {error}", run.name));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns what the set of a recording knows of the processes that its program made.
    fn followed(&self, run: &Run) -> Followed {
        let folder = run.summary.dir();
        let set = folder.parent().map(Path::to_owned).unwrap_or_default();
        let mut sets = lock(&self.processes);
        let processes = sets.entry(set).or_insert_with(|| processes_beside(folder));
        let all: Vec<&Recording> = self.runs.iter().map(|run| &run.summary.recording).collect();
        Followed::beside(&run.summary.recording, &all, Arc::clone(processes))
    }

    /// Adds a warning that the answer has only some rows of a recording, if `error` says that its files cannot be
    /// read.
    ///
    /// # Errors
    /// Any other error.
    pub fn cut(
        &self,
        index: usize,
        error: DataFusionError,
    ) -> std::result::Result<(), DataFusionError> {
        if !is_damage(&error) {
            return Err(error);
        }
        let (name, why) = (&self.runs[index].name, message_of(&error));
        self.warn(format!("{name}: rows are missing in the answer: {why}"));
        Ok(())
    }

    /// Adds a warning.
    pub fn warn(&self, warning: String) {
        let mut warnings = lock(&self.warnings);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Returns the warnings since the last time.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.warnings))
    }

    /// Returns how many recordings were opened.
    pub fn opened(&self) -> usize {
        lock(&self.readers).opened.len()
    }
}

impl Readers {
    fn take(&mut self, index: usize) -> Option<Arc<Opened>> {
        let at = self.recent.iter().position(|(known, _)| *known == index)?;
        self.recent.remove(at).map(|(_, opened)| opened)
    }

    fn keep(&mut self, index: usize, opened: Arc<Opened>) {
        self.recent.push_back((index, opened));
        if self.recent.len() > KEPT {
            self.recent.pop_front();
        }
    }
}

impl Opened {
    fn open(run: &Run, followed: Followed, temp_dir: &Path) -> Result<Self> {
        let reader = Arc::new(Reader::open(run.summary.dir(), temp_dir)?);
        let states = States::new(Arc::clone(&reader));
        let mut sources = sources(&reader, &states)?;
        sources.followed = followed;
        Ok(Self { states, sources })
    }

    /// Returns the table of that name.
    ///
    /// # Errors
    /// It cannot be planned.
    pub fn table(&self, name: &str) -> std::result::Result<Provider, DataFusionError> {
        provider(name, &self.sources)
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.states.fmt(f)
    }
}

/// Returns whether an error is about the bytes of a recording, not about the question.
fn is_damage(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ParquetError(_) | DataFusionError::IoError(_) => true,
        DataFusionError::External(error) => error.is::<store::Error>(),
        DataFusionError::ArrowError(error, _) => matches!(
            **error,
            arrow::error::ArrowError::ParquetError(_) | arrow::error::ArrowError::ExternalError(_)
        ),
        _ => false,
    }
}

/// A panic elsewhere leaves these values intact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
