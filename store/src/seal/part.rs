//! Writes parts: a file of calls and a file of other events each, one of states if threads were stopped, and one of
//! captures if calls have any. The files are drafts until they are complete and on the disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};

use super::crash;
use super::pair::Sink;
use crate::columns::{
    CallEnd, CallStart, CallsWriter, CaptureRow, CapturesWriter, EventRow, EventsWriter, FileSum,
    StateRow, StatesWriter, Summing,
};
use crate::error::{Error, Result};
use crate::storage::{Disk, FILE_MODE, Storage};

/// Ending of an incomplete file.
const DRAFT_SUFFIX: &str = ".draft";

/// The content of a part. Its events are those with `first_seq <= seq < end_seq`, except that the enter event of a call
/// is in the part of its leave event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Number of the part, from 0.
    pub number: u32,
    /// First event.
    pub first_seq: u64,
    /// The event after the last one.
    pub end_seq: u64,
    /// Lower bound of the part's event times, in nanoseconds; calls may have begun before.
    pub from_ts_ns: i64,
    /// Time of the last event, in nanoseconds.
    pub to_ts_ns: i64,
    /// Rows of calls, including unfinished ones.
    pub calls: u64,
    /// How many of them have no leave event: they were still open when the recording ended, or only entries are
    /// recorded.
    pub unfinished: u64,
    /// Rows of other events.
    pub events: u64,
    /// The file of calls.
    pub calls_file: FileSum,
    /// The file of events.
    pub events_file: FileSum,
    /// Rows of states: pauses.
    #[serde(default)]
    pub states: u64,
    /// The file of states; `None` if it would have no row.
    #[serde(default)]
    pub states_file: Option<FileSum>,
    /// Rows of captures.
    #[serde(default)]
    pub captures: u64,
    /// The file of captures; `None` if it would have no row.
    #[serde(default)]
    pub captures_file: Option<FileSum>,
}

/// Returns whether a file of that name, in the columns folder, is one of a part, whole or begun.
pub(crate) fn is_part_file(name: &str) -> bool {
    Part::number_from_name(name).is_some()
}

impl Part {
    /// Returns the file of calls of part `number` in the columns folder `dir`.
    pub fn calls_path(dir: &Path, number: u32) -> PathBuf {
        dir.join(format!("calls-{number:06}.parquet"))
    }

    /// Returns the file of events of part `number` in the columns folder `dir`.
    pub fn events_path(dir: &Path, number: u32) -> PathBuf {
        dir.join(format!("events-{number:06}.parquet"))
    }

    /// Returns the file of states of part `number` in the columns folder `dir`.
    pub fn states_path(dir: &Path, number: u32) -> PathBuf {
        dir.join(format!("states-{number:06}.parquet"))
    }

    /// Returns the file of captures of part `number` in the columns folder `dir`.
    pub fn captures_path(dir: &Path, number: u32) -> PathBuf {
        dir.join(format!("captures-{number:06}.parquet"))
    }

    /// Returns the part number of the file `name`, draft or not.
    pub(super) fn number_from_name(name: &str) -> Option<u32> {
        let name = name.strip_suffix(DRAFT_SUFFIX).unwrap_or(name);
        let name = name.strip_suffix(".parquet")?;
        let number = name
            .strip_prefix("calls-")
            .or_else(|| name.strip_prefix("events-"))
            .or_else(|| name.strip_prefix("states-"))
            .or_else(|| name.strip_prefix("captures-"))?;
        let plain = number.len() >= 6 && number.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| number.parse().ok()).flatten()
    }
}

/// Writes parts into one folder, one after the other. A part begins with its first row.
pub(super) struct Parts {
    dir: PathBuf,
    /// Whether files must survive a crash of the machine.
    durable: bool,
    next_number: u32,
    current: Option<PartWriter>,
    unfinished: u64,
}

