//! Reads the log in order, from any position, also while it grows; distinguishes a torn tail from damage.
//!
//! Memory is bounded by the read window plus one frame and its unpacked form. A returned frame is final.

use std::io;
use std::path::{Path, PathBuf};

use crate::control::Control;
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::{FILE_HEADER_LEN, FRAME_HEADER_LEN, FileKind, FrameKind};
use crate::log::frame::{self, END_CLOSED, END_CONTINUES, FrameFault, FrameHeader};
use crate::log::frame_reader::{FrameReader, RawFrame};
use crate::log::packing::Unpacker;
use crate::log::position::{LogPosition, segment_path, segments};
use crate::log::torn::wrong_end;
use crate::manifest::RecordingId;

/// The allowed forms of the log's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The recording was closed cleanly: anything but the closing frame at the end is an error.
    MustBeClosed,
    /// The recorder died: an incomplete frame at the end is dropped, and anything else is an error.
    MayBeTorn,
    /// The recording is being written: incomplete bytes at the end may become complete.
    Grows,
}

/// A reader of the log.
pub struct LogReader {
    dir: PathBuf,
    recording_id: RecordingId,
    tail: Tail,
    position: LogPosition,
    segment: Option<FrameReader>,
    unpacker: Unpacker,
}

/// The next item of the log.
#[derive(Debug, PartialEq)]
pub enum Step<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// Nothing, now or ever.
    End(End),
}

/// Why there is no further frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The log was closed cleanly here.
    Closed,
    /// The log may continue later: try again.
    ForNow {
        /// Bytes after the last whole frame. Once the log has no writer, they are a torn frame and lost.
        torn_bytes: u64,
    },
}

/// A frame and its place.
#[derive(Debug, PartialEq)]
pub struct Frame<'a> {
    /// Where the frame begins.
    pub position: LogPosition,
    /// Where reading continues after it.
    pub next: LogPosition,
    /// Its content.
    pub body: FrameBody<'a>,
}

/// The content of a frame.
#[derive(Debug, PartialEq)]
pub enum FrameBody<'a> {
    /// Whole records of one thread.
    Block(Block<'a>),
    /// A control event.
    Control(Box<Control>),
    /// Every record in later frames has these ticks or more.
    Watermark {
        /// Ticks since the recording's clock base.
        ticks: u64,
    },
}

/// Whole records of one thread, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// Number of the ring.
    pub ring: u32,
    /// Counts the uses of that ring: ring and tenancy together are one thread.
    pub tenancy: u32,
    /// The records as the target wrote them.
    pub bytes: &'a [u8],
}

/// The bytes found at the reader's position.
enum Found {
    Frame(FrameHeader, LogPosition),
    End(End),
    Next,
    Fault(FrameFault),
    NoHeader(Error),
}

/// The meaning of a fault.
enum Verdict {
    End(End),
    Damage(Error),
}

impl LogReader {
    /// Opens the log in the folder `dir` at the first existing segment.
    ///
    /// # Errors
    /// [`Error::SegmentMissing`] when one is missing in between, or none exists and the log has no writer.
    pub fn open(dir: &Path, recording_id: RecordingId, tail: Tail) -> Result<Self> {
        let numbers = segments(dir)?;
        for pair in numbers.windows(2) {
            let next = pair[0] + 1;
            // Listing a growing folder may omit a segment.
            if pair[1] != next && !segment_path(dir, next).exists() {
                return Err(missing(dir, next));
            }
        }
        let first = match (numbers.first(), tail) {
            (Some(first), _) => *first,
            (None, Tail::Grows) => 0,
            (None, Tail::MayBeTorn | Tail::MustBeClosed) => return Err(missing(dir, 0)),
        };
        let start = LogPosition::start_of(first);
        Ok(Self::open_at(dir, recording_id, tail, start))
    }

    /// Opens the log at a position that an earlier reader returned. A missing segment shows on reading.
    pub fn open_at(
        dir: &Path,
        recording_id: RecordingId,
        tail: Tail,
        position: LogPosition,
    ) -> Self {
        Self {
            dir: dir.to_path_buf(),
            recording_id,
            tail,
            position,
            segment: None,
            unpacker: Unpacker::default(),
        }
    }

    /// Returns the position of the next frame.
    pub fn position(&self) -> LogPosition {
        self.position
    }

