//! What a recording is of, as `hindsight info` shows it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use query::Session;
use store::recording::RecordingState;
use store::{Reader, labels};

use crate::error::{Error, Result};

/// A recording as a whole.
///
/// ```no_run
/// # let recording = hindsight::Recording::open("ten")?;
/// let info = recording.info()?;
/// println!("{} made {} calls in {:?}", info.program, info.calls, info.duration);
/// # Ok::<(), hindsight::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// The program, as it was called.
    pub program: String,
    /// Its arguments, with replacement characters for invalid UTF-8.
    pub arguments: Vec<String>,
    /// Its working directory.
    pub folder: String,
    /// The number of its process, where that is recorded.
    pub pid: Option<i64>,
    /// Whether the recording was closed when it was opened.
    pub state: State,
    /// When the recording began: where `ts_ns` is 0.
    pub start: SystemTime,
    /// When its last event was.
    pub last: SystemTime,
    /// How long the program was recorded.
    pub duration: Duration,
    /// How the program ended.
    pub end: End,
    /// Number of calls, unfinished ones included.
    pub calls: u64,
    /// Number of events; the last one has `seq` one less.
    pub events: u64,
    /// What the user called this run, by key.
    pub labels: BTreeMap<String, String>,
}

/// The stage of a recording at its opening.
///
/// ```no_run
/// # let recording = hindsight::Recording::open("ten")?;
/// if recording.info()?.state == hindsight::State::Live {
///     println!("open it again to see more");
/// }
/// # Ok::<(), hindsight::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It was closed and is final.
    Closed,
    /// A recorder was writing it.
    Live,
    /// Its recorder did not close it.
    Incomplete,
}

/// How the program ended, as far as that is recorded.
///
/// ```no_run
/// # let recording = hindsight::Recording::open("ten")?;
/// if let hindsight::End::Signal(name) = recording.info()?.end {
///     println!("ended by {name}");
/// }
/// # Ok::<(), hindsight::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It exited with this code.
    Code(i64),
    /// A signal of this name ended it.
    Signal(String),
    /// The recorder detached and the program kept running.
    Detached,
    /// The recording does not show an end.
    NotSeen,
}

impl Info {
    pub(crate) fn gather(reader: &Reader, session: &Session) -> Result<Self> {
        let extent = session.extent();
        let manifest = reader.recording().manifest();
        let (program, arguments) = match manifest.argv.split_first() {
            Some((program, arguments)) => (program.clone(), arguments.to_vec()),
            None => (String::new(), Vec::new()),
        };
        let at = |ns: i64| match u64::try_from(ns) {
            Ok(after) => UNIX_EPOCH + Duration::from_nanos(after),
            Err(_) => UNIX_EPOCH - Duration::from_nanos(ns.unsigned_abs()),
        };
        let started = "select value from events where kind = 'process_start' order by seq limit 1";
        let calls = number(session, "select count(*) from calls")?;
        Ok(Self {
            program,
            arguments,
            folder: manifest.cwd.clone(),
            pid: number(session, started)?,
            state: match extent.state {
                RecordingState::Closed => State::Closed,
                RecordingState::Live => State::Live,
                RecordingState::Interrupted => State::Incomplete,
            },
            start: at(manifest.start_unix_ns),
            last: at(manifest.start_unix_ns.saturating_add(extent.last_ts_ns)),
            duration: Duration::from_nanos(extent.duration_ns),
            end: end(session)?,
            calls: calls.map_or(0, i64::unsigned_abs),
            events: extent.events,
            labels: labels::read(reader.recording()).map_err(Error::of_store)?,
        })
    }
}

fn end(session: &Session) -> Result<End> {
    let sql = "select kind, value, aux from events where kind in ('process_exit', 'detached') order by seq desc limit 1";
    let cells = first_row(session, sql)?;
    let Some([Some(kind), value, signal]) = cells.as_deref() else {
        return Ok(End::NotSeen);
    };
    let code = value.as_ref().and_then(|value| value.parse().ok());
    Ok(match (kind.as_str(), signal, code) {
        ("detached", _, _) => End::Detached,
        (_, Some(signal), _) => End::Signal(signal.clone()),
        (_, None, Some(code)) => End::Code(code),
        (_, None, None) => End::NotSeen,
    })
}

fn number(session: &Session, sql: &str) -> Result<Option<i64>> {
    let cells = first_row(session, sql)?;
    let cell = cells.and_then(|cells| cells.into_iter().next().flatten());
    Ok(cell.and_then(|cell| cell.parse().ok()))
}

/// Returns the cells of the first row as text; null is `None`.
fn first_row(session: &Session, sql: &str) -> Result<Option<Vec<Option<String>>>> {
    let batch = session.sql(sql).map_err(Error::of_query)?.next();
    let batch = batch.transpose().map_err(Error::of_query)?;
    let cells = batch.map(|batch: RecordBatch| {
        let columns = batch.columns().iter();
        let cells = columns.map(|column| {
            let options = FormatOptions::default();
            let text = ArrayFormatter::try_new(column, &options)?
                .value(0)
                .to_string();
            Ok((!column.is_null(0)).then_some(text))
        });
        cells.collect::<Result<_, arrow::error::ArrowError>>()
    });
    cells
        .transpose()
        .map_err(|error| Error::of_query(error.into()))
}