struct PartWriter {
    calls: CallsWriter<Summed>,
    events: EventsWriter<Summed>,
    /// Opened at the part's first pause.
    states: Option<StatesWriter<Summed>>,
    /// Opened at the part's first capture.
    captures: Option<CapturesWriter<Summed>>,
}

impl Parts {
    /// Returns a writer whose first part has number `next_number`.
    pub(super) fn new(dir: &Path, durable: bool, next_number: u32) -> Self {
        Self {
            dir: dir.to_path_buf(),
            durable,
            next_number,
            current: None,
            unfinished: 0,
        }
    }

    /// Returns the numbers of calls and of events in the current part.
    pub(super) fn rows(&self) -> (u64, u64) {
        let rows = |part: &PartWriter| (part.calls.rows(), part.events.rows());
        self.current.as_ref().map_or((0, 0), rows)
    }

    /// Adds a call that was still open at the end of the recording.
    pub(super) fn unfinished(
        &mut self,
        tid: Option<u32>,
        start: &CallStart,
        child_ns: i64,
    ) -> Result<()> {
        self.call(tid, start, child_ns, &CallEnd::Unfinished)
    }

    /// Completes the current part. Returns `None` when it has no rows.
    pub(super) fn finish(
        &mut self,
        seqs: Range<u64>,
        ts_ns: RangeInclusive<i64>,
    ) -> Result<Option<Part>> {
        let Some(part) = self.current.take() else {
            return Ok(None);
        };
        let number = self.next_number;
        let calls_path = Part::calls_path(&self.dir, number);
        let events_path = Part::events_path(&self.dir, number);
        let (calls, events) = (part.calls.rows(), part.events.rows());
        let calls_out = part.calls.finish().map_err(columns_error(&calls_path))?;
        let events_out = part.events.finish().map_err(columns_error(&events_path))?;
        let calls_file = calls_out.publish(&calls_path, self.durable)?;
        let events_file = events_out.publish(&events_path, self.durable)?;
        let (states, states_file) = self.finish_states(part.states)?;
        let (captures, captures_file) = self.finish_captures(part.captures)?;
        if self.durable {
            crash::point()?;
            Disk.sync_dir(&self.dir)
                .map_err(Error::io("sync", &self.dir))?;
            crash::point()?;
        }
        self.next_number += 1;
        Ok(Some(Part {
            number,
            first_seq: seqs.start,
            end_seq: seqs.end,
            from_ts_ns: *ts_ns.start(),
            to_ts_ns: *ts_ns.end(),
            calls,
            unfinished: std::mem::take(&mut self.unfinished),
            events,
            calls_file,
            events_file,
            states,
            states_file,
            captures,
            captures_file,
        }))
    }

    /// Completes the file of states, if there is one; returns its rows and its sum.
    fn finish_states(
        &self,
        states: Option<StatesWriter<Summed>>,
    ) -> Result<(u64, Option<FileSum>)> {
        let Some(states) = states else {
            return Ok((0, None));
        };
        let path = Part::states_path(&self.dir, self.next_number);
        let rows = states.rows();
        let out = states.finish().map_err(columns_error(&path))?;
        Ok((rows, Some(out.publish(&path, self.durable)?)))
    }

    /// The same for the file of captures.
    fn finish_captures(
        &self,
        captures: Option<CapturesWriter<Summed>>,
    ) -> Result<(u64, Option<FileSum>)> {
        let Some(captures) = captures else {
            return Ok((0, None));
        };
        let path = Part::captures_path(&self.dir, self.next_number);
        let rows = captures.rows();
        let out = captures.finish().map_err(columns_error(&path))?;
        Ok((rows, Some(out.publish(&path, self.durable)?)))
    }

    #[inline]
    fn current(&mut self) -> Result<&mut PartWriter> {
        match &mut self.current {
            Some(part) => Ok(part),
            empty => {
                let calls_path = draft(&Part::calls_path(&self.dir, self.next_number));
                let events_path = draft(&Part::events_path(&self.dir, self.next_number));
                let calls = CallsWriter::new(Summed::create(&calls_path)?);
                let events = EventsWriter::new(Summed::create(&events_path)?);
                Ok(empty.insert(PartWriter {
                    calls: calls.map_err(columns_error(&calls_path))?,
                    events: events.map_err(columns_error(&events_path))?,
                    states: None,
                    captures: None,
                }))
            }
        }
    }

