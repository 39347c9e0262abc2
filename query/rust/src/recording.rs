//! An opened recording.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::record_batch::RecordBatch;
use query::{Options, Session};
use replay::{CoreOptions, locate};
use server::past::{Past, Position, completed};
use server::transport::InProcess;
use store::Reader;

use crate::answer::Answer;
use crate::error::{Error, Result};
use crate::info::Info;
use crate::moment::Moment;

/// A recording, with its content at the opening. It may be used from any thread.
///
/// ```no_run
/// let recording = hindsight::Recording::open("ten")?;
/// let slowest = recording.sql("SELECT * FROM calls ORDER BY dur_ns DESC LIMIT 10")?;
/// # Ok::<(), hindsight::Error>(())
/// ```
pub struct Recording {
    session: Session,
    reader: Arc<Reader>,
    /// What answers about moments; made when it is needed first.
    states: Mutex<Option<InProcess>>,
}

impl Recording {
    /// Opens the recording that `path` names, with or without its ending `.hindsight`, or a core file. It may still be
    /// being written: open it again to see what has been recorded since.
    ///
    /// What its recorder has not sealed is sealed into a temporary folder, which takes longer for a long recording. The
    /// process's allocator keeps up to 64 MiB of freed memory per thread from then on.
    ///
    /// ```no_run
    /// let recording = hindsight::Recording::open("ten.hindsight")?;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotARecording`]; [`Error::Unreadable`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// As [`Self::open`], with other limits.
    ///
    /// ```no_run
    /// use hindsight::{Options, Recording};
    ///
    /// let recording = Recording::open_with("ten", Options { cores: 1, ..Options::default() })?;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let folder = locate(path.as_ref(), &CoreOptions::default()).map_err(Error::of_replay)?;
        completed(&folder).map_err(Error::of_failure)?;
        let reader = Reader::open(&folder, &options.temp_dir).map_err(Error::of_store)?;
        let reader = Arc::new(reader);
        Ok(Self {
            session: Session::new(Arc::clone(&reader), options).map_err(Error::of_query)?,
            reader,
            states: Mutex::default(),
        })
    }

    /// Returns the recording's folder.
    ///
    /// ```no_run
    /// let recording = hindsight::Recording::open("ten")?;
    /// assert!(recording.path().ends_with("ten.hindsight"));
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        self.reader.recording().dir()
    }

    /// Returns what it is a recording of.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// println!("{} events", recording.info()?.events);
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// A file of the recording cannot be read.
    pub fn info(&self) -> Result<Info> {
        Info::gather(&self.reader, &self.session)
    }

    /// Answers a query with all rows; none for an answer without rows. [`Self::stream`] needs less memory.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// let batches = recording.sql("SELECT function, count(*) FROM calls GROUP BY function")?;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Sql`] for a wrong query; [`Error::Memory`]; [`Error::Unreadable`]; [`Error::Failed`].
    pub fn sql(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.stream(sql)?.collect()
    }

    /// Answers a query; the rows are computed while they are read.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// for batch in recording.stream("SELECT * FROM events")? {
    ///     println!("{} rows", batch?.num_rows());
    /// }
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Self::sql`].
    pub fn stream(&self, sql: &str) -> Result<Answer> {
        let answer = self.session.sql(sql).map_err(Error::of_query)?;
        Ok(Answer::new(answer))
    }

    /// As [`Self::stream`], for asynchronous callers.
    ///
    /// ```no_run
    /// # async fn example(recording: &hindsight::Recording) -> hindsight::Result<()> {
    /// let mut answer = recording.ask("SELECT * FROM gaps").await?;
    /// let first = answer.next_batch().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Self::sql`].
    pub async fn ask(&self, sql: &str) -> Result<Answer> {
        let answer = self.session.ask(sql, None).await;
        Ok(Answer::new(answer.map_err(Error::of_query)?))
    }

    /// Returns the moment just after event `seq`, in the innermost frame of the event's thread.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// println!("{}", recording.at(7)?.value("n")?.text);
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoMoment`]: there is no such event.
    pub fn at(&self, seq: u64) -> Result<Moment<'_>> {
        let states = self.states()?;
        let position = states.past().position_at(Some(seq));
        Ok(Moment::new(self, position.map_err(Error::of_failure)?))
    }

    /// Returns the moment that the verb `goto` goes to: `last`, `crash`, `50%`, `1.5s`, `@note`, `output:17`, or
    /// `12+300` if every instruction is recorded.
    ///
    /// ```no_run
    /// # let recording = hindsight::Recording::open("ten")?;
    /// let crash = recording.goto("crash")?;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoMoment`]: there is no such place.
    pub fn goto(&self, place: &str) -> Result<Moment<'_>> {
        let states = self.states()?;
        let past = states.past();
        let mut position = past.go_to_target(place).map_err(Error::of_failure)?;
        if position.steps == 0 {
            // An event without a thread keeps the one that was asked before.
            let of_event = past.position_at(Some(position.seq));
            position = of_event.map_err(Error::of_failure)?;
        }
        Ok(Moment::new(self, position))
    }

    /// Runs `work` at a position; one at a time.
    pub(crate) fn look<T>(
        &self,
        position: Position,
        work: impl FnOnce(&mut InProcess) -> Result<T>,
    ) -> Result<T> {
        let mut states = self.states()?;
        states.past().return_to(position);
        work(&mut states)
    }

    fn states(&self) -> Result<States<'_>> {
        let mut guard = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if guard.is_none() {
            let past = Past::new(Arc::clone(&self.reader)).map_err(Error::of_failure)?;
            *guard = Some(InProcess::new(past));
        }
        Ok(States(guard))
    }
}

/// What answers about moments, for one question at a time.
struct States<'r>(MutexGuard<'r, Option<InProcess>>);

impl std::ops::Deref for States<'_> {
    type Target = InProcess;

    fn deref(&self) -> &InProcess {
        self.0.as_ref().expect("made before")
    }
}

impl std::ops::DerefMut for States<'_> {
    fn deref_mut(&mut self) -> &mut InProcess {
        self.0.as_mut().expect("made before")
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recording({})", self.path().display())
    }
}