    /// Reads the next frame. After [`End::ForNow`] it may be called again, to follow a growing log.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Truncated`] naming file and offset, those of [`FileHeader::decode`] and
    /// [`FileHeader::expect`], [`Error::SegmentMissing`], [`Error::Io`].
    pub fn next_frame(&mut self) -> Result<Step<'_>> {
        let (header, start) = match self.settle()? {
            Settled::Frame(header, start) => (header, start),
            Settled::End(end) => return Ok(Step::End(end)),
        };
        let segment = self.segment.as_mut().expect("settle opened the segment");
        let payload = segment.held_payload(start.offset, header.len);
        let body = body(&header, payload, &mut self.unpacker).map_err(|what| {
            let path = segment_path(&self.dir, start.segment);
            Error::corrupt(&path, start.offset, what)
        })?;
        Ok(Step::Frame(Frame {
            position: start,
            next: self.position,
            body,
        }))
    }

    /// Continues until there is a frame or an end.
    fn settle(&mut self) -> Result<Settled> {
        let mut looked_again = false;
        loop {
            let verdict = match self.look()? {
                Found::Frame(header, start) => return Ok(Settled::Frame(header, start)),
                Found::End(end) => return Ok(Settled::End(end)),
                Found::Next => continue,
                Found::Fault(fault) => self.judge(fault)?,
                Found::NoHeader(error) => self.judge_header(error)?,
            };
            self.forget();
            match verdict {
                Verdict::End(end) => return Ok(Settled::End(end)),
                // The writer may have continued between two reads of a growing file: only a lasting fault is damage.
                Verdict::Damage(_) if !looked_again => looked_again = true,
                Verdict::Damage(error) => return Err(error),
            }
        }
    }

    fn look(&mut self) -> Result<Found> {
        if self.segment.is_none()
            && let Some(found) = self.enter_segment()?
        {
            return Ok(found);
        }
        let number = self.position.segment;
        let segment = self.segment.as_mut().expect("just entered");
        let (header, offset) = match segment.next_frame()? {
            Ok(RawFrame { header, offset, .. }) => (header, offset),
            Err(fault) => return Ok(Found::Fault(fault)),
        };
        let next = segment.offset();
        let start = LogPosition {
            segment: number,
            offset,
        };
        if header.kind != FrameKind::SegmentEnd {
            self.position.offset = next;
            return Ok(Found::Frame(header, start));
        }
        if segment.file_len()? != next {
            let what = "something follows the segment's last frame";
            return Err(Error::corrupt(segment.path(), next, what));
        }
        self.leave_segment(&header, start)
    }

    fn leave_segment(&mut self, header: &FrameHeader, start: LogPosition) -> Result<Found> {
        match header.arg {
            END_CONTINUES => {
                self.position = LogPosition::start_of(self.position.segment + 1);
                self.segment = None;
                Ok(Found::Next)
            }
            END_CLOSED => {
                // The position stays before the closing frame, so that another call gives the same answer.
                self.position.offset = start.offset;
                if let Some(segment) = &mut self.segment {
                    segment.seek(start.offset);
                }
                Ok(Found::End(End::Closed))
            }
            other => {
                let path = segment_path(&self.dir, start.segment);
                let what = format!("unknown way {other} to end a segment");
                Err(Error::corrupt(&path, start.offset, what))
            }
        }
    }

    /// Opens the segment at the position, or returns what was found instead.
    fn enter_segment(&mut self) -> Result<Option<Found>> {
        let number = self.position.segment;
        let path = segment_path(&self.dir, number);
        let expected = FileHeader {
            kind: FileKind::Log,
            recording_id: self.recording_id,
            number,
        };
        match FrameReader::open(&path, &expected) {
            Ok(mut reader) => {
                reader.seek(self.position.offset);
                self.segment = Some(reader);
                Ok(None)
            }
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                self.no_segment().map(Some)
            }
            Err(error @ (Error::Truncated { .. } | Error::Foreign { .. })) => {
                Ok(Some(Found::NoHeader(error)))
            }
            Err(error) => Err(error),
        }
    }

    fn no_segment(&self) -> Result<Found> {
        let number = self.position.segment;
        let later = segments(&self.dir)?.into_iter().any(|n| n > number);
        if self.tail == Tail::Grows && !later {
            return Ok(Found::End(End::ForNow { torn_bytes: 0 }));
        }
        // The writer may have created it, and later ones, since the last look.
        match segment_path(&self.dir, number).exists() {
            true => Ok(Found::Next),
            false => Err(missing(&self.dir, number)),
        }
    }

    /// Whether no later segment has a frame. The next one is created before this one gets its last frame.
    fn is_last(&self) -> Result<bool> {
        let mut later = segments(&self.dir)?.into_iter();
        Ok(!later.any(|number| {
            let found = segment_path(&self.dir, number).metadata();
            number > self.position.segment
                && found.is_ok_and(|found| found.len() > FILE_HEADER_LEN as u64)
        }))
    }

    /// Decides whether a bad frame is the torn tail of an unfinished log, or damage.
    fn judge(&mut self, fault: FrameFault) -> Result<Verdict> {
        let may_be_torn = self.tail != Tail::MustBeClosed && self.is_last()?;
        let segment = self.segment.as_mut().expect("a segment was being read");
        let path = segment.path().to_path_buf();
        let offset = segment.offset();
        let end = segment.file_len()?;
        let damage = |what: String| Ok(Verdict::Damage(Error::corrupt(&path, offset, what)));
        let torn_bytes = end.saturating_sub(offset);
        let torn = Ok(Verdict::End(End::ForNow { torn_bytes }));
        if let FrameFault::Kind(_) = fault {
            return damage(fault.to_string());
        }
        if offset > end {
            let what = format!("it continues to offset {offset} in what is sealed of it");
            return Ok(Verdict::Damage(Error::Truncated {
                path,
                offset: end,
                what,
            }));
        }
        if may_be_torn && offset == end {
            return torn;
        }
        // Zeros: when the machine stopped, the file system had recorded the file's length but not yet its bytes.
        if may_be_torn && self.tail == Tail::Grows && fault == FrameFault::Zeros {
            return torn;
        }
        if let Some(found) = segment.find_frame_after(end)? {
            return damage(format!(
                "{fault}, but another frame follows at offset {found}"
            ));
        }
        match (may_be_torn, fault) {
            (true, _) if self.tail == Tail::Grows => torn,
            (true, _) => match wrong_end(segment, fault, end)? {
                Some(what) => damage(what),
                None => torn,
            },
            (false, FrameFault::Short) => {
                Ok(Verdict::Damage(truncated(&path, offset, offset == end)))
            }
            (false, _) => damage(fault.to_string()),
        }
    }

    /// Decides whether a file without a header is being written, or damaged: a segment gets its header before
    /// the one before it announces it, and the first one before the manifest exists.
    fn judge_header(&mut self, error: Error) -> Result<Verdict> {
        let path = segment_path(&self.dir, self.position.segment);
        let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
        let never_written = bytes.len() < FILE_HEADER_LEN || bytes.iter().all(|b| *b == 0);
        if self.tail == Tail::Grows && never_written && self.is_last()? {
            let torn_bytes = bytes.len() as u64;
            return Ok(Verdict::End(End::ForNow { torn_bytes }));
        }
        Ok(Verdict::Damage(error))
    }

    fn forget(&mut self) {
        if let Some(segment) = &mut self.segment {
            segment.forget();
        }
    }
}

