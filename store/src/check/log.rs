//! Checks the log: its segments, their frames, and the records in them.

use std::path::Path;

use super::threads::Threads;
use super::{Report, Severity};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::file_header::FileHeader;
use crate::format::{FILE_HEADER_LEN, FileKind, FrameKind};
use crate::log::frame::{self, END_CLOSED, END_CONTINUES, FrameFault};
use crate::log::frame_reader::{FrameReader, RawFrame};
use crate::log::packing::Unpacker;
use crate::log::torn::wrong_end;
use crate::log::{LogPosition, Tail, segment_path, segments};
use crate::manifest::RecordingId;

/// The facts about the log that are known before it is read.
pub(super) struct LogContext<'a> {
    pub(super) dir: &'a Path,
    pub(super) id: RecordingId,
    /// The allowed forms of its end.
    pub(super) tail: Tail,
    /// The part that the columns already hold, if there is a seal state.
    pub(super) sealed: Option<SealedLog>,
    /// Whether segments stay after sealing.
    pub(super) is_kept: bool,
}

/// How much of the log the columns hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct SealedLog {
    /// Where sealing resumes.
    pub(super) position: LogPosition,
    /// Whether the log is no longer needed.
    pub(super) complete: bool,
}

/// The end of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentEnd {
    Continues,
    Closed,
    Missing,
}

pub(super) fn check(
    scope: &LogContext<'_>,
    report: &mut Report,
    progress: &mut impl FnMut(u64),
) -> Result<()> {
    let numbers = segments(scope.dir)?;
    let first_kept = check_numbers(scope, &numbers, report);
    let mut threads = Threads::default();
    let mut before = SegmentEnd::Continues;
    for (index, number) in numbers.iter().enumerate() {
        report.log.segments += 1;
        let path = segment_path(scope.dir, *number);
        let header = FileHeader {
            kind: FileKind::Log,
            recording_id: scope.id,
            number: *number,
        };
        let later = &numbers[index + 1..];
        let mut reader = match FrameReader::open(&path, &header) {
            Ok(reader) => reader,
            Err(Error::Truncated { offset, .. })
                if later.is_empty() && scope.may_lack_header(before) =>
            {
                torn(&path, 0, offset, report);
                continue;
            }
            Err(error) => {
                report.damage(&path, &error);
                continue;
            }
        };
        report.file(&path, reader.file_len()?);
        scope.check_sealed(&reader, *number, report)?;
        let tail = match later.iter().any(|number| scope.has_frames(*number)) {
            true => Tail::MustBeClosed,
            false => scope.tail,
        };
        before = check_segment(&mut reader, tail, report, &mut threads, progress)?;
        check_end(&path, before, tail, later.is_empty(), report);
        if before == SegmentEnd::Continues && later.is_empty() && scope.tail == Tail::MayBeTorn {
            missing(
                scope.dir,
                number.saturating_add(1),
                "the one before is not the last",
                report,
            );
        }
    }
    report.log.threads = threads.count();
    // Definitions and thread records may be in segments that were sealed and removed, or in unreadable bytes.
    let from_start = first_kept == 0 && report.log.unreadable_bytes == 0;
    threads.finish(scope.dir, from_start, report);
    Ok(())
}

impl LogContext<'_> {
    /// Whether the last segment may be shorter than its header. An announced segment had its header before.
    fn may_lack_header(&self, before: SegmentEnd) -> bool {
        match self.tail {
            Tail::MustBeClosed => false,
            Tail::MayBeTorn => before == SegmentEnd::Missing,
            Tail::Grows => true,
        }
    }

    fn has_frames(&self, number: u32) -> bool {
        let found = segment_path(self.dir, number).metadata();
        found.is_ok_and(|found| found.len() > FILE_HEADER_LEN as u64)
    }

    /// Checks that a segment has the part of it that is sealed.
    fn check_sealed(&self, reader: &FrameReader, number: u32, report: &mut Report) -> Result<()> {
        let Some(sealed) = self.sealed.filter(|sealed| !sealed.complete) else {
            return Ok(());
        };
        let (len, needed) = (reader.file_len()?, sealed.position);
        if needed.segment == number && len < needed.offset {
            let what = format!(
                "it continues to offset {} in what is sealed of it",
                needed.offset
            );
            report.find(Severity::Damage, reader.path(), Some(len), what);
        }
        Ok(())
    }
}

/// Checks that no segment is missing; returns the number of the first one.
fn check_numbers(scope: &LogContext<'_>, numbers: &[u32], report: &mut Report) -> u32 {
    for pair in numbers.windows(2) {
        for number in pair[0] + 1..pair[1] {
            missing(
                scope.dir,
                number,
                "earlier and later ones are there",
                report,
            );
        }
    }
    let first_needed = match scope.sealed {
        _ if scope.is_kept => Some((0, "the recording keeps its log")),
        Some(sealed) if sealed.complete => None,
        Some(sealed) => Some((sealed.position.segment, "its events are not in the columns")),
        None => Some((0, "its events are not in the columns")),
    };
    let first = numbers.first().copied();
    // The recorder of a live recording may have sealed and removed more since.
    if let Some((needed, why)) = first_needed
        && scope.tail != Tail::Grows
        && first.is_none_or(|first| needed < first)
    {
        missing(scope.dir, needed, why, report);
    }
    first.unwrap_or(0)
}

