//! A recording, or several, together with the runtime that waits for their answers.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow::record_batch::RecordBatch;
use query::output::Format;
use query::{Answer, Extent, Options, Reading, Runs, Session};
use store::{Reader, Recording};

use super::interrupt::Interrupts;
use crate::error::Error;
use crate::progress::Progress;
use crate::render::Terminal;

/// Runs SQL queries.
pub struct Asker {
    source: Subject,
    options: Options,
    interrupts: Interrupts,
    life: Option<Life>,
}

/// The sign that a query is still running.
struct Life {
    progress: Progress,
    since: Instant,
}

/// What is asked.
enum Subject {
    One {
        reader: Arc<Reader>,
        session: Session,
    },
    Many {
        folders: Vec<PathBuf>,
        runs: Runs,
    },
}

impl Asker {
    /// Opens the recording in the folder `path`. Ctrl-C ends the program.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Asker, Error> {
        Asker::open_with(path, Options::default(), false)
    }

    /// Opens the recording in the folder `path` with the given limits. If `interruptible`, Ctrl-C stops only the query.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open_with(path: &Path, options: Options, interruptible: bool) -> Result<Asker, Error> {
        let reader = opened(path, &options)?;
        Asker::new(reader, options, interruptible)
    }

    /// Opens the recording in the folder `path`, to ask it one after the other with others, `all` of them together: no process has
    /// rows in two of them. Ctrl-C, SIGTERM and SIGHUP stop only the query.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open_beside(path: &Path, all: &[Recording]) -> Result<Asker, Error> {
        let options = Options::default();
        let reader = opened(path, &options)?;
        let session = Session::new_beside(Arc::clone(&reader), options.clone(), all);
        let session = session.map_err(|source| Error::Query { source })?;
        Ok(Asker {
            source: Subject::One { reader, session },
            options,
            interrupts: Interrupts::catch_ends()?,
            life: None,
        })
    }

    /// Opens several recordings by their folders. If `interruptible`, Ctrl-C stops only the query.
    ///
    /// # Errors
    /// When none of them can be opened.
    pub fn open_many(
        folders: Vec<PathBuf>,
        options: Options,
        interruptible: bool,
    ) -> Result<Asker, Error> {
        let runs = opened_all(&folders, &options)?;
        Ok(Asker {
            source: Subject::Many { folders, runs },
            options,
            interrupts: interrupts(interruptible)?,
            life: None,
        })
    }

    /// Makes an asker of an opened recording. If `interruptible`, Ctrl-C stops only the query.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(reader: Arc<Reader>, options: Options, interruptible: bool) -> Result<Asker, Error> {
        let session = Session::new(Arc::clone(&reader), options.clone());
        let session = session.map_err(|source| Error::Query { source })?;
        Ok(Asker {
            source: Subject::One { reader, session },
            options,
            interrupts: interrupts(interruptible)?,
            life: None,
        })
    }

    /// Returns a note for each table that a question reads and that was not recorded.
    pub fn not_recorded(&self, sql: &str) -> Vec<String> {
        match &self.source {
            Subject::One { session, .. } => session.not_recorded(sql),
            Subject::Many { runs, .. } => runs.not_recorded(sql),
        }
    }

    /// Shows on a terminal's stderr that a long query is running.
    pub fn show_life(&mut self, terminal: &Terminal) {
        self.life = Some(Life {
            progress: Progress::new(terminal),
            since: Instant::now(),
        });
    }

    /// Reopens the recordings, to see what has been recorded since.
    ///
    /// # Errors
    /// When it cannot be opened; the asker then keeps the previous state.
    pub fn refresh(&mut self) -> Result<(), Error> {
        match &mut self.source {
            Subject::One { reader, .. } => {
                let reader = opened(reader.recording().dir(), &self.options)?;
                self.look_at(reader)
            }
            Subject::Many { folders, runs } => {
                *runs = opened_all(folders, &self.options)?;
                Ok(())
            }
        }
    }

    /// Switches to another opened recording, if it differs.
    ///
    /// # Errors
    /// When it cannot be read; the asker then keeps the previous recording.
    pub fn look_at(&mut self, reader: Arc<Reader>) -> Result<(), Error> {
        if let Subject::One { reader: known, .. } = &self.source
            && Arc::ptr_eq(&reader, known)
        {
            return Ok(());
        }
        let session = Session::new(Arc::clone(&reader), self.options.clone());
        let session = session.map_err(|source| Error::Query { source })?;
        self.source = Subject::One { reader, session };
        Ok(())
    }

    /// Returns the folder of the only recording; `None` if there are several.
    pub fn path(&self) -> Option<&Path> {
        match &self.source {
            Subject::One { reader, .. } => Some(reader.recording().dir()),
            Subject::Many { .. } => None,
        }
    }

    /// Returns how much of the only recording is visible; `None` if there are several.
    pub fn extent(&self) -> Option<Extent> {
        match &self.source {
            Subject::One { session, .. } => Some(session.extent()),
            Subject::Many { .. } => None,
        }
    }

    /// Returns the number of recordings.
    pub fn recordings(&self) -> usize {
        match &self.source {
            Subject::One { .. } => 1,
            Subject::Many { runs, .. } => runs.names().count(),
        }
    }

    /// Returns what could not be read since the last time, each as a sentence that names the recording.
    pub fn warnings(&self) -> Vec<String> {
        match &self.source {
            Subject::One { .. } => Vec::new(),
            Subject::Many { runs, .. } => runs.warnings(),
        }
    }

    /// Returns the names of SQL functions.
    pub fn sql_functions(&self) -> &[String] {
        match &self.source {
            Subject::One { session, .. } => session.function_names(),
            Subject::Many { runs, .. } => runs.function_names(),
        }
    }

    /// Starts a query for at most `max_rows` rows.
    ///
    /// # Errors
    /// When the query is wrong, or Ctrl-C is pressed.
    pub fn ask(&mut self, sql: &str, max_rows: Option<usize>) -> Result<Answer, Error> {
        self.interrupts.forget();
        if let Some(life) = &mut self.life {
            life.since = Instant::now();
        }
        let show = shower(self.life.as_ref(), None);
        let answer = match &self.source {
            Subject::One { session, .. } => {
                let work = session.ask(sql, max_rows);
                self.interrupts.wait_showing(work, show)
            }
            Subject::Many { runs, .. } => {
                let work = runs.ask(sql, max_rows);
                self.interrupts.wait_showing(work, show)
            }
        };
        let answer = answer.inspect_err(|_| self.hide_life())?;
        answer.map_err(|source| {
            self.hide_life();
            Error::Query { source }
        })
    }

    /// Waits for the next rows; `None` at the end.
    ///
    /// # Errors
    /// When they cannot be computed, or Ctrl-C is pressed.
    pub fn next(&mut self, answer: &mut Answer) -> Result<Option<RecordBatch>, Error> {
        let show = shower(self.life.as_ref(), Some(answer.reading()));
        let batch = self.interrupts.wait_showing(answer.next_batch(), show);
        if !matches!(batch, Ok(Some(Ok(_)))) {
            self.hide_life();
        }
        batch?.transpose().map_err(|source| Error::Query { source })
    }

    fn hide_life(&self) {
        if let Some(life) = &self.life {
            life.progress.finish();
        }
    }

    /// Returns the names and types of the columns of the answer to `sql`.
    ///
    /// # Errors
    /// When the query is wrong.
    pub fn types(&mut self, sql: &str) -> Result<Vec<(String, String)>, Error> {
        let answer = self.ask(sql, Some(0))?;
        Ok(super::cells::types(answer.schema()))
    }

    /// Writes all rows and returns their number. Rows on a terminal already show that the query runs: then
    /// `shows_life` is false.
    ///
    /// # Errors
    /// When they cannot be computed or written, or Ctrl-C is pressed. The output is then truncated.
    pub fn write<W: Write + Send>(
        &mut self,
        answer: Answer,
        format: Format,
        out: W,
        shows_life: bool,
    ) -> Result<u64, Error> {
        if !shows_life {
            self.hide_life();
        }
        let stop = answer.stopper();
        let reading = answer.reading();
        let (done, finished) = tokio::sync::oneshot::channel();
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut answer = answer;
                let result = query::output::write(&mut answer, format, out);
                // The waiting thread may have been interrupted.
                let _ = done.send(());
                result
            });
            let show = shower(self.life.as_ref().filter(|_| shows_life), Some(reading));
            let interrupted = self.interrupts.wait_showing(finished, show);
            self.hide_life();
            stop.stop();
            let written = match writer.join() {
                Ok(written) => written,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            interrupted.map(drop)?;
            written.map_err(|source| Error::Query { source })
        })
    }

    /// Returns the single number that answers `sql`; 0 for no row or null.
    ///
    /// # Errors
    /// When the query is wrong or cannot be answered.
    pub fn number(&mut self, sql: &str) -> Result<i64, Error> {
        let rows = self.texts(sql)?;
        let cell = rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next().flatten());
        Ok(cell.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// Returns all rows that answer `sql`, as text; null is `None`.
    ///
    /// # Errors
    /// When the query is wrong or cannot be answered.
    pub fn texts(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        let mut answer = self.ask(sql, None)?;
        let mut rows = Vec::new();
        while let Some(batch) = self.next(&mut answer)? {
            rows.extend(super::cells::rows(&batch)?);
        }
        Ok(rows)
    }
}

/// Makes the callback that shows that a query is running.
fn shower(life: Option<&Life>, reading: Option<Reading>) -> impl FnMut() {
    move || {
        if let Some(life) = life {
            let bytes = reading.as_ref().map_or(0, Reading::bytes);
            let instructions = reading.as_ref().map_or(0, Reading::instructions);
            life.progress.asking(life.since, bytes, instructions);
        }
    }
}

fn interrupts(interruptible: bool) -> Result<Interrupts, Error> {
    match interruptible {
        true => Interrupts::catch(),
        false => Interrupts::ignore(),
    }
}

fn opened(path: &Path, options: &Options) -> Result<Arc<Reader>, Error> {
    super::open(path, &options.temp_dir).map(Arc::new)
}

/// Opens several recordings; a counter on a terminal shows that this goes on.
fn opened_all(folders: &[PathBuf], options: &Options) -> Result<Runs, Error> {
    let progress = Progress::new(&Terminal::detect());
    let runs = progress.alive("opening", || Runs::open(folders, options));
    runs.map_err(|source| Error::Query { source })
}