enum Settled {
    Frame(FrameHeader, LogPosition),
    End(End),
}

fn body<'a>(
    header: &FrameHeader,
    payload: &'a [u8],
    unpacker: &'a mut Unpacker,
) -> std::result::Result<FrameBody<'a>, String> {
    let block = |bytes| {
        let (ring, tenancy) = frame::ring_and_tenancy(header.arg);
        FrameBody::Block(Block {
            ring,
            tenancy,
            bytes,
        })
    };
    match header.kind {
        FrameKind::Block => Ok(block(payload)),
        FrameKind::PackedBlock => unpacker
            .unpack(payload)
            .map(block)
            .map_err(|fault| fault.to_string()),
        FrameKind::Control => rmp_serde::from_slice(payload)
            .map(|control| FrameBody::Control(Box::new(control)))
            .map_err(|error| format!("a control event cannot be read: {error}")),
        FrameKind::Watermark => Ok(FrameBody::Watermark { ticks: header.arg }),
        FrameKind::SegmentEnd | FrameKind::Document | FrameKind::Pages => {
            Err(format!("a frame of kind {:?} in the log", header.kind))
        }
    }
}

fn missing(dir: &Path, number: u32) -> Error {
    let path = segment_path(dir, number);
    Error::SegmentMissing { path }
}

fn truncated(path: &Path, offset: u64, between_frames: bool) -> Error {
    let what = match between_frames {
        true => "the segment's last frame is missing".to_string(),
        false => format!("a frame has {FRAME_HEADER_LEN} bytes and its payload"),
    };
    Error::Truncated {
        path: path.to_path_buf(),
        offset,
        what,
    }
}
