//! Drives sealing: reads the log, releases records, rolls parts, writes checkpoints and removes finished segments.
//!
//! Order of a checkpoint: the part's files are synced and get their names, the definitions are synced, `seal.state` is
//! replaced, and only then are log segments removed. A crash between any two of these leaves files that the next
//! sealer removes or cuts, and a state from which the same rows come again.

use std::fs;
use std::path::{Path, PathBuf};

use super::crash;
use super::definitions::{Definitions, DefinitionsFile, remove_if_there};
use super::merge::Merge;
use super::pair::Numbered;
use super::part::{self, Part, Parts};
use super::state::SealState;
use super::terms::{Ending, Progress, SealOptions, Sealed, SealedPart};
use crate::columns::{EventKind, FileSum, SealedFile};
use crate::error::{Error, Result};
use crate::format::{DEFINITIONS_FILE, FileKind};
use crate::log::{End, FrameBody, LogReader, Step, segment_path, segments};
use crate::recording::Recording;

/// Bytes of blocks that count as one event against the budget of a step.
const BYTES_PER_BUDGET: u64 = 64;
/// Events released between two calls of the progress callback.
const CLOSE_STEP: u64 = 1 << 20;

/// A sealer of one recording.
pub struct Sealer {
    recording: Recording,
    options: SealOptions,
    /// Folder of new parts; `None` for the recording's own folder.
    out_dir: Option<PathBuf>,
    reader: Option<LogReader>,
    merge: Merge,
    out: Numbered<Parts>,
    definitions: Definitions,
    /// As of the last checkpoint, and the parts since.
    state: SealState,
    /// Parts in `state` that are in the recording's own folder.
    own_parts: usize,
    part_log_bytes: u64,
    bytes_done: u64,
    bytes_total: u64,
    torn_bytes: u64,
}

impl Sealer {
    /// Seals into the recording itself, from where an earlier sealer stopped. Only one may run at a time.
    ///
    /// # Errors
    /// When the state, the log or the folder cannot be used.
    pub fn own(recording: &Recording, options: SealOptions) -> Result<Self> {
        let sealer = Self::resume(recording, None, options)?;
        sealer.remove_strays()?;
        if !options.keep_log {
            sealer.drop_segments()?;
        }
        Ok(sealer)
    }

    /// Seals the unsealed rest of the recording into the folder `out_dir`, and writes nothing to the recording.
    ///
    /// # Errors
    /// When the state, the log or the folder cannot be used.
    pub fn aside(recording: &Recording, out_dir: &Path, options: SealOptions) -> Result<Self> {
        Self::resume(recording, Some(out_dir.to_path_buf()), options)
    }

    fn resume(
        recording: &Recording,
        out_dir: Option<PathBuf>,
        options: SealOptions,
    ) -> Result<Self> {
        let state_path = recording.seal_state_path();
        let header = recording.file_header(FileKind::SealState);
        let state = SealState::read(&state_path, header)?;
        let dir = out_dir.clone().unwrap_or_else(|| recording.columns_dir());
        let definitions_len = match out_dir {
            Some(_) => 0,
            None => state.definitions_len,
        };
        let header = recording.file_header(FileKind::Definitions);
        let definitions = Definitions::resume(dir.join(DEFINITIONS_FILE), header, definitions_len)?;
        let next_number = state.parts.last().map_or(0, |part| part.number + 1);
        let mut sealer = Self {
            options,
            reader: match state.closed {
                true => None,
                false => Some(recording.log_at(state.position)),
            },
            merge: state.pending(&state_path)?,
            out: Numbered {
                sink: Parts::new(&dir, out_dir.is_none(), next_number),
                clock: recording.clock(),
                next_seq: state.next_seq,
                last_ts_ns: state.last_ts_ns,
            },
            definitions,
            own_parts: state.parts.len(),
            state,
            recording: recording.clone(),
            out_dir,
            part_log_bytes: 0,
            bytes_done: 0,
            bytes_total: 0,
            torn_bytes: 0,
        };
        sealer.bytes_total = sealer.bytes_left()?;
        Ok(sealer)
    }