fn missing(dir: &Path, number: u32, why: &str, report: &mut Report) {
    let what = format!("the segment is missing: {why}");
    report.find(Severity::Damage, &segment_path(dir, number), None, what);
}

fn check_end(path: &Path, end: SegmentEnd, tail: Tail, is_last: bool, report: &mut Report) {
    let must_end = tail == Tail::MustBeClosed;
    let what = match (end, is_last) {
        (SegmentEnd::Missing, false) if must_end => "the segment lacks its last frame",
        (SegmentEnd::Missing, true) if must_end => "the log lacks its last frame",
        (SegmentEnd::Closed, false) => "the log ends here, but more segments follow",
        (SegmentEnd::Continues, true) if must_end => "the next segment is missing",
        _ => return,
    };
    report.find(Severity::Damage, path, None, what.into());
}

fn check_segment(
    reader: &mut FrameReader,
    tail: Tail,
    report: &mut Report,
    threads: &mut Threads,
    progress: &mut impl FnMut(u64),
) -> Result<SegmentEnd> {
    let path = reader.path().to_path_buf();
    let mut unpacker = Unpacker::default();
    let mut last = SegmentEnd::Missing;
    let mut done = 0;
    loop {
        let offset = reader.offset();
        progress(offset - done);
        done = offset;
        let fault = match reader.next_frame()? {
            Ok(frame) => {
                if last != SegmentEnd::Missing {
                    let what = "a frame follows the segment's last one".to_string();
                    report.find(Severity::Damage, &path, Some(offset), what);
                }
                last = check_frame(&path, &frame, &mut unpacker, report, threads);
                continue;
            }
            Err(fault) => fault,
        };
        let end = reader.file_len()?;
        if fault == FrameFault::Short && offset >= end {
            return Ok(last);
        }
        match reader.find_frame_after(end)? {
            Some(next) => {
                let what = format!("{fault}; the next whole frame begins at offset {next}");
                report.find(Severity::Damage, &path, Some(offset), what);
                report.log.unreadable_bytes += next - offset;
                reader.seek(next);
            }
            None => {
                let wrong = match tail {
                    _ if last != SegmentEnd::Missing => Some(fault.to_string()),
                    Tail::MustBeClosed => Some(fault.to_string()),
                    Tail::MayBeTorn => wrong_end(reader, fault, end)?,
                    Tail::Grows => None,
                };
                match wrong {
                    None => torn(&path, offset, end, report),
                    Some(what) => {
                        report.find(Severity::Damage, &path, Some(offset), what);
                        report.log.unreadable_bytes += end - offset;
                    }
                }
                return Ok(last);
            }
        }
    }
}

fn check_frame(
    path: &Path,
    frame: &RawFrame<'_>,
    unpacker: &mut Unpacker,
    report: &mut Report,
    threads: &mut Threads,
) -> SegmentEnd {
    let mut bad = |what: String| {
        report.find(Severity::Damage, path, Some(frame.offset), what);
        SegmentEnd::Missing
    };
    match (frame.header.kind, frame.header.arg) {
        (FrameKind::SegmentEnd, END_CONTINUES) => return SegmentEnd::Continues,
        (FrameKind::SegmentEnd, END_CLOSED) => return SegmentEnd::Closed,
        (FrameKind::SegmentEnd, other) => {
            return bad(format!("unknown way {other} to end a segment"));
        }
        (FrameKind::Document | FrameKind::Pages, _) => {
            return bad(format!(
                "a frame of kind {:?} in the log",
                frame.header.kind
            ));
        }
        (FrameKind::Block | FrameKind::PackedBlock, arg) => {
            let bytes = match frame.header.kind {
                FrameKind::PackedBlock => match unpacker.unpack(frame.payload) {
                    Ok(bytes) => bytes,
                    Err(fault) => return bad(fault.to_string()),
                },
                _ => frame.payload,
            };
            report.log.blocks += 1;
            let (ring, tenancy) = frame::ring_and_tenancy(arg);
            let place = (path, frame.offset);
            threads.block(place, (ring, tenancy), bytes, report);
        }
        (FrameKind::Watermark, ticks) => {
            report.log.watermarks += 1;
            threads.watermark((path, frame.offset), ticks, report);
        }
        (FrameKind::Control, _) => match rmp_serde::from_slice::<Control>(frame.payload) {
            Ok(control) => {
                report.log.controls += 1;
                threads.control((path, frame.offset), &control, report);
            }
            Err(error) => return bad(format!("a control event cannot be read: {error}")),
        },
    }
    report.log.frames += 1;
    SegmentEnd::Missing
}

fn torn(path: &Path, offset: u64, end: u64, report: &mut Report) {
    let len = end - offset;
    let what = format!("the last {len} bytes are an unfinished frame, which readers drop");
    report.find(Severity::Note, path, Some(offset), what);
    report.log.torn_bytes += len;
}
