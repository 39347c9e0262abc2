//! Several recordings as one set of tables.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use arrow::record_batch::RecordBatch;
use query::runs::find;
use query::{Options, Runs};
use server::past::completed;

use crate::answer::Answer;
use crate::error::{Error, Result};

/// Several recordings that are queried together. Every table has the column `run` before its own, and the table `runs`
/// lists them. Each shows its content at the time of its opening.
///
/// ```no_run
/// use hindsight::Recordings;
///
/// let runs = Recordings::open(["runs/*"])?;
/// let calls = runs.sql("SELECT run, count(*) FROM calls GROUP BY run")?;
/// # Ok::<(), hindsight::Error>(())
/// ```
pub struct Recordings {
    runs: Runs,
    /// What was left out at the opening.
    left_out: Mutex<Vec<String>>,
}

impl Recordings {
    /// Opens recordings, folders of them, and patterns such as `runs/*`. [`Self::warnings`] names what is left out.
    ///
    /// ```no_run
    /// let runs = hindsight::Recordings::open(["before", "after"])?;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// No recording is found, or none can be read.
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Self> {
        Self::open_with(paths, Options::default())
    }

    /// As [`Self::open`], with other limits.
    ///
    /// ```no_run
    /// use hindsight::{Options, Recordings};
    ///
    /// let runs = Recordings::open_with(["runs"], Options { cores: 1, ..Options::default() })?;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_with<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: Options,
    ) -> Result<Self> {
        let words = paths.into_iter().map(|path| path.as_ref().to_owned());
        let words: Vec<PathBuf> = words.collect();
        let found = find(&words);
        let left_out = found.nothing.iter();
        let left_out = left_out.map(|(path, why)| format!("{} is left out: {why}", path.display()));
        for folder in &found.folders {
            completed(folder).map_err(Error::of_failure)?;
        }
        Ok(Self {
            left_out: Mutex::new(left_out.collect()),
            runs: Runs::open(&found.folders, &options).map_err(Error::of_query)?,
        })
    }

    /// Returns the names in the column `run`, in the order of the paths.
    ///
    /// ```no_run
    /// let runs = hindsight::Recordings::open(["runs"])?;
    /// println!("{}", runs.names().collect::<Vec<_>>().join(", "));
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.runs.names()
    }

    /// Answers a query with all rows.
    ///
    /// ```no_run
    /// # let runs = hindsight::Recordings::open(["runs"])?;
    /// let slow = runs.sql("SELECT run, max(dur_ns) FROM calls WHERE function = 'parse' GROUP BY run")?;
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Recording::sql`](crate::Recording::sql).
    pub fn sql(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.stream(sql)?.collect()
    }

    /// Answers a query; the rows are computed while they are read.
    ///
    /// ```no_run
    /// # let runs = hindsight::Recordings::open(["runs"])?;
    /// for batch in runs.stream("SELECT * FROM calls")? {
    ///     println!("{} rows", batch?.num_rows());
    /// }
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Self::sql`].
    pub fn stream(&self, sql: &str) -> Result<Answer> {
        let answer = self.runs.sql(sql).map_err(Error::of_query)?;
        Ok(Answer::new(answer))
    }

    /// As [`Self::stream`], for asynchronous callers.
    ///
    /// ```no_run
    /// # async fn example(runs: &hindsight::Recordings) -> hindsight::Result<()> {
    /// let mut answer = runs.ask("SELECT * FROM runs").await?;
    /// let first = answer.next_batch().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Self::sql`].
    pub async fn ask(&self, sql: &str) -> Result<Answer> {
        let answer = self.runs.ask(sql, None).await.map_err(Error::of_query)?;
        Ok(Answer::new(answer))
    }

    /// Returns what could not be read since the last time, each as a sentence: answers lack it.
    ///
    /// ```no_run
    /// let runs = hindsight::Recordings::open(["runs"])?;
    /// let answer = runs.sql("SELECT count(*) FROM calls")?;
    /// for warning in runs.warnings() {
    ///     eprintln!("{warning}");
    /// }
    /// # Ok::<(), hindsight::Error>(())
    /// ```
    pub fn warnings(&self) -> Vec<String> {
        let mut left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let mut warnings = std::mem::take(&mut *left_out);
        warnings.extend(self.runs.warnings());
        warnings
    }
}

impl std::fmt::Debug for Recordings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
