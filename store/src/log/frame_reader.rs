//! Reads the frames of one file in order with bounded memory. It reports what is wrong; callers decide what that means.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::file_header::{self, FileHeader};
use crate::format::{FILE_HEADER_LEN, FRAME_ALIGN, FRAME_HEADER_LEN, FRAME_MARK};
use crate::log::frame::{self, FrameFault, FrameHeader, MARK_AT};
use crate::storage::aligned::{ALIGN, Buffer};

/// Bytes that are read at once: few at first, as for a small file or a growing log, then more and more.
/// A longer frame is read whole.
const WINDOW_LEN: std::ops::RangeInclusive<usize> = 64 << 10..=4 << 20;

/// Bytes that are searched at once for the next frame in a damaged file.
const SEARCH_LEN: usize = 1 << 20;

/// Most bytes that are compared with checksums in a search for frames at a wrong place.
const MOST_COMPARED: usize = 1 << 30;

/// A reader of a file of frames.
pub struct FrameReader {
    file: File,
    path: PathBuf,
    file_crc: u32,
    offset: u64,
    window: Window,
}

/// A frame whose checksum holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFrame<'a> {
    /// Kind, length and argument.
    pub header: FrameHeader,
    /// The payload without its padding.
    pub payload: &'a [u8],
    /// Where the frame begins, in bytes from the file's start.
    pub offset: u64,
}

impl FrameReader {
    /// Opens a file and checks that it is the one `expected` describes.
    ///
    /// # Errors
    /// Those of [`FileHeader::decode`] and [`FileHeader::expect`].
    pub fn open(path: &Path, expected: &FileHeader) -> Result<Self> {
        let (reader, found) = Self::open_any(path)?;
        expected.expect(&found, path)?;
        Ok(reader)
    }

    /// Opens any file of any recording and returns its header too.
    ///
    /// # Errors
    /// Those of [`FileHeader::decode`].
    pub fn open_any(path: &Path) -> Result<(Self, FileHeader)> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let mut window = Window::new();
        let bytes = window
            .bytes(&file, path, 0, FILE_HEADER_LEN)
            .map_err(Error::io("read", path))?;
        let header = FileHeader::decode(bytes, path)?;
        let reader = Self {
            file_crc: file_header::stored_crc(bytes),
            file,
            path: path.to_path_buf(),
            offset: FILE_HEADER_LEN as u64,
            window,
        };
        Ok((reader, header))
    }

    /// Returns the checksum of the file's header, the start value for the checksums of its frames.
    pub fn file_crc(&self) -> u32 {
        self.file_crc
    }

    /// Goes to `offset` bytes from the file's start, where a frame must begin.
    pub fn seek(&mut self, offset: u64) {
        self.offset = offset.max(FILE_HEADER_LEN as u64);
    }

    /// Returns the offset of the next frame, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the present length of the file, in bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn file_len(&self) -> Result<u64> {
        let meta = self
            .file
            .metadata()
            .map_err(Error::io("read", &self.path))?;
        Ok(meta.len())
    }

    /// Drops the read-ahead, so that the next read sees the present file.
    pub fn forget(&mut self) {
        self.window.len = 0;
    }

    /// Reads the next frame and moves past it. The inner `Err` is what is wrong with the bytes at
    /// [`Self::offset`], where the reader then stays; at the very end of the file it is [`FrameFault::Short`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn next_frame(&mut self) -> Result<std::result::Result<RawFrame<'_>, FrameFault>> {
        let header = match self.check_at(self.offset)? {
            Ok(header) => header,
            Err(fault) => return Ok(Err(fault)),
        };
        let offset = self.offset;
        self.offset += frame::frame_len(header.len) as u64;
        let payload = self
            .window
            .held(offset + FRAME_HEADER_LEN as u64, header.len);
        Ok(Ok(RawFrame {
            header,
            payload,
            offset,
        }))
    }

    /// Returns the payload of the frame at `offset` that was just read, `len` bytes.
    pub(super) fn held_payload(&self, offset: u64, len: usize) -> &[u8] {
        self.window.held(offset + FRAME_HEADER_LEN as u64, len)
    }

    /// Returns the start of the first whole frame after the current place, searching up to `end` bytes from the
    /// file's start.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn find_frame_after(&mut self, end: u64) -> Result<Option<u64>> {
        let mut offset = self.offset.saturating_add(FRAME_ALIGN as u64);
        while offset.saturating_add(FRAME_HEADER_LEN as u64) <= end {
            let len = SEARCH_LEN.min((end - offset) as usize);
            let bytes = self.read_at(offset, len)?;
            let whole = bytes.len().saturating_sub(FRAME_HEADER_LEN - 1);
            if whole == 0 {
                break;
            }
            let marks: Vec<u64> = (0..whole)
                .step_by(FRAME_ALIGN)
                .filter(|at| bytes[at + MARK_AT..].starts_with(&FRAME_MARK))
                .map(|at| offset + at as u64)
                .collect();
            for mark in marks {
                let found = self.check_at(mark)?;
                if found.is_ok_and(|h| mark + frame::frame_len(h.len) as u64 <= end) {
                    return Ok(Some(mark));
                }
            }
            offset += whole.next_multiple_of(FRAME_ALIGN) as u64;
        }
        Ok(None)
    }

    /// Returns the first frame that was written for another place, and that place, searching from the current
    /// place to `end`, at every byte. Candidates are compared with their checksums up to a limit of work.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn find_displaced_frame(&mut self, end: u64) -> Result<Option<(u64, u64)>> {
        let mut offset = self.offset;
        let mut work = MOST_COMPARED;
        while offset.saturating_add(FRAME_HEADER_LEN as u64) <= end {
            let len = SEARCH_LEN.min((end - offset) as usize);
            let bytes = self.read_at(offset, len)?;
            let whole = bytes.len().saturating_sub(FRAME_HEADER_LEN - 1);
            let marks: Vec<u64> = (0..whole)
                .filter(|at| bytes[at + MARK_AT..].starts_with(&FRAME_MARK))
                .map(|at| offset + at as u64)
                .collect();
            for mark in marks {
                if let Some(belongs) = self.displaced_at(mark, end, &mut work)? {
                    return Ok(Some((mark, belongs)));
                }
            }
            if whole == 0 {
                break;
            }
            offset += whole as u64;
        }
        Ok(None)
    }

    /// Returns the place for which the frame at `offset` was written, if there is one.
    fn displaced_at(&mut self, offset: u64, end: u64, work: &mut usize) -> Result<Option<u64>> {
        let bytes = self.read_at(offset, FRAME_HEADER_LEN)?;
        let Some(header) = bytes.first_chunk() else {
            return Ok(None);
        };
        let belongs = frame::stored_place(header);
        let Ok(len) = frame::payload_len(header, belongs).map(frame::frame_len) else {
            return Ok(None);
        };
        if offset.saturating_add(len as u64) > end || len > *work {
            return Ok(None);
        }
        *work -= len;
        let file_crc = self.file_crc;
        let bytes = self.read_at(offset, len)?;
        Ok(frame::check(bytes, file_crc, belongs).ok().map(|_| belongs))
    }

    /// Returns `len` bytes from `offset` on, fewer only at the end of the file.
    pub(super) fn bytes_at(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        self.read_at(offset, len)
    }

    fn check_at(&mut self, offset: u64) -> Result<std::result::Result<FrameHeader, FrameFault>> {
        let bytes = self.read_at(offset, FRAME_HEADER_LEN)?;
        let len = match bytes.first_chunk() {
            None => return Ok(Err(FrameFault::Short)),
            Some(header) => match frame::payload_len(header, offset) {
                Ok(len) => len,
                Err(fault) => return Ok(Err(fault)),
            },
        };
        let file_crc = self.file_crc;
        let bytes = self.read_at(offset, frame::frame_len(len))?;
        Ok(frame::check(bytes, file_crc, offset))
    }

    fn read_at(&mut self, offset: u64, len: usize) -> Result<&[u8]> {
        self.window
            .bytes(&self.file, &self.path, offset, len)
            .map_err(Error::io("read", &self.path))
    }
}