    #[cold]
    fn error(&self, events: bool, source: ParquetError) -> Error {
        let path = match events {
            true => Part::events_path(&self.dir, self.next_number),
            false => Part::calls_path(&self.dir, self.next_number),
        };
        columns_error(&path)(source)
    }
}

impl Sink for Parts {
    #[inline]
    fn call(
        &mut self,
        tid: Option<u32>,
        start: &CallStart,
        child_ns: i64,
        end: &CallEnd,
    ) -> Result<()> {
        self.unfinished += u64::from(matches!(end, CallEnd::Unfinished | CallEnd::NotRecorded));
        let written = self.current()?.calls.push(tid, start, child_ns, end);
        written.map_err(|source| self.error(false, source))
    }

    fn event(&mut self, row: &EventRow<'_>) -> Result<()> {
        let written = self.current()?.events.push(row);
        written.map_err(|source| self.error(true, source))
    }

    fn state(&mut self, row: &StateRow<'_>) -> Result<()> {
        let path = Part::states_path(&self.dir, self.next_number);
        let states = match &mut self.current()?.states {
            Some(states) => states,
            empty => {
                let states = StatesWriter::new(Summed::create(&draft(&path))?);
                empty.insert(states.map_err(columns_error(&path))?)
            }
        };
        states.push(row).map_err(columns_error(&path))
    }

    fn capture(&mut self, row: &CaptureRow<'_>) -> Result<()> {
        let path = Part::captures_path(&self.dir, self.next_number);
        let captures = match &mut self.current()?.captures {
            Some(captures) => captures,
            empty => {
                let captures = CapturesWriter::new(Summed::create(&draft(&path))?);
                empty.insert(captures.map_err(columns_error(&path))?)
            }
        };
        captures.push(row).map_err(columns_error(&path))
    }
}

/// A file that sums up its content while it is written.
struct Summed {
    file: File,
    sum: Summing,
}

impl Summed {
    fn create(path: &Path) -> Result<Self> {
        let mut options = File::options();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(FILE_MODE);
        Ok(Self {
            file: options.open(path).map_err(Error::io("create", path))?,
            sum: Summing::default(),
        })
    }

    /// Gives the draft its final name.
    fn publish(self, path: &Path, durable: bool) -> Result<FileSum> {
        crash::point()?;
        if durable {
            self.file.sync_data().map_err(Error::io("sync", path))?;
        }
        crash::point()?;
        fs::rename(draft(path), path).map_err(Error::io("rename to", path))?;
        Ok(self.sum.finish())
    }
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.sum.add(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns whether the file `name` is incomplete.
pub(super) fn is_draft(name: &str) -> bool {
    name.ends_with(DRAFT_SUFFIX)
}

fn draft(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(DRAFT_SUFFIX);
    PathBuf::from(name)
}

fn columns_error(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    let path = path.to_path_buf();
    move |source| Error::Columns { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_number() {
        let dir = Path::new("columns");
        for number in [0, 41, 1_000_000] {
            for path in [
                Part::calls_path(dir, number),
                Part::events_path(dir, number),
                Part::states_path(dir, number),
                Part::captures_path(dir, number),
            ] {
                for path in [draft(&path), path] {
                    let name = path
                        .file_name()
                        .and_then(|n| n.to_str())
                        .unwrap()
                        .to_string();
                    assert_eq!(Part::number_from_name(&name), Some(number), "{name}");
                }
            }
        }
        for name in [
            "seal.state",
            "calls-1.parquet",
            "calls-00000x.parquet",
            "000001.seg",
        ] {
            assert_eq!(Part::number_from_name(name), None, "{name}");
        }
    }
}