    /// Returns the progress at the last checkpoint.
    pub fn state(&self) -> &SealState {
        &self.state
    }

    /// Reads on and numbers about `max_events` events, fewer when the log has no more for now.
    ///
    /// # Errors Those of the log's reader, or when columns cannot be written. The sealer is then unusable; another
    /// one resumes from the last checkpoint.
    pub fn step(&mut self, max_events: u64) -> Result<Progress> {
        let mut budget = max_events.max(1);
        loop {
            if self.merge.is_releasing() {
                self.merge.release(&mut budget, &mut self.out)?;
                if self.merge.is_releasing() {
                    return self.progress(false);
                }
                self.roll_if_full()?;
            }
            if budget == 0 {
                return self.progress(false);
            }
            if !self.read_frame(&mut budget)? {
                return self.progress(true);
            }
        }
    }

    /// Numbers the rest and completes the last part, with unfinished calls at its end. Calls `progress`
    /// from time to time. If the recording itself is sealed and its log continues, this is a checkpoint.
    ///
    /// # Errors
    /// As for [`Self::step`].
    pub fn finish(self, ending: Ending, mut progress: impl FnMut(&Progress)) -> Result<Sealed> {
        self.finish_while(ending, |step| {
            progress(step);
            true
        })
    }

    /// As [`Self::finish`], as long as `goes_on` returns true; it is called from time to time. Otherwise the next
    /// reader that opens the recording seals the rest, as after a recorder that was killed.
    ///
    /// # Errors
    /// As for [`Self::step`]; [`Error::SealingLeft`].
    pub fn finish_while(
        mut self,
        ending: Ending,
        mut goes_on: impl FnMut(&Progress) -> bool,
    ) -> Result<Sealed> {
        let there = self.bytes_total;
        loop {
            let step = self.step(CLOSE_STEP)?;
            if !goes_on(&step) {
                return Err(self.left());
            }
            // A program may write faster than this reads: a reader stops at the end that it saw when it began.
            let has_read_all = self.out_dir.is_some() && self.bytes_done >= there;
            let may_end = ending == Ending::LiveTail && !self.merge.is_releasing();
            if step.caught_up || has_read_all && may_end {
                break;
            }
        }
        match (ending, &self.out_dir) {
            _ if self.state.closed => {}
            (Ending::Close, _) => match self.close(&mut goes_on) {
                Err(Error::SealingLeft) => return Err(self.left()),
                closed => closed?,
            },
            (Ending::LiveTail, Some(_)) => {
                self.unfinished()?;
                self.end_part()?;
            }
            (Ending::LiveTail, None) => self.checkpoint()?,
        }
        Ok(self.sealed())
    }

    /// Leaves the recording in the state of the last checkpoint.
    fn left(self) -> Error {
        if self.out_dir.is_some() {
            return Error::SealingLeft;
        }
        let (recording, options) = (self.recording.clone(), self.options);
        let path = recording.seal_state_path();
        let noted = match path.exists() {
            true => Ok(()),
            false => {
                let mut state = self.state.clone();
                state.parts.truncate(self.own_parts);
                state.write(&path, recording.file_header(FileKind::SealState))
            }
        };
        drop(self);
        // The next sealer drops what no checkpoint counts.
        match noted.and_then(|()| Self::own(&recording, options)) {
            Ok(_) => Error::SealingLeft,
            Err(error) => error,
        }
    }

    /// Ends the current part and notes the progress. In the recording's own folder, finished segments of
    /// the log are then removed.
    ///
    /// # Panics
    /// While a step still has released events to number.
    ///
    /// # Errors
    /// As for [`Self::step`].
    pub fn checkpoint(&mut self) -> Result<()> {
        assert!(
            !self.merge.is_releasing(),
            "checkpoints lie between releases"
        );
        self.end_part()?;
        self.part_log_bytes = 0;
        if self.out_dir.is_some() {
            return Ok(());
        }
        self.write_state(false)?;
        self.drop_segments_unless_kept()
    }