/// The part of the file that is in memory.
struct Window {
    buffer: Buffer,
    start: u64,
    len: usize,
    next_len: usize,
    direct: Direct,
}

/// A second handle for reads past the page cache: a log is read once, and fresh pages of the cache for all of it
/// cost more than the disk (`storage::staged` says why).
enum Direct {
    Unknown,
    Open(File),
    /// The file does not support that.
    No,
}

impl Window {
    fn new() -> Self {
        Self {
            buffer: Buffer::new(0),
            start: 0,
            len: 0,
            next_len: *WINDOW_LEN.start(),
            direct: Direct::Unknown,
        }
    }

    /// Returns `len` bytes of `file` from `offset` on, fewer only at the end of the file.
    fn bytes(&mut self, file: &File, path: &Path, offset: u64, len: usize) -> io::Result<&[u8]> {
        if !self.holds(offset, len) {
            self.fill(file, path, offset, len)?;
        }
        let held = self.start + self.len as u64 - offset;
        Ok(self.held(offset, len.min(held as usize)))
    }

    fn holds(&self, offset: u64, len: usize) -> bool {
        let end = offset.saturating_add(len as u64);
        offset >= self.start && end <= self.start + self.len as u64
    }

    /// Returns bytes that are known to be in memory.
    fn held(&self, offset: u64, len: usize) -> &[u8] {
        let at = (offset - self.start) as usize;
        &self.buffer.bytes()[at..at + len]
    }

    fn fill(&mut self, file: &File, path: &Path, offset: u64, len: usize) -> io::Result<()> {
        let wanted = len.max(self.next_len);
        if self.next_len == *WINDOW_LEN.end() && self.fill_directly(file, path, offset, wanted) {
            return Ok(());
        }
        self.next_len = (self.next_len * 4).min(*WINDOW_LEN.end());
        self.make_room(wanted);
        self.start = offset;
        self.len = 0;
        while self.len < wanted {
            let at = offset + self.len as u64;
            match file.read_at(&mut self.buffer.bytes_mut()[self.len..wanted], at) {
                Ok(0) => break,
                Ok(count) => self.len += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads at least `wanted` bytes past the page cache, if all of them exist and are not just being written.
    fn fill_directly(&mut self, file: &File, path: &Path, offset: u64, wanted: usize) -> bool {
        let start = offset / ALIGN as u64 * ALIGN as u64;
        let len = ((offset - start) as usize + wanted).next_multiple_of(ALIGN);
        let settled = file
            .metadata()
            .is_ok_and(|metadata| start + 2 * len as u64 <= metadata.len());
        if !settled {
            return false;
        }
        if matches!(self.direct, Direct::Unknown) {
            let opened = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_DIRECT)
                .open(path);
            self.direct = opened.map_or(Direct::No, Direct::Open);
        }
        self.make_room(len);
        let Direct::Open(direct) = &self.direct else {
            return false;
        };
        if direct
            .read_exact_at(&mut self.buffer.bytes_mut()[..len], start)
            .is_err()
        {
            // The other way reports the error, if any.
            self.direct = Direct::No;
            return false;
        }
        (self.start, self.len) = (start, len);
        true
    }

    fn make_room(&mut self, len: usize) {
        if self.buffer.bytes().len() < len {
            self.buffer = Buffer::new(len);
        }
    }
}
