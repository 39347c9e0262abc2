//! Appends frames to the log and rolls its segments; packs blocks where that makes them shorter.

use std::path::{Path, PathBuf};

use crate::control::Control;
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::{
    FILE_HEADER_LEN, FRAME_HEADER_LEN, FileKind, FrameKind, MAX_PAYLOAD_LEN, SEGMENT_ROLL_LEN,
};
use crate::log::frame::{self, END_CLOSED, END_CONTINUES};
use crate::log::frame_writer::FrameWriter;
use crate::log::packing::{Packer, Word};
use crate::log::position::{LogPosition, segment_path};
use crate::log::sync::Syncer;
use crate::manifest::RecordingId;
use crate::storage::{Staged, Storage};
use crate::wire::{Records, WORD_LEN};

/// The one writer of a log.
///
/// A separate thread writes the appended frames, so an error may come with a later append. The log is then
/// whole up to an earlier frame. On storages other than [`Staged`] that is the frame just before, and the append may be
/// retried; not after [`Error::Sync`] or [`Error::WriterStopped`]. A writer that is dropped without
/// [`Self::close`] leaves a log that readers treat as unfinished.
pub struct LogWriter<S: Storage = Staged> {
    storage: S,
    dir: PathBuf,
    recording_id: RecordingId,
    number: u32,
    roll_len: u64,
    segment: FrameWriter<S::File>,
    syncer: Syncer<S::File>,
    /// `None` only while it is in use.
    packer: Option<Packer>,
    /// The content of the blocks.
    events: u64,
}

/// Proof that a log was closed cleanly.
#[derive(Debug)]
pub struct ClosedLog {
    /// The end of the log.
    pub end: LogPosition,
}

impl LogWriter {
    /// Starts a log in the empty folder `dir`.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Append`].
    pub fn create(dir: &Path, recording_id: RecordingId) -> Result<Self> {
        let storage = Staged::start().map_err(Error::io("start a thread that writes to", dir))?;
        Self::create_on(storage, dir, recording_id, SEGMENT_ROLL_LEN)
    }
}

impl<S: Storage + Clone> LogWriter<S> {
    /// Starts a log on any storage, with segments of at most `roll_len` bytes where frames allow.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Append`].
    pub fn create_on(
        storage: S,
        dir: &Path,
        recording_id: RecordingId,
        roll_len: u64,
    ) -> Result<Self> {
        let segment = create_segment(&storage, dir, recording_id, 0)?;
        let current = (segment.path().to_path_buf(), segment.file());
        let syncer = Syncer::start(storage.clone(), dir, current)?;
        Ok(Self {
            storage,
            dir: dir.to_path_buf(),
            recording_id,
            number: 0,
            roll_len,
            segment,
            syncer,
            packer: Some(Packer::default()),
            events: 0,
        })
    }
}

impl<S: Storage> LogWriter<S> {
    /// Appends whole records of one ring: the concatenation of `parts` (two where the ring wraps). Long blocks become
    /// several frames, and after an error the first of them may be there.
    ///
    /// # Errors
    /// [`Error::Append`] when the disk takes no more, [`Error::BadPayload`] when the parts are not whole words or
    /// longer than 64 MiB, [`Error::Sync`] when the disk failed earlier.
    pub fn append_block(&mut self, ring: u32, tenancy: u32, parts: [&[u8]; 2]) -> Result<()> {
        let len = parts[0].len() + parts[1].len();
        if !len.is_multiple_of(WORD_LEN) {
            let rule = "a block is whole words";
            return Err(Error::BadPayload { len, rule });
        }
        if len > MAX_PAYLOAD_LEN {
            let rule = "a block has at most 64 MiB";
            return Err(Error::BadPayload { len, rule });
        }
        let arg = frame::block_arg(ring, tenancy);
        match parts.map(<[u8]>::as_chunks) {
            [(first, []), (second, [])] => {
                // Taken out of `self` while in use, so that its memory can be appended.
                let mut packer = self.packer.take().unwrap_or_default();
                let result = self.append_words(&mut packer, arg, [first, second]);
                self.packer = Some(packer);
                result
            }
            _ => self.append(FrameKind::Block, arg, parts),
        }
    }