    fn close(&mut self, goes_on: &mut impl FnMut(&Progress) -> bool) -> Result<()> {
        self.merge.set_end();
        while self.merge.is_releasing() {
            self.merge.release(&mut CLOSE_STEP.clone(), &mut self.out)?;
            if !goes_on(&self.progress(false)?) {
                return Err(Error::SealingLeft);
            }
        }
        if self.torn_bytes > 0 {
            let ts_ns = self.out.last_ts_ns;
            self.out
                .event(ts_ns, None, EventKind::Gap, |row| row.text("torn"))?;
        }
        self.unfinished()?;
        self.end_part()?;
        if self.out_dir.is_some() {
            return Ok(());
        }
        self.merge = Merge::default();
        self.write_state(true)?;
        self.drop_segments_unless_kept()
    }

    /// Reads a frame; returns false when there is none for now.
    fn read_frame(&mut self, budget: &mut u64) -> Result<bool> {
        let Some(reader) = &mut self.reader else {
            return Ok(false);
        };
        let before = reader.position();
        let frame = match reader.next_frame()? {
            Step::Frame(frame) => frame,
            Step::End(end) => {
                self.torn_bytes = match end {
                    End::Closed => 0,
                    End::ForNow { torn_bytes } => torn_bytes,
                };
                return Ok(false);
            }
        };
        let same_segment = before.segment == frame.next.segment;
        let from = if same_segment { before.offset } else { 0 };
        let len = frame.next.offset - from;
        self.bytes_done += len;
        self.part_log_bytes += len;
        match frame.body {
            FrameBody::Block(block) => {
                *budget = budget.saturating_sub(block.bytes.len() as u64 / BYTES_PER_BUDGET);
                self.merge
                    .push_block(block.ring, block.tenancy, block.bytes);
            }
            FrameBody::Control(control) => {
                self.definitions.push(&control)?;
                if let Some(outline) = &mut self.state.outline {
                    outline.add(&control, self.out.clock);
                }
                self.merge.push_control(*control);
            }
            FrameBody::Watermark { ticks } => self.merge.set_watermark(ticks),
        }
        Ok(true)
    }

    fn roll_if_full(&mut self) -> Result<()> {
        let (calls, events) = self.out.sink.rows();
        let full = calls >= self.options.part_calls
            || events >= self.options.part_events
            || self.part_log_bytes >= self.options.part_log_bytes;
        match full {
            true => self.checkpoint(),
            false => Ok(()),
        }
    }

    fn unfinished(&mut self) -> Result<()> {
        let parts = &mut self.out.sink;
        self.merge
            .each_open(|tid, open| parts.unfinished(tid, &open.start, open.child_ns))
    }

    fn end_part(&mut self) -> Result<()> {
        let last = self.state.parts.last();
        let (from_seq, from_ns) = last.map_or((0, 0), |part| (part.end_seq, part.to_ts_ns));
        let seqs = from_seq..self.out.next_seq;
        let part = self.out.sink.finish(seqs, from_ns..=self.out.last_ts_ns)?;
        self.state.parts.extend(part);
        Ok(())
    }

    /// Replaces `seal.state` by the present state, unless open calls and waiting records do not fit one: then a later
    /// checkpoint does it, and until then the log stays.
    fn write_state(&mut self, closed: bool) -> Result<()> {
        let mut state = self.state.clone();
        state.next_seq = self.out.next_seq;
        state.last_ts_ns = self.out.last_ts_ns;
        state.position = self
            .reader
            .as_ref()
            .map_or(state.position, LogReader::position);
        state.watermark = self.merge.watermark().max(state.watermark);
        state.definitions_len = self.definitions.len();
        state.closed = closed;
        if !state.set_pending(&mut self.merge)? {
            return Ok(());
        }
        crash::point()?;
        self.definitions.sync()?;
        crash::point()?;
        let header = self.recording.file_header(FileKind::SealState);
        state.write(&self.recording.seal_state_path(), header)?;
        crash::point()?;
        self.own_parts = state.parts.len();
        self.state = state;
        Ok(())
    }

