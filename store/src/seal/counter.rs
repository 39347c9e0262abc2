//! Numbers the events of a recording that is being written, without writing: how many there are so far, and the numbers
//! of the last stops of its threads.
//!
//! Each call continues from the last one, so it costs only what was recorded meanwhile. The numbers are those of
//! sealing, because the same code assigns them.

use std::collections::BTreeMap;

use super::merge::Merge;
use super::pair::{Numbered, Sink};
use super::state::SealState;
use crate::columns::{CallEnd, CallStart, CaptureRow, EventRow, StateRow};
use crate::error::{Error, Result};
use crate::format::FileKind;
use crate::log::{FrameBody, LogReader, Step};
use crate::recording::Recording;

/// How often the recorder may remove segments that are being read before that is an error.
const ATTEMPTS: u32 = 8;

/// A reader of a recording's numbers.
pub struct Counter {
    recording: Recording,
    /// `None` once everything is sealed: no more records will come.
    reader: Option<LogReader>,
    merge: Merge,
    out: Numbered<Stops>,
}

impl Counter {
    /// Begins after the sealed part of the recording; it does not know the stops that are already sealed.
    ///
    /// # Errors
    /// When the state of sealing cannot be read.
    pub fn open(recording: &Recording) -> Result<Self> {
        let mut counter = Self {
            recording: recording.clone(),
            reader: None,
            merge: Merge::default(),
            out: Numbered {
                sink: Stops::default(),
                clock: recording.clock(),
                next_seq: 0,
                last_ts_ns: 0,
            },
        };
        counter.begin()?;
        Ok(counter)
    }

    /// Adds the records since the last call, as far as readers can see them.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn advance(&mut self) -> Result<()> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.read() {
                // The recorder has meanwhile sealed the next part of the log.
                Err(Error::SegmentMissing { .. }) if attempt < ATTEMPTS => self.begin()?,
                read => return read,
            }
        }
    }

    /// Returns the number of events; the last one has one less as its number.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.out.next_seq
    }

    /// Returns the number of a thread's last stop, unless it was sealed before the counter was opened.
    #[must_use]
    pub fn last_stop(&self, tid: u32) -> Option<u64> {
        self.out.sink.by_thread.get(&tid).copied()
    }

    fn begin(&mut self) -> Result<()> {
        let path = self.recording.seal_state_path();
        let header = self.recording.file_header(FileKind::SealState);
        let state = SealState::read(&path, header)?;
        self.merge = state.pending(&path)?;
        self.out.next_seq = state.next_seq;
        self.out.last_ts_ns = state.last_ts_ns;
        self.reader = match state.closed {
            true => None,
            false => Some(self.recording.log_at(state.position)),
        };
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        loop {
            let Step::Frame(frame) = reader.next_frame()? else {
                return Ok(());
            };
            match frame.body {
                FrameBody::Block(block) => {
                    self.merge
                        .push_block(block.ring, block.tenancy, block.bytes);
                }
                FrameBody::Control(control) => self.merge.push_control(*control),
                FrameBody::Watermark { ticks } => {
                    self.merge.set_watermark(ticks);
                    while self.merge.is_releasing() {
                        self.merge.release(&mut u64::MAX.clone(), &mut self.out)?;
                    }
                }
            }
        }
    }
}

/// Keeps the last stop of each thread.
#[derive(Default)]
struct Stops {
    by_thread: BTreeMap<u32, u64>,
}

impl Sink for Stops {
    fn call(&mut self, _: Option<u32>, _: &CallStart, _: i64, _: &CallEnd) -> Result<()> {
        Ok(())
    }

    fn event(&mut self, _: &EventRow<'_>) -> Result<()> {
        Ok(())
    }

    fn state(&mut self, row: &StateRow<'_>) -> Result<()> {
        self.by_thread.insert(row.pause.tid, row.seq);
        Ok(())
    }

    fn capture(&mut self, _: &CaptureRow<'_>) -> Result<()> {
        Ok(())
    }
}
