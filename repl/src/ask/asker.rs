//! A recording together with the runtime that waits for its answers.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use query::output::Format;
use query::{Answer, Extent, Options, Session};
use store::Reader;

use super::interrupt::Interrupts;
use crate::error::Error;

/// Runs SQL queries on one recording.
pub struct Asker {
    reader: Arc<Reader>,
    session: Session,
    options: Options,
    interrupts: Interrupts,
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

    /// Makes an asker of an opened recording. If `interruptible`, Ctrl-C stops only the query.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(reader: Arc<Reader>, options: Options, interruptible: bool) -> Result<Asker, Error> {
        let interrupts = match interruptible {
            true => Interrupts::catch()?,
            false => Interrupts::ignore()?,
        };
        let session = Session::new(Arc::clone(&reader), options.clone());
        Ok(Asker {
            reader,
            session: session.map_err(|source| Error::Query { source })?,
            options,
            interrupts,
        })
    }

    /// Reopens the recording, to see what has been recorded since.
    ///
    /// # Errors
    /// When it cannot be opened; the asker then keeps the previous state.
    pub fn refresh(&mut self) -> Result<(), Error> {
        let reader = opened(self.path(), &self.options)?;
        self.look_at(reader)
    }

    /// Switches to another opened recording, if it differs.
    ///
    /// # Errors
    /// When it cannot be read; the asker then keeps the previous recording.
    pub fn look_at(&mut self, reader: Arc<Reader>) -> Result<(), Error> {
        if Arc::ptr_eq(&reader, &self.reader) {
            return Ok(());
        }
        let session = Session::new(Arc::clone(&reader), self.options.clone());
        self.session = session.map_err(|source| Error::Query { source })?;
        self.reader = reader;
        Ok(())
    }

    /// Returns the recording's folder.
    pub fn path(&self) -> &Path {
        self.reader.recording().dir()
    }

    /// Returns how much of the recording is visible.
    pub fn extent(&self) -> Extent {
        self.session.extent()
    }

    /// Returns the names of SQL functions.
    pub fn sql_functions(&self) -> &[String] {
        self.session.function_names()
    }

    /// Starts a query for at most `max_rows` rows.
    ///
    /// # Errors
    /// When the query is wrong, or Ctrl-C is pressed.
    pub fn ask(&mut self, sql: &str, max_rows: Option<usize>) -> Result<Answer, Error> {
        self.interrupts.forget();
        let answer = self.interrupts.wait(self.session.ask(sql, max_rows))?;
        answer.map_err(|source| Error::Query { source })
    }

    /// Waits for the next rows; `None` at the end.
    ///
    /// # Errors
    /// When they cannot be computed, or Ctrl-C is pressed.
    pub fn next(&mut self, answer: &mut Answer) -> Result<Option<RecordBatch>, Error> {
        let batch = self.interrupts.wait(answer.next_batch())?;
        batch.transpose().map_err(|source| Error::Query { source })
    }

    /// Returns the names and types of the columns of the answer to `sql`.
    ///
    /// # Errors
    /// When the query is wrong.
    pub fn types(&mut self, sql: &str) -> Result<Vec<(String, String)>, Error> {
        let answer = self.ask(sql, Some(0))?;
        Ok(super::cells::types(answer.schema()))
    }

    /// Writes all rows and returns their number.
    ///
    /// # Errors
    /// When they cannot be computed or written, or Ctrl-C is pressed. The output is then truncated.
    pub fn write<W: Write + Send>(
        &mut self,
        answer: Answer,
        format: Format,
        out: W,
    ) -> Result<u64, Error> {
        let stop = answer.stopper();
        let (done, finished) = tokio::sync::oneshot::channel();
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut answer = answer;
                let result = query::output::write(&mut answer, format, out);
                // The waiting thread may have been interrupted.
                let _ = done.send(());
                result
            });
            let interrupted = self.interrupts.wait(finished);
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

fn opened(path: &Path, options: &Options) -> Result<Arc<Reader>, Error> {
    let reader = Reader::open(path, &options.temp_dir);
    reader.map(Arc::new).map_err(|source| Error::Query {
        source: source.into(),
    })
}