    /// Appends records packed, while that makes them shorter. The rest stays raw.
    fn append_words(
        &mut self,
        packer: &mut Packer,
        arg: u64,
        [mut first, mut second]: [&[Word]; 2],
    ) -> Result<()> {
        loop {
            if first.is_empty() {
                (first, second) = (second, &[]);
            }
            let packed = packer.pack(first);
            if packed.payload.len() >= packed.taken * WORD_LEN {
                self.events += events_of(first) + events_of(second);
                let raw = [first, second].map(<[Word]>::as_flattened);
                return self.append(FrameKind::Block, arg, raw);
            }
            self.append(FrameKind::PackedBlock, arg, [packed.payload, &[]])?;
            self.events += packed.events;
            first = &first[packed.taken..];
            if first.is_empty() && second.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns the number of events in the appended blocks: calls count twice, control events do not count.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Appends a control event.
    ///
    /// # Errors
    /// [`Error::Encode`], or as for [`Self::append_block`].
    pub fn append_control(&mut self, control: &Control) -> Result<()> {
        let what = "a control event";
        let bytes = rmp_serde::to_vec(control).map_err(|source| Error::Encode { what, source })?;
        self.append(FrameKind::Control, 0, [&bytes, &[]])
    }

    /// Promises that every record in later frames has `ticks` or more.
    ///
    /// # Errors
    /// As for [`Self::append_block`].
    pub fn append_watermark(&mut self, ticks: u64) -> Result<()> {
        self.append(FrameKind::Watermark, ticks, [&[], &[]])
    }

    /// Makes the appended frames visible to readers, soon. Frames that fill a buffer need no such help.
    pub fn flush(&self) {
        self.segment.flush();
    }

    /// Waits until readers can see all appended frames.
    ///
    /// # Errors
    /// [`Error::Append`] when it could not be written.
    pub fn settle(&self) -> Result<()> {
        self.segment.finish()
    }

    /// Returns the position of the next frame, unless it begins the next segment.
    pub fn position(&self) -> LogPosition {
        LogPosition {
            segment: self.number,
            offset: self.segment.len(),
        }
    }

    /// Ends the log and syncs all of it to the disk.
    ///
    /// # Errors
    /// As for [`Self::append_block`]; the log is then unfinished, but readable up to its last frame.
    pub fn close(mut self) -> Result<ClosedLog> {
        self.append_frame(FrameKind::SegmentEnd, END_CLOSED, [&[], &[]])?;
        let end = self.position();
        self.segment.finish()?;
        self.syncer.finish()?;
        Ok(ClosedLog { end })
    }

    #[inline]
    fn append(&mut self, kind: FrameKind, arg: u64, parts: [&[u8]; 2]) -> Result<()> {
        let len = parts[0].len() + parts[1].len();
        let with_end = frame::frame_len(len) + FRAME_HEADER_LEN;
        if self.segment.len() + with_end as u64 > self.roll_len {
            self.roll()?;
        }
        self.append_frame(kind, arg, parts)
    }

    #[inline]
    fn append_frame(&mut self, kind: FrameKind, arg: u64, parts: [&[u8]; 2]) -> Result<()> {
        let count = self.segment.append(kind, arg, parts)?;
        self.syncer.appended(count as u64)
    }

    /// Continues in a new segment, unless the present one has no frame yet.
    #[cold]
    fn roll(&mut self) -> Result<()> {
        if self.segment.len() == FILE_HEADER_LEN as u64 {
            return Ok(());
        }
        // Create the next segment before the frame that announces it: if the recorder dies in between, readers
        // find both or know that there is none.
        let number = self.number + 1;
        let next = create_segment(&self.storage, &self.dir, self.recording_id, number)?;
        if let Err(error) = self.append_frame(FrameKind::SegmentEnd, END_CONTINUES, [&[], &[]]) {
            let path = next.path().to_path_buf();
            drop(next);
            self.storage
                .remove(&path)
                .map_err(Error::io("remove", &path))?;
            return Err(error);
        }
        self.segment.end();
        self.syncer.rolled((next.path().to_path_buf(), next.file()));
        self.segment = next;
        self.number = number;
        Ok(())
    }
}

/// Counts the events of whole records.
fn events_of(words: &[Word]) -> u64 {
    let records = Records::new(words.as_flattened()).map_while(std::result::Result::ok);
    let events = records.filter(|decoded| !decoded.record.is_capture());
    events.count() as u64
}

fn create_segment<S: Storage>(
    storage: &S,
    dir: &Path,
    recording_id: RecordingId,
    number: u32,
) -> Result<FrameWriter<S::File>> {
    let header = FileHeader {
        kind: FileKind::Log,
        recording_id,
        number,
    };
    FrameWriter::create(storage, &segment_path(dir, number), header)
}