    fn drop_segments_unless_kept(&self) -> Result<()> {
        match self.options.keep_log {
            true => Ok(()),
            false => self.drop_segments(),
        }
    }

    /// Removes the segments that the last checkpoint does not need, the oldest first.
    fn drop_segments(&self) -> Result<()> {
        let dir = self.recording.log_dir();
        let first_needed = match self.state.closed {
            true => u32::MAX,
            false => self.state.position.segment,
        };
        for number in segments(&dir)?.into_iter().filter(|n| *n < first_needed) {
            crash::point()?;
            remove_if_there(&segment_path(&dir, number))?;
        }
        Ok(())
    }

    /// Removes files that a crashed sealer began but did not count.
    fn remove_strays(&self) -> Result<()> {
        let dir = self.recording.columns_dir();
        for entry in fs::read_dir(&dir).map_err(Error::io("read", &dir))? {
            let entry = entry.map_err(Error::io("read", &dir))?;
            let name = entry.file_name();
            let name = name.to_str().unwrap_or_default();
            let Some(number) = Part::number_from_name(name) else {
                continue;
            };
            let counted = self.state.parts.iter().any(|part| part.number == number);
            if !counted || part::is_draft(name) {
                remove_if_there(&entry.path())?;
            }
        }
        Ok(())
    }

    fn progress(&mut self, caught_up: bool) -> Result<Progress> {
        self.bytes_total = self.bytes_done + self.bytes_left()?;
        Ok(Progress {
            events: self.out.next_seq,
            bytes_done: self.bytes_done,
            bytes_total: self.bytes_total,
            caught_up,
        })
    }

    /// Returns the bytes of the log after the reader's position.
    fn bytes_left(&self) -> Result<u64> {
        let Some(position) = self.reader.as_ref().map(LogReader::position) else {
            return Ok(0);
        };
        let dir = self.recording.log_dir();
        let mut left = 0;
        for number in segments(&dir)?
            .into_iter()
            .filter(|n| *n >= position.segment)
        {
            let len = fs::metadata(segment_path(&dir, number)).map_or(0, |meta| meta.len());
            left += match number == position.segment {
                true => len.saturating_sub(position.offset),
                false => len,
            };
        }
        Ok(left)
    }

    fn sealed(self) -> Sealed {
        let own_dir = self.recording.columns_dir();
        let numbered = self.state.parts.iter().enumerate();
        let parts = numbered.map(|(index, part)| {
            let dir = match &self.out_dir {
                Some(out_dir) if index >= self.own_parts => out_dir,
                _ => &own_dir,
            };
            let file = |path: fn(&Path, u32) -> PathBuf, sum: Option<&FileSum>| SealedFile {
                path: path(dir, part.number),
                sum: sum.cloned().unwrap_or_default(),
            };
            SealedPart {
                part: part.clone(),
                calls: file(Part::calls_path, Some(&part.calls_file)),
                events: file(Part::events_path, Some(&part.events_file)),
                states: file(Part::states_path, part.states_file.as_ref()),
                captures: file(Part::captures_path, part.captures_file.as_ref()),
            }
        });
        let counted = DefinitionsFile {
            path: self.recording.definitions_path(),
            len: self.state.definitions_len,
        };
        let aside = self.definitions.file().filter(|_| self.out_dir.is_some());
        let counted = Some(counted).filter(|file| file.len > 0);
        Sealed {
            parts: parts.collect(),
            definitions: counted.into_iter().chain(aside).collect(),
            events: self.out.next_seq,
            last_ts_ns: self.out.last_ts_ns,
            began_ns: self
                .state
                .outline
                .as_ref()
                .map_or(0, |outline| outline.began_ns),
            torn_bytes: self.torn_bytes,
        }
    }
}
